// CODEC for the runtime event stream: what anyone says in it comes back as it was said, and what the log says comes back
// as the events it was made of. What a stream gives anew (id, time, number) and fills in (ids that it knows) is written
// down here a second time, in its own words.

import {
  type Draft,
  type Event,
  isId,
  type Message,
  type RuntimeMessage,
  runtime,
  runtimeJsonRpc,
  runtimeTypes,
} from "@runwire/protocol";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { arbitraryEvent } from "../arbitraries.js";
import { arbitraryRun, eventsOf } from "../arbitrary-runs.js";
import { arbitraryRuntimeMessage } from "../arbitrary-runtime.js";
import { isSoak } from "../gateway/chance.js";

type State = typeof runtime.first;

const runs = (count: number): number => (isSoak ? count * 25 : count);

describe("a runtime message", () => {
  it("comes back as it was said, with the ids that the stream knows [RW-RUNTIME-3]", () => {
    fc.assert(fc.property(arbitraryRuntimeMessage(), comesBack), { numRuns: runs(400) });
  });

  it.each(runtimeTypes)("comes back as it was said: %s [RW-RUNTIME-3]", (type) => {
    fc.assert(fc.property(arbitraryRuntimeMessage(fc.constant(type)), comesBack), { numRuns: runs(8) });
  });

  it("may lack its id, time and number, and is refused where they are wrong [RW-RUNTIME-4]", () => {
    expect(decode({ type: "task.created" } as never)).toEqual([{ type: "task.created", payload: {} }]);
    for (const wrong of [
      [],
      {},
      { type: 5 },
      { type: "task" },
      { type: "task created.now" },
      { type: "task.created", eventId: "" },
      { type: "task.created", eventId: 5 },
      { type: "task.created", timestamp: "yesterday" },
      { type: "task.created", sequence: -1 },
      { type: "task.created", sequence: 1.5 },
    ]) {
      expect(() => decode(wrong as never)).toThrow(
        expect.objectContaining({ code: "KAI-STREAM-PROTO-0001" }),
      );
    }
  });

  it("is refused where it is too deep, and read in no time where it holds itself many times over [RW-RUNTIME-4]", () => {
    for (const levels of [300, 5000]) {
      const data = `{"type":"task.created","payload":${"[".repeat(levels)}${"]".repeat(levels)}}`;
      expect(() => decodeMessage({ data })).toThrow("nested deeper");
    }
    let within: object = { type: "tool.start", payload: { call_id: "c", tool: "t", toolName: "u" } };
    for (let level = 0; level < 80; level++)
      within = { type: "tool.start", payload: { call_id: "c", tool: "t", rest: { native: within } } };
    const message = { type: "tool.args", toolCallId: "c", native: within, payload: { toolName: "t" } };
    expect(decode(message as never)).toHaveLength(1);
  });

  it("that is derived from another is passed over: the other says it [RW-RUNTIME-5]", () => {
    expect(
      decode({ type: "turn.started", eventId: "e:1", timestamp: "2026-01-01T00:00:00Z", derivedFrom: "e" }),
    ).toEqual([]);
  });
});

describe("a derived message", () => {
  it("belongs where the one belongs that it is derived from [RW-RUNTIME-5]", () => {
    const scope = {
      ...{ session_id: "s", thread_id: "th", turn_id: "tu", task_id: "ta", run_id: "r", attempt_id: "a" },
      ...{ step_id: "st", trace_id: "4bf92f3577b34da6a3ce929d0e0e4736", span_id: "00f067aa0ba902b7" },
    };
    const start: Draft = { type: "tool.start", payload: { call_id: "c", tool: "t", input: {} }, scope };
    const said = encode([opening("run_1"), ...eventsOf("run_1", [start])]).map(parsed);
    const told = said.filter(
      ({ derivedFrom, toolCallId }) => derivedFrom !== undefined && toolCallId === "c",
    );
    expect(told.map(({ type }) => type)).toEqual(expect.arrayContaining(["tool.progress"]));
    for (const message of told) {
      expect(message).toMatchObject({
        ...{ sessionId: "s", threadId: "th", turnId: "tu", taskId: "ta", runId: "r", attemptId: "a" },
        ...{ stepId: "st", traceId: scope.trace_id, spanId: scope.span_id },
      });
    }
  });
});

