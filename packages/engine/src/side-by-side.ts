// What a run does side by side: the calls of an answer, the parts of a graph.

import { limits } from "./limits.js";
import type { RunLog } from "./log.js";

/** So many at a time, in their order. All are waited for, also where one fails: none outlives its run. */
export async function atOnce<T>(items: readonly T[], each: (item: T) => Promise<void>): Promise<void> {
  const next = items[Symbol.iterator]();
  const worker = async (): Promise<void> => {
    for (const item of next) await each(item);
  };
  const ends = await Promise.allSettled(Array.from({ length: limits.callsAtOnceMax }, worker));
  for (const end of ends) if (end.status === "rejected") throw end.reason;
}

/** What has not begun when somebody pauses the run waits until they resume it. */
export async function mayBegin(log: RunLog, signal: AbortSignal): Promise<boolean> {
  await log.until(({ state }) => signal.aborted || state === "running");
  return !signal.aborted;
}
