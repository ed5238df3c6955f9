// One suite for all wires: what a reader gets must not depend on how it came.

import { type Event, RunwireError, sseFrame } from "@runwire/protocol";
import fc from "fast-check";
import { afterEach, describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import { type FollowOptions, follow } from "../follow.js";
import { limits } from "../limits.js";
import { type Fault, type WireServer, wireServer } from "../node/testing/wire-server.js";
import type { Status } from "../reconnect.js";
import { run_id, saying } from "../testing/log.js";
import { manualClock } from "../testing/manual-clock.js";
import { messagesOf } from "../testing/scripted-source.js";
import { ndjsonSource } from "./ndjson.js";
import type { RunStreamOptions } from "./run-stream.js";
import { runsSource } from "./runs.js";
import type { Source } from "./source.js";
import { sseSource } from "./sse.js";
import { webSocketSource } from "./websocket.js";

const log = saying(["plain", "žluťoučký 🐎", "\u2028 \r\n \u0000", "{}"]);
const wires: readonly (readonly [string, (stream: RunStreamOptions) => Source])[] = [
  ["SSE", sseSource],
  ["NDJSON", ndjsonSource],
  ["WebSocket", (stream) => webSocketSource({ ...stream, WebSocket })],
];

let server: WireServer | undefined;
afterEach(async () => {
  await server?.close();
  server = undefined;
});

async function serve(faults: Fault[], of: readonly Event[] = log): Promise<WireServer> {
  await server?.close();
  server = await wireServer(of, faults);
  return server;
}

async function readAll(source: Source, options: FollowOptions = {}): Promise<readonly Event[]> {
  const events: Event[] = [];
  for await (const item of follow(source, { random: () => 0, ...options })) {
    if (item.kind === "event") events.push(item.event);
    else throw new Error(`unexpected ${item.kind}`);
  }
  return events;
}

describe.each(wires)("over %s", (name, sourceOf) => {
  test("a whole run is read", async () => {
    const { base } = await serve([]);
    expect(await readAll(sourceOf({ base, run_id }))).toEqual(log);
  });

  test("a reader cut off anywhere, cleanly or not, gets every event once", async () => {
    const cut = fc.record({
      kind: fc.constant("cut" as const),
      after: fc.nat(name === "WebSocket" ? log.length - 1 : 1500),
      clean: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(cut, { maxLength: 4 }), async (faults) => {
        const { base } = await serve([...faults]);
        expect(await readAll(sourceOf({ base, run_id }))).toEqual(log);
      }),
      { numRuns: 60 },
    );
  });

  test("a finished run with nothing left to read is the end", async () => {
    const { base } = await serve([]);
    expect(await readAll(sourceOf({ base, run_id }), { after: log.length })).toEqual([]);
  });

  test("koder is read by its own numbers", async () => {
    const { base, requests } = await serve([
      { kind: "cut", after: name === "WebSocket" ? 2 : 500, clean: false },
    ]);
    const events = await readAll(sourceOf({ base, run_id, dialect: "koder" }));
    expect(events.map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5, 6]);
    expect(requests.every((path) => path.includes("dialect=koder"))).toBe(true);
  });

  test("a connection that goes silent is given up, and reading goes on from the cursor", async () => {
    const begin = messagesOf(log.slice(0, 3));
    const lines = begin.map(({ data }) => `${data}\n`).join("");
    const first = { SSE: begin.map(sseFrame).join("").length, NDJSON: lines.length, WebSocket: 3 }[name] ?? 0;
    const { base, requests } = await serve([{ kind: "hang", after: first }]);
    const clock = manualClock();
    const events: Event[] = [];
    for await (const item of follow(sourceOf({ base, run_id }), { random: () => 0, clock })) {
      if (item.kind === "event") events.push(item.event);
      if (events.length !== 3) continue;
      // What the silence leads to: it is noticed, and a wait of no length follows.
      setImmediate(() => clock.advance(limits.silenceMsMax));
      void clock.armed(0).then(() => clock.advance(0));
    }
    expect(events).toEqual(log);
    expect(requests[1]).toContain("after=3");
  });

  test("a snapshot is asked for at the beginning only", async () => {
    const { base, requests } = await serve([
      { kind: "cut", after: name === "WebSocket" ? 2 : 600, clean: false },
    ]);
    await readAll(sourceOf({ base, run_id, snapshot: true }));
    expect(requests.map((path) => path.includes("snapshot=1"))).toEqual([true, false]);
  });

  test("a server that is not there is tried again", async () => {
    const { base } = await serve([]);
    await server?.close();
    server = undefined;
    const attempts = readAll(sourceOf({ base, run_id }), { attemptsMax: 3 });
    await expect(attempts).rejects.toBeInstanceOf(RunwireError);
  });

  test("a busy server is tried again", async () => {
    const { base } = await serve([
      { kind: "refuse", status: 503 },
      { kind: "refuse", status: 429 },
    ]);
    expect(await readAll(sourceOf({ base, run_id }))).toEqual(log);
  });
});