describe("a stream of messages", () => {
  it("comes back in its order, each as it was said [RW-RUNTIME-3]", () => {
    // A call is another in each message here; what is said of one twice has its own rule.
    const stream = fc.array(arbitraryRuntimeMessage(), { maxLength: 12 }).map((messages) =>
      messages.map((message, i) => {
        const { tool_call_id: _, ...others } = message;
        return {
          ...others,
          eventId: `e${i}`,
          ...(isId(message.toolCallId) ? { toolCallId: `call_${i}` } : {}),
        };
      }),
    );
    fc.assert(
      fc.property(stream, (messages) => {
        const drafts = messages.flatMap((message) => decode(message as RuntimeMessage));
        const events = drafts.map(
          (draft, i) => ({ ...opening("run_1"), ...draft, run_id: "run_1", pos: i + 2 }) as Event,
        );
        const said = encode([opening("run_1"), ...events]).map(parsed);
        const own = said.filter(
          ({ derivedFrom, eventId }) => derivedFrom === undefined && eventId !== "evt_0",
        );
        expect(own.map(({ eventId }) => eventId)).toEqual(messages.map(({ eventId }) => eventId));
        // Arguments that come first start their call.
        const types = messages.map(({ type }, at) =>
          drafts[at]?.type === "tool.start" ? "tool.started" : type,
        );
        expect(own.map(({ type }) => type)).toEqual(types);
        expect(own.map(({ payload }) => payload)).toEqual(
          messages.map(({ payload }) => (payload === undefined ? {} : payload)),
        );
      }),
      { numRuns: runs(40) },
    );
  });
});

describe("an event", () => {
  it("comes back as the event it was, whatever members it has [RW-RUNTIME-2]", () => {
    fc.assert(
      fc.property(arbitraryEvent, (e) => {
        const log = [opening(e.run_id), e];
        expect(heard(log)).toEqual(projected(log));
      }),
      { numRuns: runs(400) },
    );
  });

  it("comes back in its place, with a whole run around it [RW-RUNTIME-2]", () => {
    fc.assert(
      fc.property(arbitraryRun(), ({ run_id, drafts }) => {
        const log = eventsOf(run_id, drafts);
        expect(heard(log)).toEqual(projected(log));
      }),
      { numRuns: runs(60) },
    );
  });
});

