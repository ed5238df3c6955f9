// A reader of the runtime event stream: however its messages come, it ends where one ends that had them in order, and
// what nobody resolved it never forgets.

import {
  emptyTranscript,
  eventTypes,
  type Message,
  type RuntimeMessage,
  type RuntimeModel,
  reduce,
  runtime,
  runtimeReader,
  runtimeSchemas,
  strictSchemaVersion,
  validateRuntime,
} from "@runwire/protocol";
import { Ajv2020 } from "ajv/dist/2020.js";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { arbitraryJson } from "../arbitrary-json.js";
import { type ArbitraryRun, arbitraryRun, eventsOf } from "../arbitrary-runs.js";
import { arbitraryRuntimeMessage } from "../arbitrary-runtime.js";

const at = "2026-05-08T02:30:00Z";

describe("a reader", () => {
  it("reads any run in any order, with anything twice, as it was said [RW-RUNTIME-10]", () => {
    fc.assert(
      fc.property(arbitraryRun({ childLevels: 1 }), fc.infiniteStream(fc.nat(9)), (run, luck) => {
        const messages = messagesOf(run);
        const inOrder = runtimeReader({ after: 0 });
        for (const message of messages) inOrder.read(message);
        const coming = messages
          .flatMap((message, i) => {
            const late = i + next(luck) * 2;
            return next(luck) < 3
              ? [[late, message] as const, [i + 3, message] as const]
              : [[late, message] as const];
          })
          .toSorted(([a], [b]) => a - b)
          .map(([, message]) => message);
        const reader = runtimeReader({ after: 0 });
        const read = [...coming.map(reader.read), reader.end()];
        expect(read.flatMap(({ applied }) => applied)).toEqual(messages);
        expect(read.flatMap(({ warnings }) => warnings)).toEqual([]);
        expect(reader.model).toEqual(inOrder.model);
      }),
      { numRuns: 60 },
    );
  });

  it("that has a snapshot knows of actions, calls and tasks what one knows that read it all [RW-RUNTIME-8]", () => {
    fc.assert(
      fc.property(arbitraryRun({ childLevels: 1 }), fc.nat(), ({ run_id, drafts }, pick) => {
        const log = eventsOf(run_id, drafts).slice(0, 1 + (pick % drafts.length));
        const whole = runtimeReader();
        let state = runtime.first;
        for (const e of log) {
          const [after, messages] = runtime.step(state, e);
          for (const message of messages) whole.read(parsed(message));
          state = after;
        }
        const transcript = log.reduce(reduce, emptyTranscript(run_id));
        const opening = runtime.open(state, { how: "snapshot", transcript, now: at }).map(parsed);
        const late = runtimeReader();
        for (const message of opening) late.read(message);
        // The first state of a run waits for its session; until then, nothing was said.
        if (state.last === 0) return;
        expect(open(late.model)).toEqual(open(whole.model));
        expect(late.model.lastSequence).toBe(whole.model.lastSequence);
        const said = opening[0]?.payload as { snapshot: object };
        expect(violations("runtime-snapshot", said.snapshot)).toEqual([]);
      }),
      { numRuns: 60 },
    );
  });

  it("keeps an unresolved action and a failed call that a snapshot does not mention, as stale [RW-RUNTIME-11]", () => {
    const reader = runtimeReader();
    for (const [i, [type, ids]] of [
      ["action.required", { actionId: "a1" }],
      ["action.required", { actionId: "a2" }],
      ["action.required", { actionId: "a3" }],
      ["tool.started", { toolCallId: "t1" }],
      ["tool.failed", { toolCallId: "t1" }],
      ["tool.started", { toolCallId: "t2" }],
      ["tool.result", { toolCallId: "t2" }],
    ].entries()) {
      reader.read(said(i + 1, type as string, ids as object));
    }
    const threads = [
      {
        threadId: "th",
        status: "running",
        actions: [{ actionId: "a2", status: "resolved" }, { actionId: "a3" }],
      },
    ];
    reader.read(snapshot(7, threads));
    expect(reader.model.actions).toMatchObject({
      a1: { status: "required", stale: true },
      a2: { status: "resolved" },
      a3: { status: "required" },
    });
    expect(reader.model.toolCalls).toMatchObject({ t1: { status: "failed", stale: true } });
    expect(Object.keys(reader.model.toolCalls)).toEqual(["t1"]);
    reader.read(said(8, "action.resolved", { actionId: "a1" }));
    expect(reader.model.actions.a1).toMatchObject({ status: "resolved" });
    expect(reader.model.actions.a1?.stale).toBeUndefined();
  });

  it("keeps what is newer than a snapshot [RW-RUNTIME-11]", () => {
    const reader = runtimeReader();
    reader.read(said(1, "turn.started", { turnId: "u1" }));
    reader.read(said(2, "turn.started", { turnId: "u2" }));
    reader.read(snapshot(1, []));
    expect(reader.model.turns).toMatchObject({ u2: { status: "running" } });
    expect(reader.model.lastSequence).toBe(2);
  });

  it("ignores a message of the same id with another content, and warns [RW-RUNTIME-10]", () => {
    const reader = runtimeReader();
    const first = said(1, "turn.started", { turnId: "u1" });
    reader.read(first);
    expect(reader.read(structuredClone(first))).toEqual({ applied: [], warnings: [] });
    const { applied, warnings } = reader.read({ ...first, turnId: "u2" });
    expect([applied, warnings]).toEqual([[], [{ code: "duplicate_differs", eventId: "e1" }]]);
    expect(Object.keys(reader.model.turns)).toEqual(["u1"]);
  });

  it("waits for what is missing only so long, and says what it did without [RW-RUNTIME-10]", () => {
    const reader = runtimeReader({ after: 0, windowMax: 2 });
    expect(reader.read(said(3, "turn.started", { turnId: "u3" })).applied).toEqual([]);
    expect(reader.read(said(4, "turn.started", { turnId: "u4" })).applied).toEqual([]);
    const { applied, warnings } = reader.read(said(5, "turn.started", { turnId: "u5" }));
    expect(applied.map(({ sequence }) => sequence)).toEqual([3, 4, 5]);
    expect(warnings).toEqual([{ code: "gap", eventId: null, gapFrom: 1, gapTo: 2 }]);
    expect(reader.read(said(1, "turn.started", { turnId: "u1" })).applied).toHaveLength(1);
    expect(Object.keys(reader.model.turns).toSorted()).toEqual(["u1", "u3", "u4", "u5"]);
  });

  it("lets what comes late overturn nothing [RW-RUNTIME-10]", () => {
    const reader = runtimeReader();
    reader.read(said(5, "tool.failed", { toolCallId: "t" }));
    reader.read(said(4, "tool.started", { toolCallId: "t", payload: { toolName: "shell" } }));
    expect(reader.model.toolCalls.t).toMatchObject({ status: "failed", toolName: "shell" });
    reader.read(said(6, "tool.progress", { toolCallId: "t", payload: { status: "running" } }));
    expect(reader.model.toolCalls.t?.status).toBe("failed");
    reader.read(said(8, "thread.updated", { threadId: "th", payload: { title: "new" } }));
    reader.read(said(7, "thread.updated", { threadId: "th", payload: { title: "old", colour: "red" } }));
    reader.end();
    reader.read(said(3, "thread.updated", { threadId: "th", payload: { title: "oldest", size: 1 } }));
    expect(reader.model.threads.th).toMatchObject({ title: "new", colour: "red", size: 1 });
  });

  it("keeps a failed attempt when the next begins [RW-RUNTIME-11]", () => {
    const reader = runtimeReader();
    const task = { taskId: "k" };
    reader.read(said(1, "task.created", task));
    reader.read(said(2, "task.attempt.started", { ...task, runId: "r1" }));
    reader.read(said(3, "task.attempt.failed", { ...task, runId: "r1" }));
    reader.read(said(4, "task.retrying", task));
    reader.read(said(5, "task.attempt.started", { ...task, runId: "r2" }));
    expect(reader.model.tasks.k).toMatchObject({
      status: "running",
      attempts: { r1: { status: "failed" }, r2: { status: "running" } },
    });
    reader.read(
      snapshot(5, [{ threadId: "th", status: "running", tasks: [{ taskId: "k", status: "running" }] }]),
    );
    expect(Object.keys(reader.model.tasks.k?.attempts ?? {})).toEqual(["r1", "r2"]);
  });

  it("takes no harm from anything, and tells what is no message [RW-RUNTIME-10]", () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof(arbitraryRuntimeMessage(), arbitraryJson), { maxLength: 20 }),
        (given) => {
          const reader = runtimeReader();
          const read = [...given.map(reader.read), reader.end()];
          const sound = new Map(
            given
              .filter((one) => validateRuntime(one).length === 0)
              .map((one) => [(one as RuntimeMessage).eventId, one] as const)
              .toReversed(),
          );
          expect(read.flatMap(({ applied }) => applied)).toHaveLength(sound.size);
        },
      ),
      { numRuns: 60 },
    );
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  });

  it("warns of a version that it does not know [RW-RUNTIME-10]", () => {
    const reader = runtimeReader();
    expect(
      reader.read({ ...said(1, "turn.started", { turnId: "u" }), schemaVersion: "1.0.0" }).warnings,
    ).toEqual([{ code: "unknown_version", eventId: "e1", schemaVersion: "1.0.0" }]);
    expect(
      reader.read({ ...said(2, "turn.started", { turnId: "u" }), schemaVersion: "0.1.0" }).warnings,
    ).toEqual([]);
  });
});

