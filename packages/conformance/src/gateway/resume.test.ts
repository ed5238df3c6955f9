// RESUME: for every cut, in every dialect and view, on every transport, what was read plus what is read after
// the cut is the whole.

import type { Draft, Event } from "@runwire/protocol";
import { startGateway } from "@runwire/server";
import { EventSource } from "eventsource";
import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import { faultProxy } from "../fault-proxy.js";
import { append, createRun, lifecycle, say, text } from "./calls.js";
import { chance, isSoak } from "./chance.js";
import {
  closeOf,
  lastEventId,
  openReading,
  readAll,
  streamPath,
  type WireName,
  wireNames,
} from "./readers.js";
import { arbitraryStory, freshChildId, record, storyOfEveryType } from "./story.js";
import { underTest } from "./under-test.js";

const luck = chance("resume");

const server = underTest(startGateway);

const cursors = { koder: "seq", runwire: "pos" } as const;
const dialects = ["koder", "runwire"] as const;
const details = ["default", "full"] as const;
const combinations = wireNames.flatMap((wire) =>
  dialects.flatMap((dialect) => details.map((detail) => ({ wire, dialect, detail }))),
);

describe("a reader that was cut off and comes back with its cursor", () => {
  let run_id: string;

  beforeAll(async () => {
    run_id = await record(server.url, storyOfEveryType(luck.seed), 25);
  });

  it.each(combinations)(
    "reads the rest of the run, wherever the cut was: $wire, $dialect, $detail [RW-CURSOR-1]",
    async ({ wire, dialect, detail }) => {
      const whole = await readAll(wire, server.url, streamPath({ run_id, dialect, detail }));
      expect(closeOf(whole)).toBe("finished");
      const numbers = whole.events.map((e) => e[cursors[dialect]]);
      expect(numbers).toEqual(numbers.map((_, i) => i + 1));
      for (const [i, after] of numbers.slice(0, -1).entries()) {
        const rest = await readAll(wire, server.url, streamPath({ run_id, dialect, detail, after }));
        expect(rest.heard).toEqual(whole.heard.slice(i + 1));
        // What is framed anew is framed the same: the bytes read before the cut and after it are the whole.
        expect(whole.text.endsWith(rest.text)).toBe(true);
        expect(closeOf(rest)).toBe("finished");
      }
    },
  );

  it("holds for any run", { timeout: 300_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(arbitraryStory, fc.constantFrom(...combinations), async (drafts, combination) => {
        const { wire, dialect, detail } = combination;
        const run_id = await record(server.url, drafts, 1 + (drafts.length >> 2));
        const whole = await readAll(wire, server.url, streamPath({ run_id, dialect, detail }));
        for (const [i, e] of whole.events.slice(0, -1).entries()) {
          const after = e[cursors[dialect]];
          const rest = await readAll(wire, server.url, streamPath({ run_id, dialect, detail, after }));
          expect(rest.heard).toEqual(whole.heard.slice(i + 1));
        }
      }),
      { numRuns: isSoak ? 200 : 12, endOnFailure: true },
    );
  });
});

describe("a reader whose connection breaks while the run is being written", () => {
  it.each(combinations)(
    "hears every event once, in order: $wire, $dialect, $detail [RW-CURSOR-1]",
    async ({ wire, dialect, detail }) => {
      const target = new URL(server.url);
      const proxy = await faultProxy({ host: target.hostname, port: Number(target.port) }, () => ({
        cut: { afterBytes: luck.whole(0, 6000), how: luck.pick(["fin", "rst"]) },
      }));
      const run_id = await createRun(server.url);
      const uncut = readAll(wire, server.url, streamPath({ run_id, dialect, detail }));
      const heard: Event[] = [];
      const writing = write(run_id, storyOfEveryType(luck.whole(0, 2 ** 30)));
      for (let ended = false; !ended; ) {
        const after = heard.at(-1)?.[cursors[dialect]] ?? 0;
        ended = await readOn(wire, proxy.url, streamPath({ run_id, dialect, detail, after }), heard);
      }
      await writing;
      expect(heard).toEqual((await uncut).events);
      expect(proxy.counters.cuts).toBeGreaterThan(0);
      await proxy.close();
    },
  );
});

/** Reads until the connection breaks; true when the run has come to its end. */
async function readOn(wire: WireName, url: string, path: string, heard: Event[]): Promise<boolean> {
  try {
    const read = await readAll(wire, url, path);
    heard.push(...read.events);
    // Where all but the end itself had been read, the end is all that is left.
    const { status, events, ending } = read;
    return closeOf(read) === "finished" || status === 204 || (events.length === 0 && ending.code === 1000);
  } catch {
    // Cut before the answer had a head.
    return false;
  }
}

async function write(run_id: string, drafts: readonly Draft[]): Promise<void> {
  for (let at = 0; at < drafts.length; ) {
    const events = luck.whole(1, 12);
    await append(server.url, run_id, ...drafts.slice(at, at + events));
    at += events;
  }
}