describe("a runtime stream", () => {
  it("counts its messages from 1, each under an id of its own [RW-RUNTIME-1]", () => {
    fc.assert(
      fc.property(arbitraryRun(), ({ run_id, drafts }) => {
        const messages = encode(eventsOf(run_id, drafts));
        expect(messages.map(({ id }) => id)).toEqual(messages.map((_, i) => String(i + 1)));
        const said = messages.map(parsed);
        expect(said.map(({ sequence }) => sequence)).toEqual(messages.map((_, i) => i + 1));
        expect(new Set(said.map(({ eventId }) => eventId)).size).toBe(said.length);
        expect(said.every(({ streamId }) => streamId === run_id)).toBe(true);
      }),
      { numRuns: runs(40) },
    );
  });

  it("starts a call once and ends it once, whatever the run does [RW-RUNTIME-6]", () => {
    fc.assert(
      fc.property(arbitraryRun(), fc.nat(), ({ run_id, drafts }, pick) => {
        // As a producer would that is not sure whether it was heard.
        const repeated = drafts.flatMap((draft, i) =>
          draft.type.startsWith("tool.") && (pick + i) % 3 === 0 ? [draft, draft] : [draft],
        );
        const said = encode(eventsOf(run_id, repeated)).map(parsed);
        for (const types of [["tool.started"], ["tool.result", "tool.failed"]]) {
          const calls = said.filter(({ type }) => types.includes(type)).map(({ toolCallId }) => toolCallId);
          expect(calls).toEqual([...new Set(calls)]);
        }
      }),
      { numRuns: runs(40) },
    );
  });

  it("ends every attempt before its task, every task before the turn, and none twice [RW-RUNTIME-13]", () => {
    fc.assert(
      fc.property(arbitraryRun({ childLevels: 1 }), ({ run_id, drafts }) => {
        // As a producer would that leaves the ends to whoever ends its run.
        const begun: Draft[] = [
          { type: "task.started", payload: {}, scope: { task_id: "t" } },
          { type: "task.attempt.started", payload: {}, scope: { task_id: "t", run_id: "a" } },
        ];
        const said = encode(eventsOf(run_id, [...drafts.slice(0, 2), ...begun, ...drafts.slice(2)])).map(
          parsed,
        );
        const of = (pattern: RegExp) =>
          said.flatMap(({ type, taskId }, i) => (taskId === "t" && pattern.test(type) ? [i] : []));
        const attempt = of(/^task\.attempt\.(completed|failed)$/);
        const task = of(/^task\.(completed|failed|cancelled)$/);
        expect([attempt.length, task.length]).toEqual([1, 1]);
        const turn = said.findLastIndex(({ type }) => type === "turn.completed" || type === "turn.failed");
        expect([...attempt, ...task, turn]).toEqual([...attempt, ...task, turn].toSorted((a, b) => a - b));
        if (said[task[0] as number]?.type === "task.cancelled")
          expect(of(/^task\.cancel_requested$/)[0]).toBeLessThan(attempt[0] as number);
        // Whatever the run waited for, its task did, and went on.
        const waits = of(/^task\.(waiting|paused|resumed)$/).map((i) => said[i]?.type);
        expect(waits.every((type, i) => type !== "task.resumed" || waits[i - 1] !== type)).toBe(true);
      }),
      { numRuns: runs(40) },
    );
  });

  it("starts each item once and completes it once, before its run ends [RW-RUNTIME-14]", () => {
    fc.assert(
      fc.property(arbitraryRun({ childLevels: 1 }), ({ run_id, drafts }) => {
        const said = encode(eventsOf(run_id, drafts)).map(parsed);
        const items = said.filter(
          ({ type, payload }) => /^item\./.test(type) && "itemId" in (payload as object),
        );
        const named = (name: string): readonly string[] =>
          items
            .filter(({ type, derivedFrom }) => type === `item.${name}` && derivedFrom !== undefined)
            .map(({ childId, payload }) => JSON.stringify([childId, (payload as { itemId: string }).itemId]));
        const [started, completed] = [named("started"), named("completed")];
        expect(new Set(started).size).toBe(started.length);
        expect(new Set(completed).size).toBe(completed.length);
        expect(completed.filter((item) => !started.includes(item))).toEqual([]);
        // What the model says is over with its run, at the latest; a call that nobody ended is not.
        const ends = drafts.filter(
          ({ type, payload }) =>
            type === "run.lifecycle" &&
            /done|aborted|error/.test(String((payload as { state: string }).state)),
        );
        const open = started.filter((item) => !completed.includes(item));
        if (ends.length === 1 + drafts.filter(({ type }) => type === "child.spawn").length)
          expect(open.filter((item) => !item.includes("call_"))).toEqual([]);
        const texts = drafts.some(
          ({ type, payload, child_id }) =>
            child_id == null && type === "text.delta" && payload.call_id == null && payload.text !== "",
        );
        const isMessage = ({ childId, payload }: RuntimeMessage): boolean =>
          childId === undefined && (payload as { itemType?: unknown }).itemType === "agent_message";
        if (texts) expect(items.some(isMessage)).toBe(true);
      }),
      { numRuns: runs(60) },
    );
  });

  it("remembers nothing of what has ended but its turn [RW-RUNTIME-1]", () => {
    const stateAfter = (run_id: string, drafts: readonly Draft[]) =>
      eventsOf(run_id, drafts).reduce((at, e) => runtime.step(at, e)[0], runtime.first);
    const brief = (["running", "done"] as const).map(
      (state): Draft => ({ type: "run.lifecycle", payload: { state, reason: null } }),
    );
    fc.assert(
      fc.property(arbitraryRun(), ({ run_id, drafts }) => {
        const state = stateAfter(run_id, drafts);
        const { turn, turnIs } = state.runs[run_id] ?? {};
        const [idle] = Object.values(stateAfter(run_id, brief).runs);
        expect(state.runs).toEqual({ [run_id]: { ...idle, turn, turnIs } });
        expect(JSON.parse(JSON.stringify(state))).toEqual(state);
      }),
      { numRuns: runs(20) },
    );
  });

  it("is the same in JSON-RPC, a notification a message [RW-RUNTIME-9]", () => {
    fc.assert(
      fc.property(arbitraryRun({ childLevels: 1 }), ({ run_id, drafts }) => {
        const log = eventsOf(run_id, drafts);
        const plain = encode(log);
        const called = encode(log, runtimeJsonRpc);
        expect(called.map(({ id, data }) => ({ id, value: JSON.parse(data) }))).toEqual(
          plain.map(({ id, data }) => ({
            id,
            value: { jsonrpc: "2.0", method: "event", params: JSON.parse(data) },
          })),
        );
        const decoder = runtimeJsonRpc.decoder();
        expect(called.flatMap((message) => decoder.decode(message))).toEqual(plain.flatMap(decodeMessage));
      }),
      { numRuns: runs(10) },
    );
    for (const data of [
      "{}",
      '{"jsonrpc":"2.0","method":"other","params":{}}',
      '{"jsonrpc":"2.0","id":1,"method":"event","params":{"type":"a.b"}}',
    ])
      expect(() => runtimeJsonRpc.decoder().decode({ data })).toThrow("a notification is");
  });
});

