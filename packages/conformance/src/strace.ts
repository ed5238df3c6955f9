// Processes whose system calls are written down, or made to fail, by strace.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { tool } from "./tools.js";

export const strace = tool("strace");

/** This command with all its threads, seen by strace from beside it: a signal reaches the command itself. */
export function straced(
  trace: string,
  options: readonly string[],
  command: readonly string[],
): readonly string[] {
  return [strace.program, "-D", "-f", "-qq", "-y", "-s", "100", "-o", trace, ...options, ...command];
}

/** The n-th of these calls fails in each thread that makes so many: of those on one file, if it is named. */
export function failing(call: string, n: number, file?: string, error = "EIO"): readonly string[] {
  const on = file === undefined ? [] : ["-P", file];
  return [...on, "-e", `trace=${call}`, "-e", `inject=${call}:error=${error}:when=${n}`];
}

/** The same for a process that has begun, counted from now on, until what this gives back is called. */
export async function failFromNow(
  pid: number,
  trace: string,
  fault: readonly string[],
): Promise<() => Promise<void>> {
  const tracer = spawn(strace.program, ["-f", "-y", "-s", "100", "-o", trace, ...fault, "-p", String(pid)], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  const ended = once(tracer, "exit");
  await new Promise<void>((resolve, reject) => {
    let said = "";
    tracer.stderr.setEncoding("utf8").on("data", (text: string) => {
      said += text;
      if (said.includes("attached")) resolve();
    });
    void ended.then(() => reject(new Error(said)));
  });
  return async () => {
    // It lets go of the process, which goes on.
    tracer.kill("SIGINT");
    await ended;
  };
}

/** How many calls were made to fail. */
export function faultsIn(trace: string): number {
  return readFileSync(trace, "utf8").match(/\(INJECTED\)/g)?.length ?? 0;
}
