// The runtime event stream through a gateway: every message once, from any cut, on every transport; snapshots for those
// who begin in the middle; and producers that speak it.

import {
  type Draft,
  type RuntimeMessage,
  runtimeReader,
  runtimeSchemas,
  validateRuntime,
} from "@runwire/protocol";
import { startGateway } from "@runwire/server";
import { beforeAll, describe, expect, it } from "vitest";
import { allEvents, append, call, codeOf, createRun, lifecycle, runPath, say, text } from "./calls.js";
import { openReading, type Reading, readAll, streamPath, wireNames } from "./readers.js";
import { freshChildId, record } from "./story.js";
import { underTest } from "./under-test.js";

const server = underTest(startGateway);

function story(): readonly Draft[] {
  const child = freshChildId();
  return [
    text("Let me look."),
    say("tool.call", { call_id: "call_1", tool: "shell" }),
    say("approval.requested", { approval_id: "appr_1", call_id: "call_1" }),
    say("approval.resolved", { approval_id: "appr_1", decision: "once" }),
    say("tool.start", { call_id: "call_1", tool: "shell", input: { cmd: "ls" } }),
    say("tool.end", { call_id: "call_1", ok: false, error: { code: "KAI-TOOL-RUN-0001" } }),
    say("step.boundary", { step_index: 0, step_kind: "tool-roundtrip" }),
    say("clarify.requested", { clarify_id: "clar_1", question: "Which?" }),
    say("child.spawn", { child_id: child, prompt: "dig" }),
    text("dug", child),
    lifecycle("done", child),
    say("task.progress", { done: 3 }),
  ];
}

