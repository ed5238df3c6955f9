// What people want of a run, inside a commit: whoever writes it is told, and its state changes at once. What a pause has
// paused goes on with the run, however that comes to run again (log/lifecycle.ts).

import { type Facts, parentPaused, type RunState } from "@runwire/protocol";
import type { Commit } from "./commit.js";
import { checkLive, type Head } from "./head.js";
import { forbidden, headIn, move } from "./lifecycle.js";

/** Pauses a run, and what runs below it. */
export function pause(commit: Commit, run_id: string, reason: string | null): void {
  to(commit, run_id, "paused", { action: "pause", reason }, "paused");
  below(commit, run_id, ({ run, state }) => {
    if (state !== "running") return;
    to(commit, run.run_id, "paused", { action: "pause", reason: parentPaused }, "");
  });
}

export function resume(commit: Commit, run_id: string, reason: string | null): void {
  const head = live(commit, run_id);
  // Not from every state that may become running: a plan that waits is approved, not resumed.
  if (head.state !== "paused" && head.state !== "running")
    throw forbidden(head, "can be resumed only while it is paused");
  to(commit, run_id, "running", { action: "resume", reason }, "resumed");
}

/** Asks the producer and changes the state, where that is a change at all. */
function to(
  commit: Commit,
  run_id: string,
  state: RunState,
  asked: Facts & { action: string },
  because: string,
): void {
  const head = live(commit, run_id);
  // Whoever pauses what is paused for its parent's sake wants it to stay so.
  if (head.state === state && head.reason !== parentPaused) return;
  ask(commit, run_id, asked);
  const reason = (asked.reason as string | null | undefined) ?? because;
  move(commit, run_id, { state, reason });
}

/** Every live run below this one, parents first; not below one that somebody paused for itself. */
function below(commit: Commit, run_id: string, each: (head: Head) => void): void {
  for (const child_id of headIn(commit, run_id).children) {
    const head = headIn(commit, child_id);
    each(head);
    const { state, reason } = headIn(commit, child_id);
    if (state !== "paused" || reason === parentPaused) below(commit, child_id, each);
  }
}

/** Tells whoever writes the run. */
export function ask(commit: Commit, run_id: string, payload: Facts & { action: string }): void {
  commit.write(run_id, { type: "control.requested", payload });
}

export function live(commit: Commit, run_id: string): Head {
  const head = headIn(commit, run_id);
  checkLive(head);
  return head;
}
