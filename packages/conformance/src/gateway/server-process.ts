// The gateway as operators run it: a process of its own that can be told to leave, or be killed.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll } from "vitest";

interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface ServerProcess {
  readonly url: string;
  readonly pid: number;
  readonly exited: Promise<Exit>;
  /** What it has said on stderr: nothing, if all is well. */
  readonly stderr: string;
  /** The next line of its stdout that matches. */
  line(pattern: RegExp): Promise<RegExpExecArray>;
  /** Resolves when it is gone. */
  kill(signal: NodeJS.Signals): Promise<Exit>;
}

/** `command` is how this server is served; it takes `--port` and `--data`. */
export async function startServer(
  command: readonly string[],
  dataFolder: string,
  flags: readonly string[] = [],
): Promise<ServerProcess> {
  const [program = "", ...given] = command;
  const child = spawn(program, [...given, "--port", "0", "--data", dataFolder, ...flags], {
    stdio: ["ignore", "pipe", "pipe"],
    env: withoutSettings(),
  });
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const exited = new Promise<Exit>((resolve) => {
    child.once("close", (code, signal) => resolve({ code, signal }));
  });
  const lines = createInterface({ input: child.stdout });
  const line = (pattern: RegExp): Promise<RegExpExecArray> =>
    new Promise((resolve, reject) => {
      lines.on("line", (text) => {
        const found = pattern.exec(text);
        if (found !== null) resolve(found);
      });
      void exited.then(() => reject(new Error(`the server has ended: ${stderr}`)));
    });
  // The start line names the address.
  const [, url = ""] = await line(/^runwire listening on (http:\/\/[^\s,]+)/);
  return {
    url,
    pid: child.pid ?? 0,
    exited,
    line,
    get stderr() {
      return stderr;
    },
    kill(signal) {
      child.kill(signal);
      return exited;
    },
  };
}

export interface OwnProcess extends ServerProcess {
  /** Its data. */
  readonly folder: string;
  /** Ends it, and starts it on the same data. */
  again(signal: NodeJS.Signals, ...flags: readonly string[]): Promise<void>;
}

/** For a whole test file: there before its tests and gone after them. */
export function ownProcess(command: readonly string[]): OwnProcess {
  const folder = mkdtempSync(join(tmpdir(), "runwire-process-"));
  let running: ServerProcess;
  beforeAll(async () => {
    running = await startServer(command, folder);
  });
  afterAll(async () => {
    await running?.kill("SIGTERM");
    rmSync(folder, { recursive: true });
  });
  return {
    folder,
    get url() {
      return running.url;
    },
    get pid() {
      return running.pid;
    },
    get exited() {
      return running.exited;
    },
    get stderr() {
      return running.stderr;
    },
    line: (pattern) => running.line(pattern),
    kill: (signal) => running.kill(signal),
    async again(signal, ...flags) {
      await running.kill(signal);
      running = await startServer(command, folder, flags);
    },
  };
}

/** A variable like RUNWIRE_SOAK is for the tests; the server refuses settings it does not know. */
function withoutSettings(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("RUNWIRE_")));
}
