// A gateway that says what it holds when it is asked. RSS is left out: it has what the allocator has not given back,
// which differs by megabytes between two runs.

import type { ServerProcess } from "./server-process.js";

// On SIGUSR2 the server collects its garbage and says what is left, and what waits in its sockets.
const probe = `
  process.on("SIGUSR2", () => {
    gc();
    const { heapUsed, external } = process.memoryUsage();
    const waiting = process._getActiveHandles().map((handle) => handle.writableLength ?? 0);
    const full = waiting.filter((bytes) => bytes > 0).sort((a, b) => a - b);
    console.log("memory " + JSON.stringify({ kept: heapUsed + external, waiting: full }));
  });`;

/** How it is served; `program` is the command's file. */
export const probed = (program: string): readonly string[] => [
  process.execPath,
  "--expose-gc",
  `--import=data:text/javascript,${encodeURIComponent(probe)}`,
  program,
  "serve",
];

export interface Kept {
  /** Bytes of objects and buffers that garbage collection left. */
  readonly kept: number;
  /** Bytes that wait in each socket that is not empty, on this side of the kernel, the fewest first. */
  readonly waiting: readonly number[];
}

export async function measure(of: ServerProcess): Promise<Kept> {
  const line = of.line(/^memory (.*)$/);
  of.kill("SIGUSR2");
  return JSON.parse((await line)[1] ?? "{}") as Kept;
}