describe("a reader of dialect runtime", () => {
  let run_id: string;

  beforeAll(async () => {
    run_id = await record(server.url, [...story(), lifecycle("done")]);
  });

  it.each(wireNames)(
    "reads the rest of a run, wherever it was cut off: %s [RW-RUNTIME-1] [RW-CURSOR-1]",
    async (wire) => {
      const path = (after: number) => streamPath({ run_id, dialect: "runtime", after });
      const whole = await readAll(wire, server.url, path(0));
      const messages = said(whole);
      expect(messages.map(({ sequence }) => sequence)).toEqual(messages.map((_, i) => i + 1));
      if (wire === "sse")
        expect(whole.heard.map(({ id }) => id)).toEqual(messages.map((_, i) => String(i + 1)));
      expect(messages.at(-1)).toMatchObject({ type: "run.status", payload: { status: "completed" } });
      expect(messages.flatMap((message) => validateRuntime(message))).toEqual([]);
      for (let after = 1; after < messages.length; after++) {
        const rest = await readAll(wire, server.url, path(after));
        expect(rest.heard).toEqual(whole.heard.slice(after));
      }
      const end = await readAll(wire, server.url, path(messages.length));
      expect([end.status, end.heard]).toEqual([wire === "websocket" ? 101 : 204, []]);
    },
  );

  it("has the same in JSON-RPC, and page by page [RW-RUNTIME-9]", async () => {
    const plain = said(await readAll("ndjson", server.url, streamPath({ run_id, dialect: "runtime" })));
    const called = await readAll("websocket", server.url, streamPath({ run_id, dialect: "runtime-jsonrpc" }));
    expect(said(called)).toEqual(plain.map((params) => ({ jsonrpc: "2.0", method: "event", params })));
    expect(
      await allEvents(server.url, run_id, { dialect: "runtime", detail: "default", pageEvents: 4 }),
    ).toEqual(plain);
  });

  it("has several runs on one connection, each from its own number [RW-RUNTIME-1]", async () => {
    const other = await record(server.url, [text("hi"), lifecycle("done")]);
    const path = `/v1/agent/stream?dialect=runtime&runs=${run_id}:7,${other}`;
    const both = said(await readAll("ndjson", server.url, path));
    for (const [run, after] of [
      [run_id, 7],
      [other, 0],
    ] as const) {
      const alone = said(
        await readAll("ndjson", server.url, streamPath({ run_id: run, dialect: "runtime", after })),
      );
      expect(both.filter(({ streamId }) => streamId === run)).toEqual(alone);
    }
  });

  it("hears of a run as it goes on, in one turn of one session [RW-RUNTIME-6]", async () => {
    const live = await createRun(server.url, { session_id: "sess_mine" });
    const reading = await openReading("sse", server.url, streamPath({ run_id: live, dialect: "runtime" }));
    await reading.until(({ heard }) => heard.length === 3);
    await append(server.url, live, text("hello"), lifecycle("done"));
    await reading.ended;
    const messages = said(reading);
    expect(messages.map(({ type }) => type)).toEqual([
      "run.status",
      "turn.submitted",
      "turn.started",
      "item.started",
      "model.delta",
      "item.completed",
      "item.started",
      "item.completed",
      "turn.completed",
      "run.status",
    ]);
    expect(new Set(messages.map(({ sessionId, turnId }) => `${sessionId} ${turnId}`)).size).toBe(1);
    expect(messages[0]).toMatchObject({
      sessionId: "sess_mine",
      threadId: "sess_mine",
      streamId: live,
      runId: live,
    });
  });

  it.each(wireNames)(
    "that asks for a snapshot has what was open, and then what follows: %s [RW-RUNTIME-8]",
    async (wire) => {
      const live = await record(server.url, story());
      const process = { tool_call_id: "call_9", process_id: "proc_1" };
      const processStarted: Draft = {
        type: "process.started",
        payload: { command: "sleep 9", endsWithCall: true },
        scope: process,
      };
      await append(server.url, live, say("tool.start", { call_id: "call_9", tool: "shell" }), processStarted);
      const before = said(await openUntilQuiet(live));
      const reading = await openReading(
        wire,
        server.url,
        streamPath({ run_id: live, dialect: "runtime", snapshot: 1 }),
      );
      await reading.until(({ heard }) => heard.length === 1);
      await append(
        server.url,
        live,
        say("clarify.resolved", { clarify_id: "clar_1", answer: "this" }),
        lifecycle("done"),
      );
      await reading.ended;
      const [first, ...rest] = said(reading);
      expect(first).toMatchObject({
        type: "snapshot.updated",
        sequence: before.length,
        payload: {
          recovery: { mode: "snapshot" },
          snapshot: { streamId: live, lastSequence: before.length },
        },
      });
      expect(rest.map(({ sequence }) => sequence)).toEqual(rest.map((_, i) => before.length + 1 + i));
      const reader = runtimeReader();
      reader.read(first);
      expect(reader.model.actions).toMatchObject({
        clar_1: { status: "required" },
        appr_1: { status: "resolved" },
      });
      expect(reader.model.toolCalls).toMatchObject({ call_1: { status: "failed", toolName: "shell" } });
      expect(reader.model.processes).toMatchObject({ proc_1: { status: "running", toolCallId: "call_9" } });
      for (const message of rest) expect(reader.read(message).warnings).toEqual([]);
      expect(reader.model.actions.clar_1?.status).toBe("resolved");
      // It ends with its call, and that with the run.
      expect(reader.model.processes.proc_1?.status).toBe("terminated");
    },
  );

  it("that comes back with a cursor and asks for a snapshot is told of the gap [RW-RUNTIME-8]", async () => {
    const address = { run_id, dialect: "runtime", snapshot: 1, after: 2 } as const;
    const [updated, repaired, ...rest] = said(await readAll("ndjson", server.url, streamPath(address)));
    const last = updated?.sequence;
    const recovery = { mode: "snapshot", reason: "requested", gapFrom: 3, gapTo: last };
    expect(updated).toMatchObject({ type: "snapshot.updated", payload: { recovery } });
    expect(repaired).toMatchObject({ type: "snapshot.repaired", sequence: last, payload: { recovery } });
    expect(rest.at(-1)).toMatchObject({ type: "run.status", payload: { status: "completed" } });
  });

  it("that has a cursor which cannot be used is told so, and reads from the start [RW-RUNTIME-8]", async () => {
    const whole = said(await readAll("ndjson", server.url, streamPath({ run_id, dialect: "runtime" })));
    const [first, ...rest] = said(
      await readAll("ndjson", server.url, streamPath({ run_id, dialect: "runtime", after: 9999 })),
    );
    expect(first).toMatchObject({
      type: "snapshot.updated",
      sequence: 0,
      payload: { recovery: { mode: "replay", reason: "cursor_unusable" } },
    });
    expect(validateRuntime(first)).toEqual([]);
    expect([first?.sessionId, first?.threadId]).toEqual([whole[0]?.sessionId, whole[0]?.threadId]);
    expect(rest).toEqual(whole);
  });
});