/** An event that says nothing about sessions, turns or calls. */
function opening(run_id: string): Event {
  return {
    id: "evt_0",
    ts: "2026-01-01T00:00:00.000Z",
    type: "custom",
    run_id,
    child_id: null,
    pos: 1,
    seq: 0,
    payload: {},
  };
}

function encode(log: readonly Event[], dialect = runtime): readonly Message[] {
  let state: State = dialect.first;
  return log.flatMap((e) => {
    const [next, messages] = dialect.step(state, e);
    // A state is a JSON value: whoever keeps it as a text goes on the same.
    expect(dialect.step(JSON.parse(JSON.stringify(state)) as State, e)).toEqual([next, messages]);
    state = next;
    return messages;
  });
}

function parsed({ data }: Message): RuntimeMessage {
  return JSON.parse(data) as RuntimeMessage;
}

function decodeMessage(message: Message): readonly Draft[] {
  return runtime.decoder().decode(message);
}

function decode(message: RuntimeMessage): readonly Draft[] {
  return decodeMessage({ data: JSON.stringify(message) });
}

function comesBack(message: RuntimeMessage): void {
  const drafts = decode(message);
  expect(drafts).toHaveLength(1);
  const run_id = isId(message.streamId) ? message.streamId : "run_1";
  const [draft] = drafts as [Draft];
  const told = { ...opening(run_id), ...draft, id: "evt_1", ts: "2026-01-02T00:00:00.000Z" } as Event;
  const log = [opening(run_id), ...callBefore(message, told), { ...told, child_id: draft.child_id ?? null }];
  const said = encode(log)
    .map(parsed)
    .filter(({ eventId }) => eventId === "evt_1");
  expect(said).toHaveLength(1);
  const { sequence } = said[0] as RuntimeMessage;
  expect(said[0]).toEqual(filled(message, { run_id, sequence, stepId: "step_0" }));
}

/** In a stream, what is said of a call again comes after it was said first. */
function callBefore({ type }: RuntimeMessage, told: Event): readonly Event[] {
  const { call_id } = told.payload as { call_id?: string };
  const isAgain = type === "tool.args" || type === "tool.progress";
  if (!isAgain || !["tool.call", "tool.start", "tool.end"].includes(told.type)) return [];
  const child_id = told.child_id ?? null;
  const start = {
    ...opening(told.run_id),
    type: "tool.start",
    child_id,
    payload: { call_id, tool: "" },
  } as Event;
  const end = { ...start, type: "tool.end", payload: { call_id, ok: true } } as Event;
  return told.type === "tool.end" ? [start, end] : [start];
}

