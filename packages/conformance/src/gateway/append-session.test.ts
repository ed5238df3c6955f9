// One long request whose lines are committed as they come, and the lease that an open one renews.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { duplexPair } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { limits } from "@runwire/protocol";
import { startGateway } from "@runwire/server";
import { describe, expect, it } from "vitest";
import {
  allEvents,
  append,
  call,
  control,
  createRun,
  eventsOf,
  lifecycle,
  lines,
  runPath,
  say,
  text,
} from "./calls.js";
import { openSession as openSessionAt, type Session } from "./open-session.js";
import { readAll, streamPath } from "./readers.js";
import { underTest } from "./under-test.js";

const server = underTest(startGateway);
const openSession = (run_id: string, headers?: { readonly [name: string]: string }): Session =>
  openSessionAt(server.url, run_id, headers);

describe("an append session", () => {
  it("commits as it comes and answers each commit [RW-APPEND-4]", async () => {
    const run_id = await createRun(server.url);
    const session = openSession(run_id, { "Producer-Id": "p", "Producer-Epoch": "1", "Producer-Seq": "1" });
    session.write(lines([text("a"), text("b")]));
    expect(await session.answer()).toEqual({ last_pos: 4, last_producer_seq: 2 });
    expect(await eventsOf(server.url, run_id, "text.delta")).toHaveLength(2);
    const half = lines([text("c")]);
    session.write(half.slice(0, 9));
    session.write(half.slice(9));
    expect(await session.answer()).toEqual({ last_pos: 5, last_producer_seq: 3 });
    session.end(JSON.stringify(text("the last line needs no line break")));
    expect(await session.answer()).toEqual({ last_pos: 6, last_producer_seq: 4 });
    expect(await session.answer()).toBe(undefined);
    const known = await call(server.url, "GET", runPath(run_id, "producers/p"));
    expect(known.body).toEqual({ producer_id: "p", epoch: 1, last_producer_seq: 4 });
  });

  it.each([
    ["not json at all", "KAI-STREAM-PROTO-0001"],
    [JSON.stringify({ type: "no.such", payload: {} }), "KAI-STREAM-PROTO-0002"],
    [JSON.stringify(lifecycle("planning")), "KAI-RUN-STATE-0001"],
    [JSON.stringify({ ...text("x"), child_id: "run_unknown" }), "KAI-RUN-CHILD-0001"],
  ])(
    "ends at a bad line, which it names, and keeps the lines before it: %s [RW-APPEND-4]",
    async (bad, code) => {
      const run_id = await createRun(server.url);
      const session = openSession(run_id);
      session.write(lines([text("a")]));
      expect(await session.answer()).toEqual({ last_pos: 3 });
      session.write(`${JSON.stringify(text("b"))}\n${bad}\n${JSON.stringify(text("never"))}\n`);
      const answers: unknown[] = [];
      for (let at = await session.answer(); at !== undefined; at = await session.answer()) answers.push(at);
      expect(answers.slice(0, -1)).toEqual([{ last_pos: 4 }]);
      expect(answers.at(-1)).toMatchObject({ error: { code, message: expect.stringContaining("line 3") } });
      const stored = (await eventsOf(server.url, run_id, "text.delta")).map(
        (e) => (e.payload as { text: string }).text,
      );
      expect(stored).toEqual(["a", "b"]);
      session.destroy();
    },
  );

  it("tells what is wrong with bytes that are no text and lines without end", async () => {
    const run_id = await createRun(server.url);
    const bad = openSession(run_id);
    bad.write(Buffer.from([0x7b, 0xff, 0xfe, 0x0a]));
    expect(await bad.answer()).toMatchObject({ error: { code: "KAI-REQUEST-BODY-0001" } });
    bad.destroy();
    const endless = openSession(run_id);
    endless.write(`{"type":"text.delta","payload":{"text":"${"x".repeat(limits.lineBytesMax)}`);
    expect(await endless.answer()).toMatchObject({ error: { code: "KAI-REQUEST-SIZE-0001" } });
    endless.destroy();
    expect(await allEvents(server.url, run_id)).toHaveLength(2);
  });

  it("that breaks off keeps its whole lines and drops the torn one [RW-APPEND-4]", async () => {
    const run_id = await createRun(server.url);
    const session = openSession(run_id);
    session.write(lines([text("a")]));
    await session.answer();
    session.write(JSON.stringify(say("title", { title: "torn, though it is whole JSON" })));
    session.destroy();
    await append(server.url, run_id, say("title", { title: "next" }));
    expect((await eventsOf(server.url, run_id, "title")).map((e) => e.payload)).toEqual([{ title: "next" }]);
  });

  it("is refused where the run is unknown, and ends where the run has ended", async () => {
    expect((await openSession("run_unknown").response).statusCode).toBe(404);
    const run_id = await createRun(server.url);
    const session = openSession(run_id);
    session.write(lines([text("a")]));
    await session.answer();
    await control(server.url, run_id, "abort");
    session.write(lines([text("b")]));
    expect(await session.answer()).toMatchObject({ error: { code: "KAI-RUN-ENDED-0001" } });
    session.destroy();
  });
});

