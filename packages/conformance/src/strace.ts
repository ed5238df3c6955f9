// Processes whose system calls are written down, or made to fail, by strace.

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
export function failing(call: string, n: number, file?: string): readonly string[] {
  const on = file === undefined ? [] : ["-P", file];
  return [...on, "-e", `trace=${call}`, "-e", `inject=${call}:error=EIO:when=${n}`];
}

/** How many calls were made to fail. */
export function faultsIn(trace: string): number {
  return readFileSync(trace, "utf8").match(/\(INJECTED\)/g)?.length ?? 0;
}