describe.each(wires.slice(0, 2))("over %s", (_name, sourceOf) => {
  test.each([
    [400, "KAI-STREAM-PARAM-0001"],
    [404, "KAI-RUN-MISSING-0001"],
    [410, "KAI-STREAM-CONN-0002"],
  ])("a refusal with %i is thrown with the server's code and not tried again", async (status, code) => {
    const body = JSON.stringify({ error: { code, message: "why", retry: false } });
    const { base, requests } = await serve([{ kind: "refuse", status, body }]);
    await expect(readAll(sourceOf({ base, run_id }))).rejects.toMatchObject({ code });
    expect(requests).toHaveLength(1);
  });

  test("a refusal by something else than Runwire is thrown too", async () => {
    const { base } = await serve([{ kind: "refuse", status: 401, body: "<html>" }]);
    await expect(readAll(sourceOf({ base, run_id }))).rejects.toThrow("HTTP 401");
  });

  test("the wait that a server asks for is kept", async () => {
    const { base } = await serve([{ kind: "refuse", status: 429, retryAfter: "1" }]);
    const delays = delaysIn();
    await readAll(sourceOf({ base, run_id, clock: delays.clock }), delays);
    expect(delays.seen).toEqual([1000]);
  });

  test("an answer of another kind is an error, not an empty run", async () => {
    const html = async () => new Response("<html>", { headers: { "content-type": "text/html" } });
    await expect(readAll(sourceOf({ base: "http://test", run_id, fetch: html }))).rejects.toThrow(
      "text/html",
    );
  });
});

/** A clock whose waits are over at once, and the waits that were asked of it. */
function delaysIn() {
  const seen: number[] = [];
  const clock = {
    nowMs: () => 0,
    // Short ones are waits; long ones watch for silence and never ring here.
    after(delayMs: number, ring: () => void) {
      if (delayMs < 20_000) queueMicrotask(ring);
      return () => {};
    },
  };
  const onStatus = (status: Status) => {
    if (status.state === "waiting") seen.push(status.delayMs);
  };
  return { seen, clock, onStatus };
}

describe("over SSE", () => {
  test("a server that leaves says how long to wait", async () => {
    const sent = messagesOf(log.slice(0, 3)).map(sseFrame).join("");
    const { base } = await serve([{ kind: "cut", after: sent.length, clean: true, retryMs: 70 }]);
    const delays = delaysIn();
    expect(await readAll(sseSource({ base, run_id }), delays)).toEqual(log);
    expect(delays.seen).toEqual([70]);
  });
});