describe("a lease", () => {
  it("that is renewed by heartbeats, appends and open sessions keeps the run alive; otherwise it ends with a reason", async () => {
    const asked = { lease_ms: 1000 };
    const [beating, appending, quiet, sessioned] = await Promise.all(
      [1, 2, 3, 4].map(() => createRun(server.url, asked)),
    );
    const session = openSession(sessioned as string);
    session.write(lines([text("a")]));
    await session.answer();
    const lost = readAll("sse", server.url, streamPath({ run_id: quiet as string }));
    const signs = setInterval(() => {
      void call(server.url, "POST", runPath(beating as string, "heartbeat"));
      void append(server.url, appending as string, text("."));
    }, 200);
    const { events } = await lost;
    clearInterval(signs);
    expect(events.at(-1)).toMatchObject({ type: "run.lifecycle", payload: { state: "error" } });
    expect(events.at(-1)?.payload).toHaveProperty("reason", expect.stringMatching(/producer lost.*1000 ms/));
    for (const run_id of [beating, appending, sessioned]) {
      expect((await call(server.url, "GET", `/v1/agent/runs/${run_id}`)).body.state).toBe("running");
    }
    const beat = await call(server.url, "POST", runPath(beating as string, "heartbeat"));
    expect([beat.status, beat.body]).toEqual([200, { run_id: beating, state: "running", lease_ms: 1000 }]);
    expect((await call(server.url, "POST", runPath("run_unknown", "heartbeat"))).status).toBe(404);
    session.destroy();
  });
});

describe("a producer that reads none of its answers", () => {
  it("is read no further, and goes on once it does", async () => {
    const folder = mkdtempSync(join(tmpdir(), "runwire-session-"));
    const gateway = await startGateway({ dataFolder: folder, port: 0, durability: "os", log: "error" });
    const { run_id } = await gateway.createRun({ prompt: "go", producer: "external" });
    const heard = gateway.follow({ run: run_id, dialect: "runwire", detail: "full" });
    const line = `${JSON.stringify({ type: "custom", payload: {} })}\n`;
    const [ours, theirs] = duplexPair();
    gateway.take(theirs);
    ours.write(
      `POST ${runPath(run_id, "events")} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-ndjson\r\n` +
        "Transfer-Encoding: chunked\r\n\r\n",
    );
    let isReading = false;
    let isStuck = false;
    const linesMax = 3000;
    try {
      await heard.next();
      await heard.next();
      // One after the other, so that each is a commit with an answer of its own.
      for (let sent = 0; sent < linesMax && !isReading; sent++) {
        ours.write(`${line.length.toString(16)}\r\n${line}\r\n`);
        const stored = heard.next();
        isStuck = await Promise.race([stored.then(() => false), sleep(2000, true)]);
        if (!isStuck) continue;
        isReading = true;
        ours.resume();
        expect((await stored).value?.data).toContain('"custom"');
      }
      expect(isStuck).toBe(true);
    } finally {
      ours.destroy();
      await gateway.close();
      rmSync(folder, { recursive: true });
    }
  });
});