describe("the validator and the schemas", () => {
  it("agree on every message [RW-RUNTIME-12]", () => {
    const broken = arbitraryRuntimeMessage().chain((message) =>
      fc
        .dictionary(
          fc.constantFrom(
            "type",
            "eventId",
            "timestamp",
            "sequence",
            "payload",
            "refs",
            "turnId",
            "taskId",
            "toolCallId",
            "stepId",
            "schemaVersion",
            "status",
          ),
          fc.constantFrom<unknown>(
            undefined,
            "",
            "x",
            5,
            -1,
            1.5,
            null,
            {},
            at,
            strictSchemaVersion,
            "2026-13-01T00:00:00Z",
          ),
          { maxKeys: 3, noNullPrototype: true },
        )
        .map((changes) => JSON.parse(JSON.stringify({ ...message, ...changes })) as unknown),
    );
    fc.assert(
      fc.property(fc.oneof({ weight: 9, arbitrary: broken }, arbitraryJson), (message) => {
        expect(validateRuntime(message).length === 0).toBe(violations("runtime-event", message).length === 0);
        const strictly = validateRuntime(message, { profile: "strict" });
        expect(strictly.length === 0).toBe(violations("runtime-event-strict", message).length === 0);
      }),
      { numRuns: 300 },
    );
  });

  it("have nothing against what is said of any run [RW-RUNTIME-12]", () => {
    const own = new Set(Object.keys(eventTypes));
    fc.assert(
      fc.property(arbitraryRun(), ({ run_id, drafts }) => {
        // What producers say of tasks in their own words lacks the ids that only they know.
        const known = drafts.filter(({ type }) => own.has(type));
        for (const message of messagesOf({ run_id, drafts: known })) {
          expect(validateRuntime(message)).toEqual([]);
          const strict = { ...message, schemaVersion: strictSchemaVersion };
          expect(validateRuntime(strict, { profile: "strict" })).toEqual([]);
        }
      }),
      { numRuns: 40 },
    );
  });
});