describe("over WebSocket", () => {
  const socket = (base: string) => webSocketSource({ base, run_id, WebSocket });

  test.each([
    [4404, "", "KAI-RUN-MISSING-0001"],
    [4410, "", "KAI-STREAM-CONN-0002"],
    [4403, "KAI-PRODUCER-FENCED-0001: another", "KAI-PRODUCER-FENCED-0001"],
    [1011, "KAI-SERVER-STORE-0003: stored data is damaged", "KAI-SERVER-STORE-0003"],
  ])("a close with %i %s is thrown with its code", async (code, reason, expected) => {
    const { base } = await serve([{ kind: "close", after: 2, code, reason }]);
    await expect(readAll(socket(base))).rejects.toMatchObject({ code: expected });
  });

  test("what a close says of itself is what the error says", async () => {
    const reason = "KAI-RUN-MISSING-0001: run not found: run_1";
    const { base } = await serve([{ kind: "close", after: 0, code: 4404, reason }]);
    await expect(readAll(socket(base))).rejects.toThrow(/^run not found: run_1$/);
  });

  test("a close that may be otherwise next time is not the end", async () => {
    const reason = "KAI-LIMIT-CONNECTIONS-0001: too many connections";
    const { base } = await serve([{ kind: "close", after: 0, code: 4429, reason }]);
    expect(await readAll(socket(base))).toEqual(log);
  });

  test.each([1000, 1011, 1012, 1013, 4429])("a close with %i in the middle is not the end", async (code) => {
    const { base } = await serve([{ kind: "close", after: 2, code }]);
    expect(await readAll(socket(base))).toEqual(log);
  });

  test("a refused upgrade is asked about over HTTP, where the reason can be seen", async () => {
    const error = { code: "KAI-STREAM-CONN-0002", message: "replay window expired", retry: false };
    const gone = { kind: "refuse", status: 410, body: JSON.stringify({ error }) } as const;
    server = await wireServer(log, [gone, gone]);
    await expect(readAll(socket(server.base))).rejects.toMatchObject({ code: error.code });
    expect(server.requests).toHaveLength(2);
  });

  test("an upgrade that failed in passing is tried again, also by who has nothing but tickets", async () => {
    const unknown = JSON.stringify({ error: { code: "KAI-AUTH-TOKEN-0001", message: "why", retry: false } });
    const { base, requests } = await serve([{ kind: "refuse", status: 503 }]);
    // As a server answers that asks for credentials: a ticket opens streams and nothing else.
    const byTicket: typeof fetch = async (url, init) =>
      String(url).includes("ticket=") ? fetch(url, init) : new Response(unknown, { status: 401 });
    const ticket = async () => "t";
    const source = webSocketSource({ base, run_id, WebSocket, ticket, fetch: byTicket });
    expect(await readAll(source)).toEqual(log);
    expect(requests).toHaveLength(3);
  });

  test("what a stream left out is told as a gap to who has nothing but tickets", async () => {
    const error = { code: "KAI-AUTH-TOKEN-0001", message: "why", retry: false };
    const refusing = async () => new Response(JSON.stringify({ error }), { status: 401 });
    const { base } = await serve([], [...log.slice(0, 2), ...log.slice(3)]);
    const ticket = async () => "t";
    const kinds: string[] = [];
    for await (const { kind } of follow(
      webSocketSource({ base, run_id, WebSocket, ticket, fetch: refusing }),
    ))
      kinds.push(kind);
    expect(kinds).toEqual(["event", "event", "gap", ...log.slice(3).map(() => "event")]);
  });

  test("a reader that does not read is not buffered for without end", async () => {
    const long = saying(Array.from({ length: 20 }, () => "x".repeat(1024 * 1024)));
    const { base, requests, hungUp } = await serve([], long);
    const events: Event[] = [];
    for await (const item of follow(socket(base), { random: () => 0 })) {
      if (events.length === 0) await hungUp();
      if (item.kind === "event") events.push(item.event);
    }
    expect(events).toEqual(long);
    expect(requests.length).toBeGreaterThan(1);
  });

  test("each connection brings a fresh ticket", async () => {
    const { base, requests } = await serve([{ kind: "close", after: 2, code: 1012 }]);
    let count = 0;
    const ticket = async () => `t${++count}`;
    await readAll(webSocketSource({ base, run_id, WebSocket, ticket }));
    expect(requests.map((path) => new URL(path, base).searchParams.get("ticket"))).toEqual(["t1", "t2"]);
  });
});