describe("a plain EventSource", () => {
  it("follows a run through cuts, and stops at its end [RW-CURSOR-4]", async () => {
    const target = new URL(server.url);
    const proxy = await faultProxy({ host: target.hostname, port: Number(target.port) }, (n) =>
      n < 5 ? { cut: { afterBytes: luck.whole(500, 6000), how: luck.pick(["fin", "rst"]) } } : {},
    );
    const run_id = await createRun(server.url);
    const source = new EventSource(proxy.url + streamPath({ run_id }), {
      fetch: (address, init) => fetch(address, init).then(withRetry),
    });
    const heard: Event[] = [];
    source.onmessage = ({ data }) => void heard.push(JSON.parse(data as string) as Event);
    const stopped = new Promise<void>((resolve) => {
      source.onerror = () => source.readyState === source.CLOSED && resolve();
    });
    await write(run_id, talk(150));
    // Its reconnect at the end of the run is answered 204, after which it asks no more.
    await stopped;
    expect(heard).toEqual((await readAll("sse", server.url, streamPath({ run_id }))).events);
    expect(proxy.counters.cuts).toBe(5);
    await proxy.close();
  });
});

describe("several runs on one connection", () => {
  it.each(["sse", "ndjson", "websocket"] as const)(
    "come each in its own order, with nothing missing: %s",
    async (wire) => {
      const runs = await Promise.all([1, 2, 3].map((n) => record(server.url, talk(40 * n), 7)));
      const [first, ...others] = runs as [string, ...string[]];
      const path = `/v1/agent/stream?runs=${first}:5,${others.join(",")}`;
      const reading = await openReading(wire, server.url, path);
      const alone = await Promise.all(
        runs.map((run_id) => readAll("ndjson", server.url, streamPath({ run_id }))),
      );
      const whole = new Map(runs.map((run_id, i) => [run_id, alone[i]?.events ?? []]));
      whole.set(first, whole.get(first)?.slice(5) ?? []);
      const count = [...whole.values()].reduce((sum, events) => sum + events.length, 0);
      await reading.until(({ events }) => events.length === count);
      for (const [run_id, events] of whole) {
        expect(reading.events.filter((e) => e.run_id === run_id)).toEqual(events);
      }
      // A socket waits for further runs; the others end with their last run.
      if (wire === "websocket") reading.stop();
      expect((await reading.ended).clean).toBe(wire !== "websocket");
    },
  );

  it("tell an EventSource where it stands, so that it resumes all of them after a cut [RW-SSE-4]", async () => {
    const target = new URL(server.url);
    const proxy = await faultProxy({ host: target.hostname, port: Number(target.port) }, (n) =>
      n < 6 ? { cut: { afterBytes: luck.whole(1000, 9000), how: luck.pick(["fin", "rst"]) } } : {},
    );
    const runs = [await createRun(server.url), await createRun(server.url)];
    const path = `/v1/agent/stream?runs=${runs.join(",")}&dialect=runwire`;
    const writing = Promise.all(runs.map((run_id) => write(run_id, talk(120))));
    const heard: Event[] = [];
    let id: string | undefined;
    for (let status = 200; status !== 204; ) {
      const read = await readAll("sse", proxy.url, path, id === undefined ? {} : { "Last-Event-ID": id });
      status = read.status;
      heard.push(...read.events);
      expect(read.heard.every((message) => message.id === undefined)).toBe(true);
      id = lastEventId(read) ?? id;
      if (id !== undefined) expect(id).toMatch(/^run_\w+:\d+,run_\w+:\d+$/);
    }
    await writing;
    expect(proxy.counters.cuts).toBe(6);
    for (const run_id of runs) {
      const alone = await readAll("ndjson", server.url, streamPath({ run_id, dialect: "runwire" }));
      // A write and the cursor after it are two blocks: a cut between them repeats what was written.
      expect(unique(heard.filter((e) => e.run_id === run_id))).toEqual(alone.events);
    }
    await proxy.close();
  });

  it("may have ids with a colon [RW-CURSOR-5]", async () => {
    const root = await createRun(server.url);
    const child_id = `${freshChildId()}:7`;
    await append(server.url, root, say("child.spawn", { child_id }), lifecycle("done", child_id));
    const read = await readAll("ndjson", server.url, `/v1/agent/stream?runs=${child_id}:1`);
    expect(read.events).toMatchObject([{ run_id: child_id, seq: 2, payload: { state: "done" } }]);
  });

  it("resume over NDJSON from the numbers of each", async () => {
    const runs = [await record(server.url, talk(30)), await record(server.url, talk(50))];
    const path = (cursors: readonly number[]) =>
      `/v1/agent/stream?dialect=runwire&runs=${runs.map((run, i) => `${run}:${cursors[i]}`).join(",")}`;
    const whole = await readAll("ndjson", server.url, path([0, 0]));
    for (let cut = 1; cut < whole.events.length; cut += 3) {
      const before = whole.events.slice(0, cut);
      const at = runs.map((run_id) => before.filter((e) => e.run_id === run_id).at(-1)?.pos ?? 0);
      const rest = await readAll("ndjson", server.url, path(at));
      for (const run_id of runs) {
        const of = (events: readonly Event[]) => events.filter((e) => e.run_id === run_id);
        expect([...of(before), ...of(rest.events)]).toEqual(of(whole.events));
      }
    }
    const ends = runs.map((run_id) => whole.events.filter((e) => e.run_id === run_id).at(-1)?.pos as number);
    expect((await readAll("ndjson", server.url, path(ends))).status).toBe(204);
  });

  it("are added to and taken from a WebSocket by message, in the order of the messages [RW-WS-3]", async () => {
    const [a, b] = [await createRun(server.url), await createRun(server.url)];
    const reading = await openReading("websocket", server.url, `/v1/agent/stream?dialect=runwire&runs=${a}`);
    await reading.until(({ events }) => events.length === 2);
    reading.send({ type: "subscribe", run_id: b, after: 1 });
    await reading.until(({ events }) => events.length === 3);
    expect(reading.events.at(-1)).toMatchObject({ run_id: b, pos: 2, type: "turn.submitted" });
    reading.send({ type: "unsubscribe", run_id: a });
    // Each pair is one change of mind; the last word counts.
    for (let i = 0; i < 20; i++) {
      reading.send({ type: "subscribe", run_id: a, after: 2 });
      reading.send({ type: "unsubscribe", run_id: a });
    }
    reading.send({ type: "unsubscribe", run_id: b });
    reading.send({ type: "subscribe", run_id: b, after: 2 });
    // An answer to a message that is refused says that the ones before it have been obeyed.
    reading.send({ type: "dance", run_id: b });
    await reading.until(({ events }) => (events.at(-1)?.type as string) === "error");
    await append(server.url, a, say("title", { title: "unheard" }));
    await append(server.url, b, say("title", { title: "heard" }));
    await reading.until(({ events }) => events.at(-1)?.type === "title");
    await append(server.url, b, say("title", { title: "heard again" }));
    await reading.until(({ events }) => events.filter((e) => e.type === "title").length === 2);
    expect(reading.events.slice(4)).toMatchObject([
      { run_id: b, pos: 3, payload: { title: "heard" } },
      { run_id: b, pos: 4, payload: { title: "heard again" } },
    ]);
    reading.stop();
  });

  it("tell a WebSocket what is wrong with a message, and go on [RW-WS-3]", async () => {
    const run_id = await createRun(server.url);
    const reading = await openReading("websocket", server.url, `/v1/agent/stream?runs=${run_id}`);
    const wrong = [
      "not json",
      "[]",
      { type: "subscribe" },
      { type: "subscribe", run_id: "run_unknown" },
      { type: "subscribe", run_id },
      { type: "dance", run_id },
    ];
    for (const message of wrong) reading.send(message);
    await reading.until(({ events }) => events.length === 1 + wrong.length);
    const told = reading.events.filter((e) => (e.type as string) === "error") as unknown as {
      run_id: string | null;
      error: { code: string };
    }[];
    expect(told.map(({ run_id, error }) => [run_id, error.code])).toEqual([
      [null, "KAI-STREAM-PARAM-0001"],
      [null, "KAI-STREAM-PARAM-0001"],
      [null, "KAI-STREAM-PARAM-0001"],
      ["run_unknown", "KAI-RUN-MISSING-0001"],
      [run_id, "KAI-STREAM-PARAM-0001"],
      [run_id, "KAI-STREAM-PARAM-0001"],
    ]);
    await append(server.url, run_id, lifecycle("done"));
    await reading.until(({ events }) => events.at(-1)?.type === "run.lifecycle" && events.length > 7);
    reading.stop();
  });

  it("are refused as a whole where one of them cannot be read", async () => {
    const run_id = await createRun(server.url);
    for (const wire of wireNames) {
      const unknown = await readAll(wire, server.url, `/v1/agent/stream?runs=${run_id},run_unknown`);
      expect(unknown.status).toBe(404);
    }
    const none = await readAll("sse", server.url, "/v1/agent/stream");
    const many = Array.from({ length: 51 }, (_, i) => `run_${i}`).join(",");
    const tooMany = await readAll("sse", server.url, `/v1/agent/stream?runs=${many}`);
    expect([none.status, tooMany.status]).toEqual([400, 400]);
  });
});

function talk(events: number): readonly Draft[] {
  const child_id = freshChildId();
  const said = Array.from({ length: events - 2 }, (_, i) =>
    i % 3 === 0
      ? say("step.boundary", { step_index: i, step_kind: "text-only" }, i % 2 ? child_id : undefined)
      : text(`word ${i} `, i % 2 ? child_id : undefined),
  );
  return [say("child.spawn", { child_id, prompt: "help" }), ...said, lifecycle("done")];
}

function unique(events: readonly Event[]): readonly Event[] {
  return [...new Map(events.map((e) => [e.id, e])).values()];
}

/** An EventSource waits three seconds before it comes back, unless a stream says otherwise. */
function withRetry(response: Response): Response {
  if (response.body === null) return response;
  const first = new TextEncoder().encode("retry: 10\n\n");
  const body = response.body.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({ start: (controller) => controller.enqueue(first) }),
  );
  const { status, headers, url } = response;
  return Object.defineProperty(new Response(body, { status, headers }), "url", { value: url });
}
