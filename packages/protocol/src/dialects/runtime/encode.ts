// Events become messages: each its own, and around it what is derived from it.
//
//   run.lifecycle (running)  ─ held ─┐
//   turn.submitted                   └▶ run.status · turn.submitted · turn.started
//   tool.start                        ▶ tool.started · tool.progress
//   run.lifecycle (done)              ▶ turn.completed · run.status

import type { Message } from "../../dialect.js";
import { type Event, endsRun, type Facts, is, type Scope } from "../../events.js";
import { type Bare, membersOf, withoutDefaults } from "./bare.js";
import { type Derived, derive, deriveOpening, nothing } from "./derive.js";
import { advanced, contextOf, courseOf, isAgain, located, type RuntimeState } from "./state.js";
import { tell } from "./tell.js";
import { runtimeId, runtimeSchemaVersion } from "./types.js";

export type Step = readonly [RuntimeState, readonly Message[]];

export function step(state: RuntimeState, e: Event): Step {
  // A run's first state comes before the event that names its session and turn. It waits for that.
  if (state.ts === null && is(e, "run.lifecycle") && e.child_id === null && !endsRun(e))
    return [{ ...state, ts: e.ts, held: heldOf(e) }, []];
  const here = located(state, e);
  if (here.held === null) return say(here, e, derive);
  const first = here.held;
  const opens = e.type === "turn.submitted" && e.child_id === null;
  const [next, messages] = say({ ...here, held: null }, first, opens ? () => nothing : derive);
  const [last, more] = say(next, e, opens ? () => deriveOpening(first) : derive);
  return [last, [...messages, ...more]];
}

function heldOf({ id, ts, type, run_id, child_id, pos, seq, payload, scope }: Event): RuntimeState["held"] {
  const held = { id, ts, type, run_id, child_id, pos, seq, payload };
  return scope === undefined ? held : { ...held, scope };
}

/** Where an event belongs, belongs what is derived from it: it is joined by these. */
const inheritedIds: ReadonlySet<string> = new Set(
  "session_id thread_id turn_id task_id run_id attempt_id step_id trace_id span_id".split(" "),
);

function inherited(scope: Scope): Scope {
  return Object.fromEntries(Object.entries(scope).filter(([name]) => inheritedIds.has(name)));
}

/** An event's own message, among those that are derived from it. */
function say(state: RuntimeState, e: Event, around: typeof derive): Step {
  const course = courseOf(state, e);
  const { before, after } = around(state, e, course);
  const { id, ts, type, payload, run_id, child_id } = e;
  const scope = withoutDefaults(type, e.scope ?? {}, run_id, child_id);
  const own = tell({ type, payload, child_id, scope }, isAgain(contextOf(state, child_id ?? run_id), e));
  const derived = (of: Derived, i: number): readonly [Bare, string] => [
    { ...of, child_id, scope: { ...inherited(scope), ...of.scope }, members: { derivedFrom: id } },
    `${id}:${i + 1}`,
  ];
  const bares: readonly (readonly [Bare, string])[] = [
    ...before.map(derived),
    [own, id],
    ...after.map((of, i) => derived(of, before.length + i)),
  ];
  const messages = bares.map(([bare, eventId], i): Message => {
    const sequence = state.last + 1 + i;
    const message = envelope(state, run_id, bare, { eventId, timestamp: ts, sequence });
    return { id: String(sequence), data: JSON.stringify(message) };
  });
  return [{ ...advanced(state, e, course), last: state.last + messages.length }, messages];
}

/** A whole message. Ids that the stream knows stand where the message has none. */
export function envelope(
  state: RuntimeState,
  run_id: string,
  bare: Bare,
  of: { readonly eventId: string; readonly timestamp: string; readonly sequence: number },
): Facts {
  const { eventId, timestamp, sequence } = of;
  return {
    type: bare.type,
    eventId,
    schemaVersion: runtimeSchemaVersion,
    timestamp,
    sequence,
    streamId: run_id,
    ...membersOf({ ...bare, scope: { ...known(state, run_id, bare), ...bare.scope } }),
  };
}

function known(state: RuntimeState, stream_id: string, { type, child_id, scope }: Bare): Scope {
  const run_id = child_id ?? stream_id;
  const { turn, step, task, attempt } = contextOf(state, run_id);
  // Who tells of a task names it.
  const isTask = type.startsWith("task.");
  const session_id = state.session ?? stream_id;
  return {
    session_id,
    thread_id: scope.session_id ?? state.thread ?? session_id,
    turn_id: turn ?? contextOf(state, stream_id).turn ?? stream_id,
    ...(task === null || isTask ? {} : { task_id: task }),
    run_id,
    attempt_id: scope.run_id ?? (isTask ? null : attempt) ?? run_id,
    runtime_id: runtimeId,
    // The one that is spawned is not the one that says so.
    ...(child_id === null || type === "subagent.spawned" ? {} : { subagent_id: child_id }),
    ...(/^(?:tool|model|reasoning)\./.test(type) ? { step_id: `step_${step}` } : {}),
  };
}
