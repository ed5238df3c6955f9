// A command of somebody else's and all that it has begun, as one group.

import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { toolLimits } from "./limits.js";

export const systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** All that a command gets of an environment: nothing of this process's, which holds keys. */
export function bareEnvironment(workspace: string): { readonly [name: string]: string } {
  return { PATH: systemPath, HOME: workspace, LANG: "C.UTF-8" };
}

/**
 * Rejects where a command could not be started. To be awaited right after `spawn`, before its pipes are touched: it has
 * none where this process had no file left for them.
 */
export async function started(
  child: ChildProcess,
  toError: (cause: NodeJS.ErrnoException) => Error,
): Promise<void> {
  await once(child, "spawn").catch((cause: NodeJS.ErrnoException) => {
    throw toError(cause);
  });
}

/**
 * Waits until a command has ended or has to be, and ends what is left of its group; its pipes are let go of once they are
 * empty, or soon after. Gives its exit code, null where it was ended.
 */
export async function over(child: ChildProcess, signal: AbortSignal): Promise<number | null> {
  const closed = once(child, "close").catch(() => {});
  await ended(child, signal);
  const { exitCode } = child;
  await endGroup(child.pid);
  await Promise.race([closed, sleep(toolLimits.groupDrainMs, undefined, { ref: false })]);
  for (const stream of child.stdio) stream?.destroy();
  return exitCode;
}

function ended(child: ChildProcess, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    child.on("exit", () => resolve());
    signal.addEventListener("abort", () => resolve());
    if (signal.aborted) resolve();
  });
}

/** Asks all of the group to end, and ends what does not. */
async function endGroup(pid: number | undefined): Promise<void> {
  if (pid === undefined || !signalGroup(pid, "SIGTERM")) return;
  const lastMs = performance.now() + toolLimits.groupGraceMs;
  while (performance.now() < lastMs) {
    await sleep(10);
    if (!signalGroup(pid, 0)) return;
  }
  signalGroup(pid, "SIGKILL");
}

/** Whether there was anybody to hear it. */
function signalGroup(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-pid, signal);
  } catch {
    // ESRCH: the group is gone. EPERM: what is left of it is another user's, and cannot be ended from here.
    return false;
  }
}
