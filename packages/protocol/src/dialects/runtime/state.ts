// What an encoder remembers: where the stream stands, and per run that lives what later messages refer to. What has
// ended is dropped, so the state stays small however long the log is.

import { type Event, endsRun, type Facts, flowOf, is } from "../../events.js";
import { remembering } from "../../folding.js";
import { isId } from "../../ids.js";
import { limits } from "../../limits.js";
import { isObject } from "../../parse.js";
import { isFinal, type RunState } from "../../state.js";
import type { Tasks } from "../../tasks.js";
import { kindOf, type Speaking, silent, spokenAfter } from "./speaking.js";
import { soleTask, type TaskCourse, taskCourse } from "./tasks.js";

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
  /** Those that are open, and the last of those that have ended. */
  readonly tasks: Tasks;
}

export interface RunContext {
  readonly state: RunState | null;
  readonly turn: string | null;
  readonly turnIs: "open" | "started" | TurnEnd;
  /** The step that is being made. */
  readonly step: number;
  /** Calls that were told and have not ended, with the kinds of their items, and the last of those that have. */
  readonly calls: { readonly [call_id: string]: string };
  readonly ended: readonly string[];
  readonly speaking: Speaking;
  /** Approvals that wait, by their ids, with the calls that they are for. */
  readonly asked: { readonly [approval_id: string]: string | null };
  /** Questions that wait. */
  readonly questions: readonly string[];
  /** Processes that end with their call, by the call. */
  readonly processes: { readonly [call_id: string]: string };
  readonly plan: string | null;
  /** The plan that waits for approval. */
  readonly planAsked: string | null;
  /** Its open task, where it has one and no more, and the attempt at it. */
  readonly task: string | null;
  readonly attempt: string | null;
}

/** A turn may end before its run does. */
export type TurnEnd = "completed" | "failed" | "cancelled";

export const firstState: RuntimeState = {
  last: 0,
  ts: null,
  session: null,
  thread: null,
  held: null,
  runs: {},
  tasks: {},
};

const firstContext: RunContext = {
  state: null,
  turn: null,
  turnIs: "open",
  step: 0,
  calls: {},
  ended: [],
  speaking: silent,
  asked: {},
  processes: {},
  questions: [],
  plan: null,
  planAsked: null,
  task: null,
  attempt: null,
};

/** Ends of calls that are remembered, so that a second one is not told as another end. */
const endedMax = 32;

export function contextOf({ runs }: RuntimeState, run_id: string): RunContext {
  return (Object.hasOwn(runs, run_id) ? runs[run_id] : undefined) ?? firstContext;
}

/** How the turn ended, if it did. */
export function endOfTurn({ turnIs }: RunContext): TurnEnd | undefined {
  return turnIs === "open" || turnIs === "started" ? undefined : turnIs;
}

