// A command of somebody else's and all that it has begun, as one group.

import { setTimeout as sleep } from "node:timers/promises";
import { toolLimits } from "./limits.js";

export const systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** All that a command gets of an environment: nothing of this process's, which holds keys. */
export function bareEnvironment(workspace: string, path = systemPath): { readonly [name: string]: string } {
  return { PATH: path, HOME: workspace, LANG: "C.UTF-8" };
}

/** Asks all of the group to end, and ends what does not. */
export async function endGroup(pid: number | undefined): Promise<void> {
  if (pid === undefined || !signalGroup(pid, "SIGTERM")) return;
  const lastMs = performance.now() + toolLimits.shellGraceMs;
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
