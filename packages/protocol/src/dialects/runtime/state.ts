// What an encoder remembers: where the stream stands, and per run that lives what later messages refer to. What has
// ended is dropped, so the state stays small however long the log is.

import { type Event, endsRun, type Facts, is } from "../../events.js";
import { isId } from "../../ids.js";
import { isObject } from "../../parse.js";
import { isFinal } from "../../state.js";

export interface RuntimeState {
  /** The number of the last message. */
  readonly last: number;
  /** The time of the last event. */
  readonly ts: string | null;
  readonly session: string | null;
  readonly thread: string | null;
  /** The first event, while it waits for the second to say which session and turn this is. */
  readonly held: Event | null;
  /** By run id: the log's own, and those below it that live. */
  readonly runs: { readonly [run_id: string]: RunContext };
}

export interface RunContext {
  readonly turn: string | null;
  readonly turnIs: "open" | "started" | "ended";
  /** The step that is being made. */
  readonly step: number;
  /** Calls that were told and have not ended, and the last of those that have. */
  readonly calls: readonly string[];
  readonly ended: readonly string[];
  /** Approvals of calls that wait, by their ids. */
  readonly asked: { readonly [approval_id: string]: string };
  /** Processes that end with their call, by the call. */
  readonly processes: { readonly [call_id: string]: string };
  readonly plan: string | null;
  /** The plan that waits for approval. */
  readonly planAsked: string | null;
}

export const firstState: RuntimeState = {
  last: 0,
  ts: null,
  session: null,
  thread: null,
  held: null,
  runs: {},
};

const firstContext: RunContext = {
  turn: null,
  turnIs: "open",
  step: 0,
  calls: [],
  ended: [],
  asked: {},
  processes: {},
  plan: null,
  planAsked: null,
};

/** Ends of calls that are remembered, so that a second one is not told as another end. */
const endedMax = 32;

export function contextOf({ runs }: RuntimeState, run_id: string): RunContext {
  return (Object.hasOwn(runs, run_id) ? runs[run_id] : undefined) ?? firstContext;
}

/** Whether the call that an event is about has been told already. */
export function isAgain({ calls, ended }: RunContext, e: Event): boolean {
  if (is(e, "tool.call") || is(e, "tool.start")) return calls.includes(e.payload.call_id);
  return is(e, "tool.end") && ended.includes(e.payload.call_id) && !calls.includes(e.payload.call_id);
}

/** Session, thread and turn, as soon as an event says them: messages of that event have them too. */
export function located(state: RuntimeState, e: Event): RuntimeState {
  if (e.type !== "turn.submitted" && e.type !== "turn.started") return state;
  const run = e.child_id ?? e.run_id;
  const turn = idIn(e, "turn_id");
  const moved = turn === null ? state : withContext(state, run, { turn });
  if (e.child_id !== null) return moved;
  return {
    ...moved,
    session: idIn(e, "session_id") ?? moved.session,
    thread: idIn(e, "thread_id") ?? moved.thread,
  };
}

/** What an event changes for those after it. */
export function advanced(state: RuntimeState, e: Event): RuntimeState {
  const run = e.child_id ?? e.run_id;
  const moved = { ...state, ts: e.ts };
  if (is(e, "run.lifecycle") && isFinal(e.payload.state))
    return endsRun(e) ? { ...moved, runs: {} } : dropped(moved, run);
  const change = changeOf(contextOf(state, run), e);
  return change === undefined ? moved : withContext(moved, run, change);
}

function changeOf(context: RunContext, e: Event): Partial<RunContext> | undefined {
  const { calls, ended, asked, processes, plan } = context;
  if (is(e, "tool.call") || is(e, "tool.start")) {
    const { call_id } = e.payload;
    return calls.includes(call_id) ? undefined : { calls: [...calls, call_id] };
  }
  if (is(e, "tool.end")) {
    const { call_id } = e.payload;
    const { [call_id]: _, ...others } = processes;
    return {
      processes: others,
      calls: calls.filter((id) => id !== call_id),
      ended: [...ended.filter((id) => id !== call_id), call_id].slice(-endedMax),
    };
  }
  if (e.type.startsWith("process.")) return processChange(processes, e);
  if (is(e, "step.boundary")) return { step: e.payload.step_index + 1 };
  if (is(e, "approval.requested")) {
    const { approval_id, call_id } = e.payload;
    return call_id == null ? undefined : { asked: { ...asked, [approval_id]: call_id } };
  }
  if (is(e, "approval.resolved")) {
    const { [e.payload.approval_id]: _, ...others } = asked;
    return { asked: others };
  }
  if (is(e, "plan.proposal")) return { plan: e.payload.plan.id };
  if (is(e, "run.lifecycle")) {
    const { state } = e.payload;
    return {
      planAsked: state === "awaiting_approval" ? plan : null,
      ...(state === "running" && context.turnIs === "open" ? { turnIs: "started" } : {}),
    };
  }
  if (is(e, "turn.submitted")) return context.turnIs === "ended" ? { turnIs: "open" } : undefined;
  if (is(e, "turn.started")) return { turnIs: "started" };
  if (is(e, "turn.completed") || is(e, "turn.failed")) return { turnIs: "ended" };
  return undefined;
}

function processChange(
  processes: RunContext["processes"],
  { type, payload, scope }: Event,
): Partial<RunContext> | undefined {
  const { tool_call_id: call_id, process_id } = scope ?? {};
  if (call_id === undefined || process_id === undefined) return undefined;
  if (type === "process.started" && (payload as Facts).endsWithCall === true)
    return { processes: { ...processes, [call_id]: process_id } };
  const isEnd = /\.(?:completed|failed|terminated)$/.test(type);
  if (!isEnd || !Object.hasOwn(processes, call_id) || processes[call_id] !== process_id) return undefined;
  const { [call_id]: _, ...others } = processes;
  return { processes: others };
}

function withContext(state: RuntimeState, run_id: string, change: Partial<RunContext>): RuntimeState {
  const context = { ...contextOf(state, run_id), ...change };
  return { ...state, runs: { ...state.runs, [run_id]: context } };
}

function dropped(state: RuntimeState, run_id: string): RuntimeState {
  const { [run_id]: _, ...runs } = state.runs;
  return { ...state, runs };
}

function idIn({ scope, payload }: Event, name: string): string | null {
  for (const from of [scope, payload]) {
    const id = isObject(from) && Object.hasOwn(from, name) ? from[name] : undefined;
    if (isId(id)) return id;
  }
  return null;
}