const ajv = new Ajv2020({ strict: false });
const compiled = Object.fromEntries(
  Object.entries(runtimeSchemas).map(([name, schema]) => [name, ajv.compile(schema)]),
);

function violations(name: string, value: unknown): readonly unknown[] {
  const isRight = compiled[name];
  return isRight?.(value) ? [] : (isRight?.errors ?? ["no such schema"]);
}

function next(luck: fc.Stream<number>): number {
  return luck.next().value as number;
}

function parsed({ data }: Message): RuntimeMessage {
  return JSON.parse(data) as RuntimeMessage;
}

function messagesOf({ run_id, drafts }: ArbitraryRun): readonly RuntimeMessage[] {
  let state = runtime.first;
  return eventsOf(run_id, drafts).flatMap((e) => {
    const [after, messages] = runtime.step(state, e);
    state = after;
    return messages.map(parsed);
  });
}

/** What must never be lost: who waits, and what failed; and what ended well. */
function open({ actions, toolCalls, tasks }: RuntimeModel): object {
  const of = (entries: RuntimeModel["actions"], status: string): readonly string[] =>
    Object.entries(entries)
      .filter(([, entry]) => entry.status === status)
      .map(([id]) => id)
      .toSorted();
  return {
    required: of(actions, "required"),
    failed: of(toolCalls, "failed"),
    completed: of(toolCalls, "completed"),
    tasks: Object.fromEntries(
      Object.entries(tasks).map(([id, { status, attempts }]) => [
        id,
        [status, Object.fromEntries(Object.entries(attempts).map(([attempt, one]) => [attempt, one.status]))],
      ]),
    ),
  };
}

function said(sequence: number, type: string, others: object): RuntimeMessage {
  return { type, eventId: `e${sequence}`, timestamp: at, sequence, ...others };
}

function snapshot(lastSequence: number, threads: readonly object[]): RuntimeMessage {
  const payload = { snapshot: { schemaVersion: "0.4.0", sessionId: "s", lastSequence, threads } };
  return {
    type: "snapshot.updated",
    eventId: `snap${lastSequence}`,
    timestamp: at,
    sequence: lastSequence,
    payload,
  };
}