describe("readers of several runs", () => {
  it.each(wireNames)(
    "are told of a cursor that cannot be used as any other: %s [RW-RUNTIME-8]",
    async (wire) => {
      const runs = [await record(server.url, story()), await record(server.url, story())] as const;
      const path = `/v1/agent/stream?dialect=runtime&runs=${runs[0]}:9999,${runs[1]}:2`;
      const reading = await openReading(wire, server.url, path);
      const of = (run: string): readonly RuntimeMessage[] =>
        said(reading).filter(({ streamId }) => streamId === run);
      await reading.until(() => of(runs[0]).length > 1 && of(runs[1]).length > 0);
      reading.stop();
      expect(of(runs[0]).slice(0, 2)).toMatchObject([
        { type: "snapshot.updated", sequence: 0, payload: { recovery: { mode: "replay" } } },
        { type: "run.status", sequence: 1 },
      ]);
      expect(of(runs[1])[0]).toMatchObject({ sequence: 3 });
    },
  );
});

describe("a producer that speaks runtime", () => {
  const ids = { sessionId: "sess_123", threadId: "thread_123", turnId: "turn_123", taskId: "task_123" };
  const messages = [
    message(1, "model.delta", { ...ids, payload: { text: "Let me look." } }),
    message(2, "tool.started", {
      ...ids,
      toolCallId: "t1",
      payload: { toolName: "read_file", safeArgs: { path: "README.md" }, policy: "allowed" },
    }),
    message(3, "tool.result", {
      ...ids,
      toolCallId: "t1",
      payload: { output_ref: "ref_1", preview: "# Readme" },
    }),
    message(4, "artifact.changed", {
      ...ids,
      payload: { artifact_id: "a1", read_ref: "r1", version_id: "v1", preview_ref: "p1", diff_ref: "d1" },
    }),
    message(5, "weather.changed", { ...ids, payload: "sunny", refs: { raw: "raw_1" } }),
    message(6, "run.status", { ...ids, payload: { status: "completed", reason: null } }),
  ];

  it.each(["runtime", "runtime-jsonrpc"])(
    "is heard in every dialect, and in its own as it spoke: %s [RW-RUNTIME-3]",
    async (dialect) => {
      const run_id = await createRun(server.url);
      const body =
        dialect === "runtime"
          ? messages
          : messages.map((params) => ({ jsonrpc: "2.0", method: "event", params }));
      const { status, text: answer } = await call(
        server.url,
        "POST",
        runPath(run_id, `events?dialect=${dialect}`),
        body,
      );
      expect([status, answer.slice(0, 200)]).toMatchObject([200, expect.stringContaining("first_pos")]);
      const koder = await readAll("ndjson", server.url, streamPath({ run_id }));
      expect(koder.events.map(({ type }) => type)).toEqual([
        "run.lifecycle",
        "text.delta",
        "tool.start",
        "tool.end",
        "run.lifecycle",
      ]);
      const heard = said(await readAll("ndjson", server.url, streamPath({ run_id, dialect: "runtime" })));
      for (const { eventId: _, timestamp: __, sequence: ___, ...spoken } of messages)
        expect(heard).toContainEqual(expect.objectContaining(spoken));
    },
  );

  it("is refused with the line that is wrong, and nothing of it is stored [RW-RUNTIME-4]", async () => {
    const run_id = await createRun(server.url);
    const wrong = [messages[0], { type: "task", payload: {} }];
    const reply = await call(server.url, "POST", runPath(run_id, "events?dialect=runtime"), wrong);
    expect([reply.status, codeOf(reply)]).toEqual([422, "KAI-STREAM-PROTO-0001"]);
    expect(reply.text).toContain("event 2");
    expect(await allEvents(server.url, run_id)).toHaveLength(2);
  });
});

describe("the schemas of the stream", () => {
  it("are there for anyone, under their names [RW-RUNTIME-12]", async () => {
    for (const [name, schema] of Object.entries(runtimeSchemas)) {
      const { status, headers, text: body } = await call(server.url, "GET", `/schemas/${name}`);
      expect([status, headers.get("content-type")]).toEqual([200, "application/schema+json"]);
      expect(JSON.parse(body)).toEqual(schema);
    }
    expect((await call(server.url, "GET", "/schemas/constructor")).status).toBe(404);
  });
});

function message(sequence: number, type: string, members: object): RuntimeMessage {
  return { type, eventId: `evt_${sequence}`, timestamp: "2026-05-08T02:30:00Z", sequence, ...members };
}

function said({ heard }: Pick<Reading, "heard">): readonly RuntimeMessage[] {
  return heard.map(({ data }) => JSON.parse(data) as RuntimeMessage);
}

/** What a live run has said by now. */
async function openUntilQuiet(run_id: string): Promise<Reading> {
  return readAll("ndjson", server.url, runPath(run_id, "replay.jsonl?dialect=runtime"));
}
