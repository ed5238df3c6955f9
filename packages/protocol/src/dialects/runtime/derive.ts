// Messages that follow surely from an event and that readers of the standard wait for. Each names the event it is
// derived from, and a decoder passes over it: the event's own message says everything.

import { type Event, type Facts, flowOf, is, type Scope } from "../../events.js";
import { isFinal } from "../../state.js";
import { itemsAround } from "./items.js";
import { statusWords } from "./rows.js";
import { contextOf, endOfTurn, type RuntimeState } from "./state.js";
import { type TaskCourse, taskEnds, taskMoves } from "./tasks.js";

export interface Derived {
  readonly type: string;
  readonly scope: Scope;
  readonly payload: Facts;
}

export interface Around {
  readonly before: readonly Derived[];
  readonly after: readonly Derived[];
}

export const nothing: Around = { before: [], after: [] };

/** The opening of a run that runs at once: its turn has started, and is told so when it is known which it is. */
export function deriveOpening(first: Event): Around {
  return is(first, "run.lifecycle") && first.payload.state === "running"
    ? after(turn("started", {}))
    : nothing;
}

/** What is said around an event's own message. `state` is that before the event, `course` what it does to tasks. */
export function derive(state: RuntimeState, e: Event, course: TaskCourse): Around {
  const items = itemsAround(contextOf(state, e.child_id ?? e.run_id), e);
  // Almost every delta.
  if (flowOf(e.type) !== "control") return items;
  const { before, after } = deriveRun(state, e, taskEnds(course, e));
  return {
    before: [...items.before, ...before],
    after: [...after, ...items.after, ...taskMoves(course, e)],
  };
}

function deriveRun(state: RuntimeState, e: Event, ends: readonly Derived[]): Around {
  const context = contextOf(state, e.child_id ?? e.run_id);
  const { turnIs, asked, processes, planAsked, plan } = context;
  if (is(e, "tool.start")) {
    const scope = { tool_call_id: e.payload.call_id };
    return after({ type: "tool.progress", scope, payload: { status: "running" } });
  }
  if (is(e, "tool.end")) {
    const { call_id } = e.payload;
    const process_id = Object.hasOwn(processes, call_id) ? processes[call_id] : undefined;
    if (process_id === undefined) return nothing;
    const scope = { tool_call_id: call_id, process_id };
    return before({ type: "process.terminated", scope, payload: { signal: null, reason: "ended" } });
  }
  if (is(e, "approval.requested") && e.payload.call_id != null) {
    const { approval_id, call_id } = e.payload;
    const scope = { action_id: approval_id, tool_call_id: call_id };
    return after({ type: "permission.requested", scope, payload: {} });
  }
  if (is(e, "approval.resolved")) {
    const { approval_id, decision } = e.payload;
    const call_id = Object.hasOwn(asked, approval_id) ? asked[approval_id] : undefined;
    if (call_id == null) return nothing;
    const scope = { action_id: approval_id, tool_call_id: call_id };
    return after({ type: "permission.resolved", scope, payload: { decision } });
  }
  if (!is(e, "run.lifecycle")) return nothing;
  const { state: to, reason } = e.payload;
  const answered = planAsked === null ? [] : [planAnswer(planAsked, to)];
  const asks = to === "awaiting_approval" && plan !== null ? [planQuestion(plan)] : [];
  // What a run below does is told of it as a subagent; the turn is that of the stream's run.
  if (e.child_id !== null || endOfTurn(context) !== undefined)
    return { before: [...answered, ...ends], after: asks };
  if (isFinal(to)) {
    const why = reason == null ? {} : { reason };
    const end = turn(to === "done" ? "completed" : "failed", { ...statusWords[to], ...why });
    return { before: [...answered, ...ends, end], after: [] };
  }
  const starts = to === "running" && turnIs === "open" ? [turn("started", {})] : [];
  return { before: answered, after: [...asks, ...starts] };
}

function after(...messages: readonly Derived[]): Around {
  return { before: [], after: messages };
}

function before(...messages: readonly Derived[]): Around {
  return { before: messages, after: [] };
}

function turn(name: "started" | "completed" | "failed", payload: Facts): Derived {
  return { type: `turn.${name}`, scope: {}, payload };
}

function planQuestion(plan_id: string): Derived {
  const payload = {
    actionType: "plan_approval",
    prompt: "Approve the plan",
    availableDecisions: ["approve", "deny"],
  };
  return { type: "action.required", scope: { action_id: plan_id }, payload };
}

function planAnswer(plan_id: string, to: string): Derived {
  const decision = to === "running" ? "approve" : to === "planning" ? "revise" : "deny";
  return {
    type: "action.resolved",
    scope: { action_id: plan_id },
    payload: { actionType: "plan_approval", decision },
  };
}
