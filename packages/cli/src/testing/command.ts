// The command as people run it: a process of its own, in a pipe or on a pseudo terminal.

import { type ChildProcessWithoutNullStreams, spawn, spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Facts } from "@runwire/protocol";

export const bin = fileURLToPath(new URL("../../bin/runwire.js", import.meta.url));

interface Exit {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

export interface Running {
  /** All it has written so far, to stdout and to stderr. */
  readonly out: string;
  readonly err: string;
  /** Resolves once what it has written to stdout since the last `until` matches; rejects if it ends before. */
  until(pattern: RegExp): Promise<RegExpExecArray>;
  /** Types, or signals. */
  type(keys: string): void;
  /** Ends what it reads. */
  close(): void;
  /** Resolves when it is gone. */
  kill(signal: NodeJS.Signals): Promise<Exit>;
  readonly exited: Promise<Exit>;
}

export function start(args: readonly string[], env: NodeJS.ProcessEnv = {}): Running {
  return running(spawn(process.execPath, [bin, ...args], { env: plainEnv(env) }));
}

/** On a terminal of 80 columns, made by script(1). */
export function startOnTerminal(args: readonly string[], env: NodeJS.ProcessEnv = {}): Running {
  const words = [process.execPath, bin, ...args].map((word) => `'${word.replaceAll("'", "'\\''")}'`);
  const command = `stty cols 80 rows 40 && exec ${words.join(" ")}`;
  const terminal = { TERM: "xterm", SHELL: "/bin/sh", ...env };
  return running(spawn("script", ["-qec", command, "/dev/null"], { env: plainEnv(terminal) }));
}

export async function runwire(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Exit> {
  const command = start(args, env);
  return command.exited;
}

/** The same in a folder, where it looks for its settings and data; nothing else goes on meanwhile. */
export function runwireIn(
  cwd: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
): { readonly status: number | null; readonly stdout: string; readonly stderr: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, [bin, ...args], {
    ...{ cwd, encoding: "utf8", env: plainEnv(env) },
    // A server that starts where it should not would never end.
    timeout: 20_000,
  });
  return { status, stdout, stderr };
}

/** With this on its stdin. */
export async function pipe(
  input: string | Uint8Array,
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
): Promise<Exit> {
  const child = spawn(process.execPath, [bin, ...args], { env: plainEnv(env) });
  const command = running(child);
  child.stdin.end(input);
  return command.exited;
}

/** Those that are whole, of what a command has written so far. */
export function linesOf(text: string): readonly string[] {
  return text.split("\n").slice(0, -1);
}

/** The same, where each is an object. */
export function objectsOf<T = Facts>(text: string): readonly T[] {
  return linesOf(text).map((line) => JSON.parse(line) as T);
}

function running(child: ChildProcessWithoutNullStreams): Running {
  let out = "";
  let err = "";
  let from = 0;
  const listeners = new Set<() => void>();
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    out += text;
    for (const listener of listeners) listener();
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    err += text;
  });
  // A command that has ended reads no more.
  child.stdin.on("error", () => {});
  const exited = new Promise<Exit>((resolve) => {
    child.once("close", (code) => resolve({ code, out, err }));
  });
  return {
    get out() {
      return out;
    },
    get err() {
      return err;
    },
    until: (pattern) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const found = pattern.exec(out.slice(from));
          if (found === null) return;
          from += found.index + found[0].length;
          listeners.delete(look);
          resolve(found);
        };
        listeners.add(look);
        look();
        void exited.then(({ code }) =>
          reject(new Error(`ended with ${code} before ${pattern}:\n${out}\n${err}`)),
        );
      }),
    type: (keys) => void child.stdin.write(keys),
    close: () => void child.stdin.end(),
    kill(signal) {
      child.kill(signal);
      return exited;
    },
    exited,
  };
}

/** Without the settings of whoever runs the tests. */
function plainEnv(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const { PATH, HOME } = process.env;
  return { PATH, HOME, LANG: "C.UTF-8", ...env };
}
