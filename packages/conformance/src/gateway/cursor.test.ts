// Where a stream begins: cursors that can be used, cursors that cannot, snapshots, and what a reader is told of
// the stream before its first event.

import { type Event, emptyTranscript, reduce, type Transcript } from "@runwire/protocol";
import { startGateway } from "@runwire/server";
import { beforeAll, describe, expect, it } from "vitest";
import { allEvents, append, call, lifecycle, runPath, say, text } from "./calls.js";
import { rawConnection, requestText, upgradeLines } from "./raw-http.js";
import { closeOf, lastEventId, openReading, readAll, streamPath, wireNames } from "./readers.js";
import { record } from "./story.js";
import { underTest } from "./under-test.js";

/** A run that has ended: 8 core events, 10 in all. */
let ended: string;
let live: string;

const drafts = [
  text("one"),
  say("tool.start", { call_id: "call_1", tool: "web.search" }),
  text("two"),
  say("tool.end", { call_id: "call_1", ok: true }),
  say("usage", { input_tokens: 3 }),
  text("three"),
  say("step.boundary", { step_index: 0, step_kind: "tool-roundtrip" }),
];

const server = underTest(startGateway);

beforeAll(async () => {
  ended = await record(server.url, [...drafts, lifecycle("done")]);
  live = await record(server.url, drafts);
});

const unusable = [
  "",
  "-1",
  "1.5",
  "abc",
  "0x3",
  " 3",
  "999",
  "9".repeat(40),
  "evt_01HZ7K4PXA8QJ2M5V0T3RC6NBW",
  "3,4",
];

