// How a run moves and ends, inside a commit.

import {
  beginningOf,
  type Facts,
  isFinal,
  limits,
  mayMove,
  parentPaused,
  parentResumed,
  type RunState,
  RunwireError,
  runStates,
  type Scope,
} from "@runwire/protocol";
import type { Commit } from "./commit.js";
import { checkLive, type Head, isEnded } from "./head.js";

/** Model text of a run's default log up to a position, folded before the commit. */
export interface Said {
  readonly pos: number;
  readonly text: string;
}

/** So that it fits into an event however it is escaped; a run must be able to end. The log has all of it. */
const settledCharsMax = Math.floor(limits.eventBytesMax / 6) - 1024;

/** Thrown where more text was stored, or settled, after the fold: fold again, then try again. */
export class StaleFold extends Error {}

export function headIn(commit: Commit, run_id: string): Head {
  const head = commit.head(run_id);
  if (head === undefined) throw new RunwireError("KAI-RUN-MISSING-0001", run_id);
  return head;
}

/** What else `move` may be told. */
export interface Moving {
  readonly said?: Said | undefined;
  readonly scope?: Scope | undefined;
  /** Sees to what is below a run that runs again: at once where this is left out. */
  readonly goesOn?: typeof goOn;
}

/** Changes a run's state, where its present one allows it. A change to the same state says nothing. */
export function move(
  commit: Commit,
  run_id: string,
  payload: Facts & { state: RunState },
  { said, scope, goesOn = goOn }: Moving = {},
): void {
  const head = headIn(commit, run_id);
  const { state: to } = payload;
  if (head.state === to) return;
  if (head.state !== null) {
    checkLive(head);
    if (!mayMove(head.state, to)) {
      const allowed = runStates.filter((state) => head.state !== null && mayMove(head.state, state));
      throw forbidden(head, `cannot become ${to}; from here it may become ${allowed.join(", ")}`);
    }
  }
  if (isFinal(to)) closeOpenThings(commit, run_id);
  if (to === "done" && headIn(commit, run_id).unsettled) settle(commit, run_id, said);
  if (isFinal(to)) handBack(commit, run_id);
  commit.write(run_id, {
    type: "run.lifecycle",
    payload,
    ...(scope === undefined ? {} : { scope }),
  });
  if (to === "running") goesOn(commit, run_id);
}

/** What a run's pause had paused below it; not what somebody paused for itself, nor what is below that. */
export function goOn(commit: Commit, run_id: string): void {
  for (const child_id of headIn(commit, run_id).children) {
    const { state, reason } = headIn(commit, child_id);
    if (state !== "paused") goOn(commit, child_id);
    else if (reason === parentPaused) {
      const resumed = { reason: parentResumed };
      commit.write(child_id, { type: "control.requested", payload: { action: "resume", ...resumed } });
      move(commit, child_id, { state: "running", ...resumed });
    }
  }
}

export function forbidden({ run, state }: Head, what: string): RunwireError {
  return new RunwireError("KAI-RUN-STATE-0001", `${run.run_id} is ${state} and ${what}`);
}

/** Ends a run that nobody else will: its producer is gone, or its parent has ended. */
export function end(commit: Commit, run_id: string, state: "aborted" | "error", reason: string): void {
  move(commit, run_id, { state, reason });
}

/** Ends a run because somebody wants it: whoever writes it is told. One that has ended stays as it is. */
export function abort(commit: Commit, run_id: string, reason: string | null): void {
  if (isEnded(headIn(commit, run_id))) return;
  commit.write(run_id, { type: "control.requested", payload: { action: "abort", reason } });
  move(commit, run_id, { state: "aborted", reason: reason ?? "aborted" });
}

// What belongs to the run comes before its end: what it still has to say, then calls, requests and children that
// are still open.
function closeOpenThings(commit: Commit, run_id: string): void {
  commit.flush(run_id);
  for (const [call_id, startedAt] of Object.entries(headIn(commit, run_id).calls)) {
    const error = { code: "KAI-RUN-TOOL-0001", message: "interrupted: the run ended before the tool did" };
    const duration_ms = Math.max(0, commit.nowMs - Date.parse(startedAt));
    commit.write(run_id, { type: "tool.end", payload: { call_id, ok: false, error, duration_ms } });
  }
  for (const [id, { status }] of Object.entries(headIn(commit, run_id).requests)) {
    if (status === "pending") closeRequest(commit, run_id, id, "closed");
  }
  for (const child of headIn(commit, run_id).children) end(commit, child, "aborted", "parent ended");
  pay(commit, run_id);
}

/** A request that nobody waits for any longer was used up all the same, and nobody tells how much of it. */
function pay(commit: Commit, run_id: string): void {
  const { payee, owes } = headIn(commit, run_id);
  if (payee === null || !owes) return;
  const { model, provider, isFree } = payee;
  const payload = { model, provider, requests: 1, ...(isFree ? {} : { unpriced_requests: 1 }) };
  commit.write(run_id, { type: "usage", payload });
}

/** What was said to the run too late goes back to whoever said it. */
function handBack(commit: Commit, run_id: string): void {
  for (const steer of headIn(commit, run_id).steers)
    commit.write(run_id, { type: "steer.leftover", payload: { ...steer } });
}

/** Nobody answered: an approval fails closed, a question stays open to the agent's own judgement. */
export function closeRequest(
  commit: Commit,
  run_id: string,
  id: string,
  outcome: "closed" | "expired",
): void {
  const request = headIn(commit, run_id).requests[id];
  if (request?.status !== "pending") return;
  if (request.kind === "approval") {
    commit.write(run_id, {
      type: "approval.resolved",
      payload: { approval_id: id, decision: "deny", outcome, reason: null },
    });
  } else {
    commit.write(run_id, { type: "clarify.resolved", payload: { clarify_id: id, answer: null, outcome } });
  }
}

function settle(commit: Commit, run_id: string, said: Said | undefined): void {
  const message_id = commit.newId("msg", commit.nowMs);
  const stored = commit.stored(run_id);
  // Where all that is stored is settled, only what came since is not.
  const folded = stored?.unsettled === true ? said : { pos: stored?.views.default.pos ?? 0, text: "" };
  if (folded === undefined || (stored?.saidPos ?? 0) > folded.pos) throw new StaleFold();
  const text = commit.unsettledText(run_id, folded.pos, folded.text);
  const payload =
    text.length <= settledCharsMax
      ? { message_id, text }
      : { message_id, text: beginningOf(text, settledCharsMax), truncated: true };
  commit.write(run_id, { type: "message.settled", payload });
}