/** Whether the call that an event is about has been told already. */
export function isAgain({ calls, ended }: RunContext, e: Event): boolean {
  const isKnown = (call_id: string): boolean => Object.hasOwn(calls, call_id);
  if (is(e, "tool.call") || is(e, "tool.start")) return isKnown(e.payload.call_id);
  return is(e, "tool.end") && ended.includes(e.payload.call_id) && !isKnown(e.payload.call_id);
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

/** What an event changes for those after it. `course` is what it does to tasks. */
export function advanced(state: RuntimeState, e: Event, course: TaskCourse): RuntimeState {
  const moved = withRun(state, e);
  if (course.after === state.tasks || endsRun(e)) return moved;
  const isEnd = is(e, "run.lifecycle") && isFinal(e.payload.state);
  return isEnd ? { ...moved, tasks: course.after } : withTasks(moved, state.tasks, course.after);
}

/** What an event does to tasks; nothing, for those that come in numbers. */
export function courseOf(state: RuntimeState, e: Event): TaskCourse {
  const { tasks } = state;
  if (flowOf(e.type) !== "control") return { before: tasks, told: tasks, after: tasks };
  const run_id = e.child_id ?? e.run_id;
  const before = contextOf(state, run_id);
  const { state: at, asked, questions } = { ...before, ...changeOf(before, e) };
  return taskCourse(tasks, e, at, Object.keys(asked).length, questions.length);
}

function withRun(state: RuntimeState, e: Event): RuntimeState {
  const run = e.child_id ?? e.run_id;
  const moved = { ...state, ts: e.ts };
  if (is(e, "run.lifecycle") && isFinal(e.payload.state))
    return endsRun(e) ? ended(moved, run) : dropped(moved, run);
  const change = changeOf(contextOf(state, run), e);
  return change === undefined ? moved : withContext(moved, run, change);
}

/** Nothing follows; whoever comes is still told of the turn, and how it ended. */
function ended(state: RuntimeState, run: string): RuntimeState {
  const { turn, turnIs } = contextOf(state, run);
  return { ...state, runs: { [run]: { ...firstContext, turn, turnIs } }, tasks: {} };
}

/** Each run that lives knows whether it has one task, and which. */
function withTasks(state: RuntimeState, before: Tasks, tasks: Tasks): RuntimeState {
  const owners = new Set(
    [...Object.keys(before), ...Object.keys(tasks)]
      .filter((id) => before[id] !== tasks[id])
      .map((id) => (tasks[id] ?? before[id])?.run_id ?? ""),
  );
  let moved: RuntimeState = { ...state, tasks };
  for (const run of owners) {
    const sole = soleTask(tasks, run);
    if (sole.task !== null || Object.hasOwn(moved.runs, run)) moved = withContext(moved, run, sole);
  }
  return moved;
}

function changeOf(context: RunContext, e: Event): Partial<RunContext> | undefined {
  const change = changeOfRun(context, e);
  const speaking = spokenAfter(context.speaking, e);
  return speaking === context.speaking ? change : { ...change, speaking };
}

function changeOfRun(context: RunContext, e: Event): Partial<RunContext> | undefined {
  const { calls, ended, asked, questions, processes, plan } = context;
  if (is(e, "tool.call") || is(e, "tool.start")) {
    const { call_id, tool } = e.payload;
    if (Object.hasOwn(calls, call_id)) return undefined;
    return { calls: remembering(calls, call_id, kindOf(tool), limits.openCallsMax) };
  }
  if (is(e, "tool.end")) {
    const { call_id } = e.payload;
    const { [call_id]: _, ...others } = calls;
    const { [call_id]: __, ...running } = processes;
    return {
      calls: others,
      processes: running,
      ended: [...ended.filter((id) => id !== call_id), call_id].slice(-endedMax),
    };
  }
  if (e.type.startsWith("process.")) return processChange(processes, e);
  if (is(e, "step.boundary")) return { step: e.payload.step_index + 1 };
  if (is(e, "approval.requested")) {
    const { approval_id, call_id } = e.payload;
    return { asked: { ...asked, [approval_id]: call_id ?? null } };
  }
  if (is(e, "approval.resolved")) {
    const { [e.payload.approval_id]: _, ...others } = asked;
    return { asked: others };
  }
  if (is(e, "clarify.requested")) {
    const { clarify_id } = e.payload;
    return questions.includes(clarify_id) ? undefined : { questions: [...questions, clarify_id] };
  }
  if (is(e, "clarify.resolved")) {
    const { clarify_id } = e.payload;
    return { questions: questions.filter((id) => id !== clarify_id) };
  }
  if (is(e, "plan.proposal")) return { plan: e.payload.plan.id };
  if (is(e, "run.lifecycle")) {
    const { state } = e.payload;
    return {
      state,
      planAsked: state === "awaiting_approval" ? plan : null,
      ...(state === "running" && context.turnIs === "open" ? { turnIs: "started" } : {}),
    };
  }
  if (is(e, "turn.submitted")) return endOfTurn(context) === undefined ? undefined : { turnIs: "open" };
  if (is(e, "turn.started")) return { turnIs: "started" };
  if (is(e, "turn.completed")) return { turnIs: "completed" };
  if (is(e, "turn.failed")) return { turnIs: e.payload.status === "cancelled" ? "cancelled" : "failed" };
  return undefined;
}

function processChange(
  processes: RunContext["processes"],
  { type, payload, scope }: Event,
): Partial<RunContext> | undefined {
  const { tool_call_id: call_id, process_id } = scope ?? {};
  if (call_id === undefined || process_id === undefined) return undefined;
  if (type === "process.started" && (payload as Facts).endsWithCall === true)
    return { processes: remembering(processes, call_id, process_id, limits.openCallsMax) };
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
