// One thing at a time in each workspace, in the order in which they came.

import { ToolFailure } from "../tool.js";
import { toolLimits } from "./limits.js";

interface Queue {
  waiting: number;
  last: Promise<unknown>;
}

const queues = new Map<string, Queue>();

export async function inTurn<T>(workspace: string, work: () => Promise<T>): Promise<T> {
  const queue = queues.get(workspace) ?? { waiting: 0, last: Promise.resolve() };
  if (queue.waiting >= toolLimits.writesWaitingMax) throw new ToolFailure("busy", "Too many writes at once.");
  queues.set(workspace, queue);
  queue.waiting += 1;
  const done = queue.last.then(work).finally(() => {
    queue.waiting -= 1;
    if (queue.waiting === 0) queues.delete(workspace);
  });
  // The next one comes after this one, however it ends.
  queue.last = done.catch(() => {});
  return done;
}