describe("a credential that never comes", () => {
  const never = () => new Promise<never>(() => {});
  const waiting: readonly (readonly [string, (base: string, wait: () => Promise<never>) => Source])[] = [
    ["a token", (base, headers) => sseSource({ base, run_id, headers })],
    ["a ticket", (base, ticket) => webSocketSource({ base, run_id, WebSocket, ticket })],
  ];

  test.each(waiting)("is silence, where it is %s: another is asked for", async (_, sourceOf) => {
    const { base } = await serve([]);
    const clock = manualClock();
    const given = [never, async () => ({}) as never];
    const read = readAll(
      sourceOf(base, () => (given.shift() ?? never)()),
      { clock },
    );
    await clock.armed(limits.silenceMsMax);
    clock.advance(limits.silenceMsMax);
    await clock.armed(0);
    clock.advance(0);
    expect(await read).toEqual(log);
  });

  test.each(waiting)("keeps nobody from leaving, where it is %s", async (_, sourceOf) => {
    const { base } = await serve([]);
    const left = new AbortController();
    const read = readAll(sourceOf(base, never), { signal: left.signal });
    setImmediate(() => left.abort(new Error("left")));
    await expect(read).rejects.toThrow("left");
  });
});

describe("a fetch that knows no signal", () => {
  const headers = { "content-type": "text/event-stream" };
  const mute = () => new ReadableStream<Uint8Array>({ cancel: () => new Promise(() => {}) });
  const fetches: readonly (readonly [string, typeof fetch])[] = [
    ["never answers", () => new Promise(() => {})],
    ["answers, and then is silent", async () => new Response(mute(), { headers })],
    ["refuses, and never says why", async () => new Response(mute(), { status: 503 })],
  ];

  test.each(fetches)("and %s, is left when the reader leaves", async (_, asked) => {
    const left = new AbortController();
    const clock = manualClock();
    const reading = readAll(sseSource({ base: "http://test", run_id, fetch: asked }), {
      clock,
      signal: left.signal,
    });
    await clock.armed(limits.silenceMsMax);
    setImmediate(() => left.abort(new Error("left")));
    await expect(reading).rejects.toThrow("left");
  });

  test.each(fetches)("and %s, is silence: another is asked for", async (_, asked) => {
    const bodies = [asked, async () => new Response(frames(log), { headers })];
    const clock = manualClock();
    const statuses: Status[] = [];
    const reading = readAll(
      sseSource({ base: "http://test", run_id, fetch: (...of) => (bodies.shift() as typeof fetch)(...of) }),
      { clock, onStatus: (status) => statuses.push(status) },
    );
    await clock.armed(limits.silenceMsMax);
    setImmediate(() => clock.advance(limits.silenceMsMax));
    await clock.armed(0);
    clock.advance(0);
    expect(await reading).toEqual(log);
    expect(statuses).toContainEqual(expect.objectContaining({ state: "waiting", close: "broken" }));
  });
});

function frames(events: readonly Event[]): string {
  return events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("");
}

describe("several runs on one connection", () => {
  test("are each read once and in order, and end with the last one", async () => {
    const a = saying(["a1", "a2"], 0.1, "run_a");
    const b = saying(["b1"], 0.2, "run_b");
    const asked: string[] = [];
    const bodies = [
      `${frames(a.slice(0, 2))}${frames(b)}id: run_a:2,run_b:${b.length}\n\n`,
      `${frames(a.slice(2))}id: run_a:${a.length}\n\n`,
    ];
    const answer = async (url: string | URL | Request) => {
      asked.push(new URL(String(url)).searchParams.get("runs") ?? "");
      return new Response(bodies.shift(), { headers: { "content-type": "text/event-stream" } });
    };
    const events = await readAll(
      runsSource({ base: "http://test", runs: ["run_a", "run_b"], fetch: answer }),
    );
    expect(events.filter((event) => event.run_id === "run_a")).toEqual(a);
    expect(events.filter((event) => event.run_id === "run_b")).toEqual(b);
    expect(asked).toEqual(["run_a:0,run_b:0", "run_a:2"]);
  });

  test("are at most fifty", () => {
    const runs = Array.from({ length: 51 }, (_, index) => `run_${index}`);
    expect(() => runsSource({ base: "", runs })).toThrow(RunwireError);
  });
});