/** What a stream makes of a message: its own id, time and number, and ids where there are none. */
function filled(
  message: RuntimeMessage,
  of: { readonly run_id: string; readonly sequence: unknown; readonly stepId: string },
): object {
  const said: { [member: string]: unknown } = {};
  for (const [name, value] of Object.entries(message)) {
    const camel = name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
    const isSnakeId = ["turn_id", "tool_call_id", "artifact_id"].includes(name) && isId(value);
    if (isSnakeId && isId(message[camel])) continue;
    Object.defineProperty(said, isSnakeId && !Object.hasOwn(message, camel) ? camel : name, {
      value,
      enumerable: true,
      configurable: true,
      writable: true,
    });
  }
  const childId = isId(message.childId) ? message.childId : undefined;
  const run = childId ?? of.run_id;
  return {
    runtimeId: "runwire",
    sessionId: of.run_id,
    threadId: isId(message.sessionId) ? message.sessionId : of.run_id,
    turnId: of.run_id,
    runId: run,
    attemptId: isId(message.runId) ? message.runId : run,
    ...(childId === undefined || message.type === "subagent.spawned" ? {} : { subagentId: childId }),
    ...(/^(tool|model|reasoning)\./.test(message.type) ? { stepId: of.stepId } : {}),
    payload: {},
    ...said,
    schemaVersion: "0.4.0",
    streamId: of.run_id,
    eventId: "evt_1",
    timestamp: "2026-01-02T00:00:00.000Z",
    sequence: of.sequence,
  };
}

/** The drafts that a reader of the stream has, but for the order of their members. */
function heard(log: readonly Event[]): readonly unknown[] {
  return JSON.parse(JSON.stringify(encode(log).flatMap(decodeMessage))) as unknown[];
}

/** Ids that these types have in their payloads: where they have them, the scope's are not told. */
const ownIds: { readonly [type: string]: readonly string[] } = {
  "child.spawn": ["subagent_id"],
  "reasoning.delta": ["tool_call_id"],
  "tool.call": ["tool_call_id"],
  "tool.start": ["tool_call_id"],
  "tool.end": ["tool_call_id"],
  "process.output": ["tool_call_id", "process_id"],
  "approval.requested": ["action_id", "tool_call_id"],
  "approval.resolved": ["action_id"],
  "clarify.requested": ["action_id", "tool_call_id"],
  "clarify.resolved": ["action_id"],
};

