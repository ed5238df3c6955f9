import { describe, expect, it } from "vitest";
import type { Message } from "../../dialect.js";
import type { Draft, Event, Facts } from "../../events.js";
import { reduce, reduceAll } from "../../reduce.js";
import { emptyTranscript } from "../../transcript.js";
import { runtime } from "./index.js";
import { runtimeReader } from "./reader.js";
import { snapshotOf } from "./snapshot.js";
import { firstState } from "./state.js";

const where = (preview: string) => ({
  blob_ref: "blob_1",
  bytes: 70_000,
  media_type: "application/json",
  preview,
});

describe("a snapshot", () => {
  it("says what is to be allowed, as the message that asked did [RW-RUNTIME-8]", () => {
    const call = { call_id: "c", tool: "shell", input: { command: "ls" } };
    const [small] = threadOf(asking({ ...call })).actions;
    expect(small).toMatchObject({ status: "required", toolName: "shell", safeArgs: { command: "ls" } });
    const spilled = { input: where('{"command":"rm -rf /') };
    const [large] = threadOf(asking({ ...call, input: {}, spilled })).actions;
    expect(large).toMatchObject({ toolName: "shell", input_ref: "blob_1", spilled });
  });

  it("tells large data of a call by its ref and how it begins [RW-RUNTIME-7]", () => {
    const [call] = threadOf(
      {
        type: "tool.start",
        payload: { call_id: "c", tool: "shell", input: {}, spilled: { input: where("{") } },
      },
      {
        type: "tool.end",
        payload: { call_id: "c", ok: true, blob_ref: "blob_1", spilled: { output: where("total 4096") } },
      },
    ).toolCalls;
    expect(call).toMatchObject({ input_ref: "blob_1", output_ref: "blob_1", preview: "total 4096" });
    expect(call?.metadata).toEqual({ bytes: 70_000, media_type: "application/json" });
  });
});

describe("a plan", () => {
  const planned: readonly Draft[] = [
    { type: "run.lifecycle", payload: { state: "planning" } },
    { type: "turn.submitted", payload: { session_id: "s", messages: [] } },
    { type: "plan.proposal", payload: { plan: { id: "plan_1", steps: [] } } },
    { type: "run.lifecycle", payload: { state: "awaiting_approval" } },
  ];

  it("that was approved while a client was away no longer waits for it [RW-RUNTIME-8] [RW-RUNTIME-11]", () => {
    const reader = runtimeReader();
    let state = firstState;
    for (const e of eventsOf(planned)) {
      const [next, messages] = runtime.step(state, e);
      state = next;
      for (const { data } of messages) reader.read(JSON.parse(data));
    }
    expect(reader.model.actions.plan_1).toMatchObject({ status: "required" });
    const heard = state.last;
    const log = eventsOf([...planned, { type: "run.lifecycle", payload: { state: "running" } }]);
    for (const e of log.slice(planned.length)) [state] = runtime.step(state, e);
    const transcript = reduceAll(emptyTranscript("run_1"), log);
    const now = "2026-01-01T00:00:01.000Z";
    for (const { data } of runtime.open(state, { how: "snapshot", transcript, heard, now }))
      reader.read(JSON.parse(data));
    expect(reader.model.actions).toMatchObject({ plan_1: { status: "resolved" } });
  });
});

describe("a turn that was aborted", () => {
  it("is cancelled, for who read it all and for who has a snapshot [RW-RUNTIME-8]", () => {
    const log = eventsOf([
      { type: "run.lifecycle", payload: { state: "running" } },
      { type: "turn.submitted", payload: { session_id: "s", messages: [] } },
      { type: "run.lifecycle", payload: { state: "aborted", reason: "enough" } },
    ]);
    const [whole, late] = [runtimeReader(), runtimeReader()];
    let state = firstState;
    for (const e of log) {
      const [next, messages] = runtime.step(state, e);
      state = next;
      for (const { data } of messages) whole.read(JSON.parse(data));
    }
    const transcript = reduceAll(emptyTranscript("run_1"), log);
    for (const { data } of runtime.open(state, { how: "snapshot", transcript })) late.read(JSON.parse(data));
    for (const { model } of [whole, late])
      expect(Object.values(model.turns)).toMatchObject([{ status: "cancelled" }]);
  });
});

describe("a turn that ended before its run", () => {
  it.each([
    ["turn.completed", {}, "completed"],
    ["turn.failed", {}, "failed"],
    ["turn.failed", { status: "cancelled" }, "cancelled"],
  ] as const)("by %s %j stays %s for who has a snapshot [RW-RUNTIME-8]", (type, payload, status) => {
    const log = eventsOf([
      { type: "run.lifecycle", payload: { state: "running" } },
      { type: "turn.submitted", payload: { session_id: "s", turn_id: "turn_1", messages: [] } },
      { type, payload },
      { type: "run.lifecycle", payload: { state: "aborted" } },
    ]);
    const reader = runtimeReader();
    let state = firstState;
    let transcript = emptyTranscript("run_1");
    const read = (messages: readonly Message[]): void => {
      for (const { data } of messages) reader.read(JSON.parse(data));
    };
    for (const e of log) {
      const [next, messages] = runtime.step(state, e);
      state = next;
      transcript = reduce(transcript, e);
      read(messages);
      // While the run goes on, and after its end.
      if (e.pos < 3) continue;
      expect(reader.model.turns).toMatchObject({ turn_1: { status } });
      read(runtime.open(state, { how: "snapshot", transcript }));
      expect(reader.model.turns).toMatchObject({ turn_1: { status } });
    }
  });
});

describe("a client that comes back at the same number", () => {
  it("is told as much each time: what it is told then is another message [RW-RUNTIME-1] [RW-RUNTIME-8]", () => {
    const reader = runtimeReader();
    const transcript = reduceAll(emptyTranscript("run_1"), []);
    for (const second of [1, 2]) {
      const now = `2026-01-01T00:00:0${second}.000Z`;
      const [message] = runtime.open(firstState, { how: "snapshot", transcript, now });
      const { applied, warnings } = reader.read(JSON.parse(message?.data ?? ""));
      expect([applied.length, warnings]).toEqual([1, []]);
    }
  });
});

function asking(payload: Facts): Draft {
  return { type: "approval.requested", payload: { approval_id: "appr_1", ...payload } };
}

function threadOf(...drafts: readonly Draft[]): { actions: readonly Facts[]; toolCalls: readonly Facts[] } {
  const { threads } = snapshotOf(firstState, reduceAll(emptyTranscript("run_1"), eventsOf(drafts)));
  return (threads as [{ actions: readonly Facts[]; toolCalls: readonly Facts[] }])[0];
}

function eventsOf(drafts: readonly Draft[]): readonly Event[] {
  return drafts.map((draft, i) => {
    const numbers = { id: `evt_${i}`, ts: "2026-01-01T00:00:00.000Z", pos: i + 1, seq: i + 1 };
    return { run_id: "run_1", child_id: null, ...numbers, ...draft } as Event;
  });
}