describe("a cursor", () => {
  it.each(wireNames)(
    "that cannot be used means the start, never a silent skip: %s [RW-CURSOR-2]",
    async (wire) => {
      const whole = await readAll(wire, server.url, streamPath({ run_id: ended }));
      expect(whole.events.map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
      for (const after of unusable) {
        const read = await readAll(wire, server.url, streamPath({ run_id: ended, after }));
        expect(read.heard).toEqual(whole.heard);
        const byHeader = await readAll(wire, server.url, streamPath({ run_id: ended }), {
          "Last-Event-ID": after.trim(),
        });
        expect(byHeader.heard).toEqual(after.trim() === "3" ? whole.heard.slice(3) : whole.heard);
      }
    },
  );

  it.each(wireNames)("is a number of the dialect it was read from: %s [RW-CURSOR-1]", async (wire) => {
    const bySeq = await readAll(wire, server.url, streamPath({ run_id: ended, after: 7 }));
    const byPos = await readAll(
      wire,
      server.url,
      streamPath({ run_id: ended, after: 7, dialect: "runwire" }),
    );
    expect(bySeq.events.map(({ seq }) => seq)).toEqual([8]);
    expect(byPos.events.map(({ pos }) => pos)).toEqual([8, 9, 10, 11]);
  });

  it.each(wireNames)(
    "in the query wins over the header, even where it cannot be used: %s [RW-CURSOR-3]",
    async (wire) => {
      const header = { "Last-Event-ID": "6" };
      const numbers = async (query: string) => {
        const path = runPath(ended, `stream?${query}`);
        return (await readAll(wire, server.url, path, header)).events.map(({ seq }) => seq);
      };
      expect(await numbers("")).toEqual([7, 8]);
      for (const alias of ["after", "last_event_id", "after_seq"]) {
        expect(await numbers(`${alias}=4`)).toEqual([5, 6, 7, 8]);
        expect(await numbers(`${alias}=`)).toHaveLength(8);
        expect(await numbers(`${alias}=banana`)).toHaveLength(8);
      }
      expect(await numbers("after_seq=2&after=7&last_event_id=3")).toEqual([8]);
    },
  );

  it("at the end of a run that has ended is answered 204, and a WebSocket is closed as finished [RW-CURSOR-4]", async () => {
    for (const [dialect, after] of [
      ["koder", 8],
      ["runwire", 11],
    ] as const) {
      for (const detail of ["default", "full"]) {
        const path = streamPath({ run_id: ended, dialect, detail, after });
        expect((await readAll("sse", server.url, path)).status).toBe(204);
        expect((await readAll("ndjson", server.url, path)).status).toBe(204);
        const socket = await readAll("websocket", server.url, path);
        expect([socket.heard, socket.ending]).toEqual([[], { clean: true, code: 1000 }]);
      }
    }
  });

  it("at the head of a live run waits for what comes next [RW-CURSOR-4]", async () => {
    const run_id = await record(server.url, drafts);
    for (const wire of wireNames) {
      const head = (await allEvents(server.url, run_id, { dialect: "koder", detail: "default" })).length;
      const reading = await openReading(wire, server.url, streamPath({ run_id, after: head }));
      await append(server.url, run_id, say("tool.start", { call_id: `call_${wire}`, tool: "t" }));
      await reading.until(({ events }) => events.length === 1);
      expect(reading.events[0]).toMatchObject({ seq: head + 1, type: "tool.start" });
      reading.stop();
    }
  });
});

describe("a stream that begins with a snapshot", () => {
  it.each(["koder", "runwire", "loom", "loom-export"] as const)(
    "says over SSE what came before, then goes on from there: %s [RW-SSE-5]",
    async (dialect) => {
      const run_id = await record(server.url, drafts);
      const reading = await openReading(
        "sse",
        server.url,
        streamPath({ run_id, dialect, snapshot: 1, after: 2 }),
      );
      await reading.until(({ heard }) => heard.length === 1);
      await append(server.url, run_id, lifecycle("done"));
      await reading.ended;
      const [first, ...rest] = reading.heard;
      const snapshot = JSON.parse(first?.data ?? "{}") as {
        pos: number;
        seq: number;
        transcript: Transcript;
      };
      const log = await allEvents(server.url, run_id, { detail: "default" });
      expect(snapshot.transcript).toEqual(folded(run_id, log.slice(0, snapshot.pos)));
      const number = Number(first?.id);
      expect(first).toMatchObject({ event: "snapshot" });
      if (dialect === "koder" || dialect === "runwire")
        expect(number).toBe(dialect === "koder" ? snapshot.seq : snapshot.pos);
      expect(rest.map(({ id }) => Number(id))).toEqual(rest.map((_, i) => number + 1 + i));
      const whole = await readAll("sse", server.url, streamPath({ run_id, dialect }));
      expect(rest).toEqual(whole.heard.slice(number));
    },
  );

  it.each(["ndjson", "websocket"] as const)(
    "says it as a line of runwire, and koder and Loom have no word for it: %s [RW-NDJSON-4]",
    async (wire) => {
      const address = { run_id: live, snapshot: 1 } as const;
      const reading = await openReading(wire, server.url, streamPath({ ...address, dialect: "runwire" }));
      await reading.until(({ heard }) => heard.length === 1);
      reading.stop();
      expect(JSON.parse(reading.heard[0]?.data ?? "{}")).toMatchObject({
        type: "snapshot",
        transcript: { run_id: live, state: "running" },
      });
      for (const dialect of ["koder", "loom", "loom-export"] as const) {
        const refused = await readAll(wire, server.url, streamPath({ ...address, dialect }));
        expect(refused.status).toBe(400);
        expect(refused.text).toContain("KAI-STREAM-PARAM-0001");
      }
    },
  );

  it("ends with the terminal event of a run that has ended [RW-CLOSE-1]", async () => {
    for (const wire of wireNames) {
      const dialect = wire === "sse" ? "koder" : "runwire";
      const read = await readAll(wire, server.url, streamPath({ run_id: ended, dialect, snapshot: 1 }));
      expect(read.heard).toHaveLength(2);
      expect(JSON.parse(read.heard[0]?.data ?? "{}")).toMatchObject({ type: "snapshot", pos: 10, seq: 7 });
      expect(closeOf(read)).toBe("finished");
    }
  });
});

describe("an EventSource that asked for a snapshot", () => {
  it("and has heard the end of a run that has ended is told that there is no more [RW-CURSOR-4]", async () => {
    for (const dialect of ["koder", "runwire", "runtime", "loom"] as const) {
      const path = streamPath({ run_id: ended, dialect, snapshot: 1 });
      const last = lastEventId(await readAll("sse", server.url, path)) ?? "";
      const again = (after: string) => readAll("sse", server.url, path, { "Last-Event-ID": after });
      expect([dialect, (await again(last)).status]).toEqual([dialect, 204]);
      // Whoever has not heard all, or asks in the address, wants the snapshot.
      for (const read of [
        await again(String(Number(last) - 1)),
        await again("none"),
        await readAll("sse", server.url, streamPath({ run_id: ended, dialect, snapshot: 1, after: last })),
      ])
        expect([dialect, read.status, lastEventId(read)]).toEqual([dialect, 200, last]);
    }
  });

  it("of a live run begins with the snapshot each time", async () => {
    const path = streamPath({ run_id: live, dialect: "runwire", snapshot: 1 });
    const first = await openReading("sse", server.url, path);
    await first.until(({ heard }) => heard.length === 1);
    first.stop();
    const again = await openReading("sse", server.url, path, { "Last-Event-ID": lastEventId(first) ?? "" });
    await again.until(({ heard }) => heard.length === 1);
    again.stop();
    expect(again.heard).toEqual(first.heard);
  });
});

describe("what a stream tells before its first event", () => {
  it("is its type, that nobody may keep or change it, and that proxies must not wait [RW-SSE-6]", async () => {
    const types = { sse: "text/event-stream; charset=utf-8", ndjson: "application/x-ndjson; charset=utf-8" };
    for (const wire of ["sse", "ndjson"] as const) {
      for (const path of [
        streamPath({ run_id: live }),
        `/v1/agent/stream?runs=${live}`,
        "/v1/agent/runs/stream",
      ]) {
        const reading = await openReading(wire, server.url, path);
        reading.stop();
        expect(reading.headers).toMatchObject({
          "content-type": types[wire],
          "cache-control": "no-cache, no-transform",
          "x-accel-buffering": "no",
        });
      }
    }
    const replay = await readAll("ndjson", server.url, runPath(ended, "replay.jsonl"));
    expect(replay.headers["content-type"]).toBe(types.ndjson);
    const page = await call(server.url, "GET", runPath(ended, "events"));
    expect(page.headers.get("cache-control")).toBe("no-store");
  });

  it("is the subprotocol on a WebSocket, which decides the dialect [RW-WS-1]", async () => {
    const offers = [
      ["koder-agent-stream-v1", "koder-agent-stream-v1", 8],
      ["runwire.runwire", "runwire.runwire", 11],
      ["unheard-of, runwire.runwire", "runwire.runwire", 11],
      ["runwire.koder, runwire.runwire", "runwire.koder", 8],
    ] as const;
    for (const [offered, chosen, events] of offers) {
      const raw = await rawConnection(server.url);
      raw.write(
        requestText(server.url, "GET", streamPath({ run_id: ended, dialect: "runwire" }), [
          ...upgradeLines,
          `Sec-WebSocket-Protocol: ${offered}`,
        ]),
      );
      await raw.until((answer) => answer.includes('"done"'));
      raw.socket.destroy();
      expect(raw.text.split("\r\n\r\n", 1)[0]).toContain(`Sec-WebSocket-Protocol: ${chosen}`);
      expect(raw.text.match(/"id":"evt_/g)).toHaveLength(events);
    }
  });

  it("takes the full view from a header on WebSocket [RW-WS-2]", async () => {
    const run_id = await record(server.url, [text("a"), text("b"), text("c"), lifecycle("done")]);
    const full = await readAll("websocket", server.url, streamPath({ run_id }), { Detail: "full" });
    const byQuery = await readAll("websocket", server.url, streamPath({ run_id, detail: "full" }));
    expect(full.events.filter((e) => e.type === "text.delta")).toHaveLength(3);
    expect(full.heard).toEqual(byQuery.heard);
  });

  it("is a refusal where a parameter is wrong", async () => {
    for (const query of ["dialect=klingon", "detail=some", "backpressure=maybe", "snapshot=yes"]) {
      for (const wire of wireNames) {
        const refused = await readAll(wire, server.url, runPath(live, `stream?${query}`));
        expect([query, refused.status]).toEqual([query, 400]);
        expect(refused.text).toContain("KAI-STREAM-PARAM-0001");
      }
    }
  });
});

describe("a WebSocket", () => {
  it.each([
    ["a binary frame", Buffer.from([0x82, 0x81, 0, 0, 0, 0, 0x41]), 1003],
    ["text that is not UTF-8", Buffer.from([0x81, 0x81, 0, 0, 0, 0, 0xff]), 1007],
    ["an unmasked frame", Buffer.from([0x81, 0x01, 0x41]), 1002],
    ["a frame over the limit", Buffer.from([0x81, 0xff, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0]), 1009],
  ])("is closed after %s with the code for it [RW-WS-4]", async (_what, frame, code) => {
    for (const path of [streamPath({ run_id: live }), "/v1/agent/stream"]) {
      const raw = await rawConnection(server.url);
      raw.write(requestText(server.url, "GET", path, upgradeLines));
      await raw.until((answer) => answer.includes("\r\n\r\n"));
      raw.write(frame);
      const close = String.fromCharCode(code >> 8, code & 0xff);
      await raw.until((answer) => answer.includes(close, answer.lastIndexOf("\x88")));
      raw.socket.destroy();
    }
  });
});

function folded(run_id: string, events: readonly Event[]): Transcript {
  return JSON.parse(JSON.stringify(events.reduce(reduce, emptyTranscript(run_id)))) as Transcript;
}
