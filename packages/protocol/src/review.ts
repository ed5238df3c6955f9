// What people have decided about a run: approvals, answers, plans, and what they said or ordered. A fold over its log that
// holds what waits, and so many decisions; all of them are counted.

import { type AnyEvent, type Event, type Facts, is } from "./events.js";
import { isFinal, parentPaused, parentResumed } from "./state.js";

export interface Decision extends Facts {
  readonly at: string;
  readonly event_id: string;
  /** The run that it is about. */
  readonly run_id: string;
  readonly kind: "approval" | "clarification" | "plan" | "steer" | "control";
  /** `person`; `nobody`, where the time was over; `run`, where it no longer mattered. Or whoever the event names. */
  readonly who: string;
  readonly decision: string;
}

export interface Review {
  readonly run_id: string;
  readonly decisions: readonly Decision[];
  readonly decisions_total: number;
  /** What still waits for somebody. */
  readonly waiting: readonly Facts[];
}

export interface Reviewer {
  hear(e: Event): void;
  review(): Review;
}

/** Of each list; the first are kept, and the total says how many there are. */
export const evidenceListMax = 1000;

export function reviewer(run_id: string): Reviewer {
  const decisions: Decision[] = [];
  let total = 0;
  const waiting = new Map<string, Facts>();
  /** The last plan of each run that has not ended. */
  const plans = new Map<string, string>();

  function hear(e: Event): void {
    const run = e.child_id ?? e.run_id;
    hearPlan(e, run);
    const asked = askedIn(e as AnyEvent);
    if (asked !== undefined) wait(run, e.ts, asked);
    const decided = decisionIn(e as AnyEvent);
    if (decided === undefined) return;
    const key = keyOf(run, decided);
    const request = waiting.get(key);
    waiting.delete(key);
    total += 1;
    if (decisions.length >= evidenceListMax) return;
    const { id: _, kind: __, ...about } = request ?? {};
    decisions.push({ at: e.ts, event_id: e.id, ...about, run_id: run, who: whoIn(e), ...decided });
  }

  function wait(run_id: string, asked_at: string, asked: Asked): void {
    if (waiting.size < evidenceListMax) waiting.set(keyOf(run_id, asked), { run_id, asked_at, ...asked });
  }

  /** A plan waits as long as its run does. */
  function hearPlan(e: Event, run: string): void {
    if (is(e, "plan.proposal")) {
      const { id } = e.payload.plan;
      plans.set(run, id);
      // Another one takes its place.
      const asked = waiting.get(keyOf(run, planAsked));
      if (asked !== undefined) waiting.set(keyOf(run, planAsked), { ...asked, id });
    }
    if (!is(e, "run.lifecycle")) return;
    const { state } = e.payload;
    if (state === "awaiting_approval") wait(run, e.ts, { ...planAsked, id: plans.get(run) ?? null });
    else waiting.delete(keyOf(run, planAsked));
    if (isFinal(state)) plans.delete(run);
  }

  return {
    hear,
    review: () => ({
      run_id,
      decisions,
      decisions_total: total,
      waiting: [...waiting.values()],
    }),
  };
}

type Asked = Facts & { readonly id: string | null; readonly kind: Decision["kind"] };

const planAsked = { id: null, kind: "plan" } as const;

/** A run has one plan, and one request of a kind under an id. */
function keyOf(run: string, { id, kind }: { readonly id: unknown; readonly kind: string }): string {
  return kind === "plan" ? `${run} plan` : `${run} ${kind} ${id}`;
}

function askedIn(e: AnyEvent): Asked | undefined {
  if (is(e, "approval.requested")) {
    const { approval_id: id, call_id, tool, effect } = e.payload;
    return { id, kind: "approval", ...given({ call_id, tool, effect }) };
  }
  if (is(e, "clarify.requested")) {
    const { clarify_id: id, call_id, question } = e.payload;
    return { id, kind: "clarification", ...given({ call_id, question }) };
  }
  return undefined;
}

type Decided = Facts & { readonly id: unknown; readonly kind: Decision["kind"]; readonly decision: string };

function decisionIn(e: AnyEvent): Decided | undefined {
  switch (e.type) {
    case "approval.resolved": {
      const { approval_id: id, decision, reason, outcome, input, covered_by } = e.payload;
      const edited = input === undefined ? {} : { edited: true };
      return { id, kind: "approval", decision, ...given({ reason, outcome, covered_by }), ...edited };
    }
    case "clarify.resolved": {
      const { clarify_id: id, answer, outcome } = e.payload;
      const decision = answer == null ? "unanswered" : "answered";
      return { id, kind: "clarification", decision, ...given({ answer, outcome }) };
    }
    case "steer.accepted": {
      const { steer_id: id, text } = e.payload;
      return { id, kind: "steer", decision: "said", text };
    }
    case "control.requested": {
      const { action, plan_id: id, approved, steps, reason, instruction } = e.payload;
      if (action !== "approve_plan")
        return { id: null, kind: "control", decision: action, ...given({ reason, instruction }) };
      const decision = approved === false ? "rejected" : Array.isArray(steps) ? "edited" : "approved";
      return { id: id ?? null, kind: "plan", decision, ...given({ reason }) };
    }
    default:
      return undefined;
  }
}

function whoIn({ payload }: Event): string {
  const { by, outcome, reason } = payload as Facts;
  if (typeof by === "string") return by;
  if (outcome === "expired") return "nobody";
  // What an ancestor's end or pause does to a run nobody has decided about it.
  return outcome === "closed" || reason === parentPaused || reason === parentResumed ? "run" : "person";
}

/** Without what is not there. */
function given(facts: Facts): Facts {
  return Object.fromEntries(Object.entries(facts).filter(([, value]) => value != null));
}
