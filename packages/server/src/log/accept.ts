// What a producer's drafts do inside a commit: those that are stored already are skipped, and each of the others is held
// against the run's state, its plan gate and its children before it is written.

import { type Draft, is, limits, type Payloads, RunwireError } from "@runwire/protocol";
import { descendant, spawn } from "./children.js";
import type { Commit } from "./commit.js";
import { checkLive, type Head } from "./head.js";
import { forbidden, goOn, headIn, move, type Said } from "./lifecycle.js";

/** Who is writing, so that a retry stores once: the number is that of the first draft. */
export interface ProducerClaim {
  readonly id: string;
  readonly epoch: number;
  readonly seq: number;
}

export interface Appended {
  /** Positions in the full view; null where every draft was already stored or said nothing new. */
  readonly first_pos: number | null;
  readonly last_pos: number;
  readonly last_producer_seq?: number;
}

export function appendDrafts(
  commit: Commit,
  run_id: string,
  drafts: readonly Draft[],
  claim: ProducerClaim | undefined,
  said: ReadonlyMap<string, Said>,
): Appended {
  const head = headIn(commit, run_id);
  const before = head.views.full.pos;
  let fresh = drafts;
  if (claim !== undefined) {
    const stored = storedSeq(head.producers, claim);
    fresh = drafts.slice(Math.max(0, stored + 1 - claim.seq));
    if (fresh.length > 0) {
      const seq = claim.seq + drafts.length - 1;
      commit.mark({ log: run_id, id: claim.id, epoch: claim.epoch, seq });
    }
  }
  if (fresh.length > 0) checkLive(head);
  const resumed = resumptions();
  for (const [i, draft] of fresh.entries()) {
    try {
      accept(commit, run_id, draft, said, resumed.goesOn);
    } catch (error) {
      const place = `event ${drafts.length - fresh.length + i + 1}`;
      throw error instanceof RunwireError && drafts.length > 1 ? error.at(place) : error;
    }
  }
  resumed.finish(commit);
  const after = headIn(commit, run_id);
  const last_pos = after.views.full.pos;
  return {
    first_pos: last_pos > before ? before + 1 : null,
    last_pos,
    ...(claim === undefined ? {} : { last_producer_seq: after.producers[claim.id]?.seq ?? 0 }),
  };
}

/**
 * The last number stored of this producer. Numbers go on across epochs: an older epoch may not write, and a newer
 * one begins after what is stored, because what came before is not its to repeat.
 */
function storedSeq(producers: Head["producers"], claim: ProducerClaim): number {
  const known = Object.hasOwn(producers, claim.id) ? producers[claim.id] : undefined;
  if (known === undefined) bounded(Object.keys(producers).length, limits.producersPerRunMax, "producers");
  const { epoch, seq } = known ?? { epoch: claim.epoch, seq: 0 };
  if (claim.epoch < epoch) {
    throw new RunwireError("KAI-PRODUCER-FENCED-0001", `epoch ${claim.epoch} is older than ${epoch}`);
  }
  if (claim.epoch > epoch ? claim.seq !== seq + 1 : claim.seq > seq + 1) {
    throw new RunwireError("KAI-PRODUCER-GAP-0001", `got ${claim.seq}, the next is ${seq + 1}`);
  }
  return seq;
}

interface Resumptions {
  readonly goesOn: typeof goOn;
  /** After the last draft. */
  finish(commit: Commit): void;
}

/**
 * To go on looks at all that is below a run, and a batch may pause it thousands of times. So that is done when it first
 * goes on, because what follows may be said of what is below, and once more at the end.
 */
function resumptions(): Resumptions {
  const once = new Set<string>();
  const again = new Set<string>();
  return {
    goesOn(commit, run_id) {
      if (once.has(run_id)) again.add(run_id);
      else goOn(commit, run_id);
      once.add(run_id);
    },
    finish(commit) {
      for (const run_id of again) if (headIn(commit, run_id).state === "running") goOn(commit, run_id);
    },
  };
}

/** One draft of a producer, for the run or one of its live descendants. */
function accept(
  commit: Commit,
  run_id: string,
  draft: Draft,
  said: ReadonlyMap<string, Said>,
  goesOn: typeof goOn,
): void {
  const target = draft.child_id == null ? run_id : descendant(commit, run_id, draft.child_id);
  if (is(draft, "run.lifecycle")) {
    const head = headIn(commit, target);
    const { state } = draft.payload;
    const gated = head.state === "planning" || head.state === "awaiting_approval";
    if (head.run.planning_gate === "required" && gated && state === "running") {
      throw forbidden(head, "waits until its plan is approved");
    }
    const payload = { ...withoutLoss(draft.payload), reason: draft.payload.reason ?? null };
    move(commit, target, payload, { said: said.get(target), scope: draft.scope, goesOn });
    return;
  }
  if (is(draft, "child.spawn")) {
    spawn(commit, target, draft.payload, { scope: draft.scope });
    return;
  }
  if (is(draft, "tool.start")) checkNewCall(commit, target, draft.payload.call_id);
  if (is(draft, "approval.requested")) checkNewRequest(commit, target, draft.payload.approval_id);
  if (is(draft, "clarify.requested")) checkNewRequest(commit, target, draft.payload.clarify_id);
  if (is(draft, "steer.accepted"))
    bounded(headIn(commit, target).steers.length, limits.steersWaitingMax, "messages that wait");
  commit.write(target, draft);
  if (is(draft, "plan.proposal")) passGate(commit, target, goesOn);
}

/** What one reader of a stream missed is told to that reader alone, and may have been written down with the rest. */
function withoutLoss({ dropped_count: _, code, ...payload }: Payloads["run.lifecycle"]): typeof payload {
  return code === undefined || code === lossCode ? payload : { ...payload, code };
}

const lossCode = "KAI-STREAM-BUF-0001";

/** Whoever follows a run remembers what is open in it, and pays for that with every event. */
function checkNewCall(commit: Commit, run_id: string, call_id: string): void {
  const { calls } = headIn(commit, run_id);
  if (!Object.hasOwn(calls, call_id)) bounded(Object.keys(calls).length, limits.openCallsMax, "open calls");
}

/** An id is asked under once: a repeated answer to the first request must not answer another. */
function checkNewRequest(commit: Commit, run_id: string, id: string): void {
  const head = headIn(commit, run_id);
  if (Object.hasOwn(head.requests, id)) throw new RunwireError("KAI-RUN-REQUEST-0004", id);
  const { all, open } = head.asked;
  bounded(open, limits.openRequestsMax, "open requests");
  bounded(all, limits.requestsPerRunMax, "requests");
}

function bounded(count: number, max: number, what: string): void {
  if (count >= max) throw new RunwireError("KAI-REQUEST-SIZE-0001", `a run may have ${max} ${what}`);
}

/** A proposed plan waits for a person where the run was started so, and only shows itself otherwise. */
function passGate(commit: Commit, run_id: string, goesOn: typeof goOn): void {
  const { state, run } = headIn(commit, run_id);
  if (state !== "planning") return;
  if (run.planning_gate === "required")
    move(commit, run_id, { state: "awaiting_approval", reason: "plan proposed" });
  if (run.planning_gate === "preview")
    move(commit, run_id, { state: "running", reason: "plan shown" }, { goesOn });
}