/** The declared difference: a reader knows the session, the thread, the turn and the step of what it reads. */
function projected(log: readonly Event[]): readonly unknown[] {
  const where = { session: undefined as string | undefined, thread: undefined as string | undefined };
  const turns = new Map<string, string>();
  const steps = new Map<string, number>();
  const tasks = new Map<string, { run: string; isOpen: boolean; attempts: Set<string>; over: Set<string> }>();
  // The first state is told when the event after it has said which session this is.
  const isHeld = log[0]?.type === "run.lifecycle" && log[0].child_id === null;
  return log.map((e, i) => {
    look(e);
    const next = log[i + 1];
    if (i === 0 && isHeld && next !== undefined) look(next);
    const draft = draftOf(e);
    lookForTask(e);
    return draft;
  });

  function look({ type, child_id, run_id, scope, payload }: Event): void {
    if (type !== "turn.submitted" && type !== "turn.started") return;
    const find = (name: string): string | undefined =>
      [scope, payload].map((from) => (from as { [name: string]: unknown })?.[name]).find(isId);
    const turn = find("turn_id");
    if (turn !== undefined) turns.set(child_id ?? run_id, turn);
    if (child_id !== null) return;
    where.session = find("session_id") ?? where.session;
    where.thread = find("thread_id") ?? where.thread;
  }

  /** Tasks open with their first word and end with their run, where nothing else has ended them. */
  function lookForTask({ type, child_id, run_id, scope, payload }: Event): void {
    const run = child_id ?? run_id;
    const { state } = payload as { state?: unknown };
    if (type === "run.lifecycle" && ["done", "aborted", "error"].includes(String(state))) {
      for (const task of tasks.values()) if (task.run === run) task.isOpen = false;
      return;
    }
    const id = scope?.task_id;
    if (!type.startsWith("task.") || id === undefined) return;
    const task = tasks.get(id) ?? { run, isOpen: true, attempts: new Set<string>(), over: new Set<string>() };
    tasks.set(id, task);
    const attempt = scope?.run_id ?? run;
    if (type === "task.attempt.started" && task.isOpen && !task.over.has(attempt)) task.attempts.add(attempt);
    if (/^task\.attempt\.(completed|failed)$/.test(type)) {
      task.attempts.delete(attempt);
      task.over.add(attempt);
    }
    if (/^task\.(completed|failed|cancelled)$/.test(type)) task.isOpen = false;
  }

  /** What a message that is about no task is told to be a part of. */
  function taskOf(type: string, run: string): { task_id?: string; attempt?: string | undefined } {
    if (type.startsWith("task.")) return {};
    const [first, second] = [...tasks].filter(([, task]) => task.run === run && task.isOpen);
    return first === undefined || second !== undefined
      ? {}
      : { task_id: first[0], attempt: [...first[1].attempts].at(-1) };
  }

  function draftOf({ id, ts, type, run_id, child_id, payload, scope = {} }: Event): unknown {
    const run = child_id ?? run_id;
    const names = (payload as { call_id?: unknown }).call_id;
    const isCall =
      ["text.delta", "tool.output", "tool.args.delta"].includes(type) && typeof names === "string";
    const untold = isCall ? ["tool_call_id"] : (ownIds[type] ?? []);
    const told = Object.fromEntries(Object.entries(scope).filter(([name]) => !untold.includes(name)));
    const session_id = told.session_id ?? where.session ?? run_id;
    const { task_id, attempt } = taskOf(type, run);
    const all: { [name: string]: string } = {
      ...(task_id === undefined ? {} : { task_id }),
      ...(attempt === undefined || told.run_id !== undefined ? {} : { attempt_id: attempt }),
      session_id,
      thread_id: told.session_id ?? where.thread ?? session_id,
      turn_id: turns.get(run) ?? turns.get(run_id) ?? run_id,
      ...(isStepped(type, typeof names === "string") ? { step_id: `step_${steps.get(run) ?? 0}` } : {}),
      ...told,
    };
    const isKnown: { readonly [name: string]: boolean } = {
      session_id: all.session_id === run_id,
      thread_id: all.thread_id === all.session_id,
      turn_id: all.turn_id === run_id,
      run_id: all.run_id === run,
      attempt_id: all.attempt_id === (all.run_id ?? run),
      subagent_id: all.subagent_id === child_id && type !== "subagent.spawned",
      runtime_id: all.runtime_id === "runwire",
    };
    if (type === "step.boundary") steps.set(run, (payload as { step_index: number }).step_index + 1);
    const kept = Object.entries(all).filter(([name]) => !(Object.hasOwn(isKnown, name) && isKnown[name]));
    return {
      type,
      payload: JSON.parse(JSON.stringify(payload)),
      ...(kept.length === 0 ? {} : { scope: Object.fromEntries(kept) }),
      ...(child_id === null ? {} : { child_id }),
      id,
      ts,
      run_id,
    };
  }
}

/** What a model says and what becomes of it belongs to a step. */
function isStepped(type: string, hasCall: boolean): boolean {
  if (type === "text.delta" || type.startsWith("reasoning.") || type.startsWith("model.")) return true;
  if (type === "tool.output" || type === "tool.args.delta") return hasCall;
  if (/^x\.runtime\.(tool|model|reasoning)\..+/.test(type)) return true;
  return ["tool.call", "tool.start", "tool.end"].includes(type);
}
