import { getEventListeners } from "node:events";
import type { Draft } from "@runwire/protocol";
import fc from "fast-check";
import { afterEach, describe, expect, test } from "vitest";
import { limits } from "./limits.js";
import { type AppendServer, appendServer, type Mishap } from "./node/testing/append-server.js";
import { openProducer, type ProducerOptions } from "./producer.js";
import { manualClock } from "./testing/manual-clock.js";

const run_id = "run_1";
const text = (said: string): Draft => ({ type: "text.delta", payload: { text: said } });
const done: Draft = { type: "run.lifecycle", payload: { state: "done" } };

let server: AppendServer;
afterEach(() => server.close());

async function open(mishaps: Mishap[] = [], options: Partial<ProducerOptions> = {}) {
  server = await appendServer(mishaps);
  return openProducer({ base: server.base, run_id, lease_ms: 30_000, random: () => 0, ...options });
}

describe("a producer", () => {
  test("stores everything once and in order, whatever happens to its requests", async () => {
    const mishap = fc.constantFrom<Mishap>("lost", "stored, then lost", { status: 503 }, { status: 429 });
    const plan = fc.tuple(
      fc.array(fc.string(), { minLength: 1, maxLength: 20 }),
      fc.array(mishap, { maxLength: 6 }),
    );
    await fc.assert(
      fc.asyncProperty(plan, fc.func(fc.boolean()), async ([said, mishaps], flushes) => {
        const producer = await open([...mishaps]);
        for (const word of said) {
          producer.push(text(word));
          if (flushes(word)) await producer.flush();
        }
        await producer.close();
        expect(server.stored).toEqual(said.map(text));
        await server.close();
      }),
      { numRuns: 40 },
    );
  });

  test("gives up what is refused where its caller lets it, and stores all others in order", async () => {
    const words = fc.array(fc.tuple(fc.integer(), fc.boolean()), { minLength: 1, maxLength: 60 });
    await fc.assert(
      fc.asyncProperty(words, async (said) => {
        const given: Draft[] = [];
        const producer = await open([], {
          mayGiveUp: (draft, { code }) => draft.child_id === "run_a" && code === "KAI-RUN-CHILD-0001",
          onGivenUp: (draft) => given.push(draft),
        });
        server.refusal = (draft) =>
          (draft as Draft).child_id === "run_a" ? "KAI-RUN-CHILD-0001" : undefined;
        const drafts = said.map(([n, isChild]) => ({
          ...text(`${n}`),
          ...(isChild && { child_id: "run_a" }),
        }));
        for (const draft of drafts) producer.push(draft);
        await producer.close();
        expect(server.stored).toEqual(drafts.filter(({ child_id }) => child_id === undefined));
        expect(given).toEqual(drafts.filter(({ child_id }) => child_id !== undefined));
        await server.close();
      }),
      { numRuns: 20 },
    );
  });

  test("puts what is pushed together into one request", async () => {
    const producer = await open();
    for (let index = 0; index < 50; index++) producer.push(text(`${index}`));
    await producer.flush();
    expect(server.batches).toEqual([50]);
    await producer.close();
  });

  test("gathers what is pushed while a request is under way", async () => {
    const producer = await open();
    const release = server.hold();
    producer.push(done);
    for (let index = 0; index < 1500; index++) producer.push(text("x"));
    const flushed = producer.flush();
    release();
    await flushed;
    expect(server.batches.reduce((sum, size) => sum + size)).toBe(1501);
    expect(Math.max(...server.batches)).toBe(limits.batchEventsMax);
    await producer.close();
  });

  test("lets deltas wait a little for each other, and control events not at all", async () => {
    const clock = manualClock();
    const producer = await open([], { clock });
    producer.push(text("a"));
    producer.push(text("b"));
    await clock.armed(limits.lingerMs);
    expect(server.batches).toEqual([]);
    clock.advance(limits.lingerMs);
    await producer.flush();
    producer.push({ type: "step.boundary", payload: { step_index: 1, step_kind: "text-only" } });
    await producer.flush();
    expect(server.batches).toEqual([2, 1]);
    await producer.close();
  });

  test("lets no delta wait for ever because another came while a request was under way", async () => {
    const clock = manualClock();
    const producer = await open([], { clock });
    for (const ringsBeforeAnswer of [true, false]) {
      const release = server.hold();
      producer.push({ type: "custom", payload: {} });
      await new Promise(setImmediate);
      producer.push(text("meanwhile"));
      if (ringsBeforeAnswer) clock.advance(limits.lingerMs);
      const flushed = producer.flush();
      release();
      await flushed;
      clock.advance(limits.lingerMs);
      producer.push(text("later"));
      expect(clock.isArmed(limits.lingerMs)).toBe(true);
      await producer.flush();
    }
    await producer.close();
  });

  test("makes its caller wait while the buffer is full", async () => {
    const producer = await open();
    const release = server.hold();
    let full: Promise<void> | undefined;
    let count = 0;
    for (; full === undefined; count++) full = producer.push(text("x"));
    expect(count).toBe(limits.bufferEventsMax);
    release();
    await full;
    await producer.flush();
    expect(server.stored).toHaveLength(count);
    const large = text("x".repeat(limits.bufferCharsMax / 2));
    for (const _ of ["a full buffer", "and once it is empty again"]) {
      expect(producer.push(large)).toBeUndefined();
      expect(producer.push(large)).toBeInstanceOf(Promise);
      await producer.flush();
    }
    await producer.close();
  });

  test("refuses a caller that will not wait", async () => {
    const producer = await open();
    const large = text("x".repeat(limits.bufferCharsMax));
    for (let index = 0; index < limits.bufferOverrunMax; index++) producer.push(large);
    expect(() => producer.push(large)).toThrow("await what push gives");
    await producer.close();
  });

  test("goes on renewing its lease where it had no room for the run's end", async () => {
    const clock = manualClock();
    const producer = await open([], { clock, lease_ms: 9000 });
    const release = server.hold();
    const large = text("x".repeat(limits.bufferCharsMax));
    for (let index = 0; index < limits.bufferOverrunMax; index++) producer.push(large);
    expect(() => producer.push(done)).toThrow("await what push gives");
    release();
    await producer.flush();
    // The work goes on for a moment after the last answer.
    await new Promise(setImmediate);
    expect(clock.isArmed(3000)).toBe(true);
    producer.push(done);
    await producer.close();
    expect(server.stored.at(-1)).toEqual(done);
  });

  test("renews its lease when it has nothing to say", async () => {
    const clock = manualClock();
    const producer = await open([], { clock, lease_ms: 6000 });
    for (const beats of [1, 2, 3]) {
      const beat = server.nextHeartbeat();
      await clock.armed(2000);
      clock.advance(2000);
      await beat;
      expect(server.heartbeats).toBe(beats);
    }
    await producer.close();
  });

  test("learns its lease from the server where it is not told", async () => {
    const clock = manualClock();
    server = await appendServer();
    const producer = openProducer({ base: server.base, run_id, clock });
    for (const [waitMs, beats] of [
      [0, 1],
      [2000, 2],
    ] as const) {
      const beat = server.nextHeartbeat();
      await clock.armed(waitMs);
      clock.advance(waitMs);
      await beat;
      expect(server.heartbeats).toBe(beats);
    }
    await producer.close();
  });

  test("renews no lease after the run's end", async () => {
    const clock = manualClock();
    const producer = await open([], { clock, lease_ms: 9000 });
    expect(clock.isArmed(3000)).toBe(true);
    producer.push(done);
    await producer.flush();
    // The work goes on for a moment after the last answer.
    await new Promise(setImmediate);
    expect(clock.isArmed(3000)).toBe(false);
    await producer.close();
  });

  test("that has nothing to say hears that its run has ended, and renews no lease any more", async () => {
    const clock = manualClock();
    const producer = await open([], { clock, lease_ms: 6000 });
    server.state = "aborted";
    const ended = new Promise((resolve) => producer.signal.addEventListener("abort", resolve));
    await clock.armed(2000);
    clock.advance(2000);
    await ended;
    expect(producer.signal.reason).toMatchObject({ code: "KAI-RUN-ENDED-0001" });
    expect([server.heartbeats, clock.isArmed(2000)]).toEqual([1, false]);
  });

  test.each([
    [403, "KAI-PRODUCER-FENCED-0001"],
    [409, "KAI-PRODUCER-GAP-0001"],
    [409, "KAI-RUN-ENDED-0001"],
    [422, "KAI-STREAM-PROTO-0001"],
  ])("that is refused with %i %s writes no more and says why", async (status, code) => {
    const { signal } = new AbortController();
    const producer = await open([{ status, code }], { signal });
    producer.push(text("a"));
    await expect(producer.flush()).rejects.toMatchObject({ code });
    expect(producer.signal.reason).toMatchObject({ code });
    // Whoever gave it a signal may open thousands.
    expect(getEventListeners(signal, "abort")).toEqual([]);
    expect(() => producer.push(text("b"))).toThrow(expect.objectContaining({ code }));
    expect(server.stored).toEqual([]);
  });

  test("that comes back under its name shuts out its former self", async () => {
    const before = await open([], { producer_id: "writer" });
    before.push(text("old"));
    await before.flush();
    const now = openProducer({ base: server.base, run_id, producer_id: "writer" });
    now.push(text("new"));
    await now.flush();
    before.push(text("zombie"));
    await expect(before.flush()).rejects.toMatchObject({ code: "KAI-PRODUCER-FENCED-0001" });
    expect(server.stored).toEqual([text("old"), text("new")]);
    await now.close();
  });

  test("that comes back stores nothing twice, though its former life has still stored something", async () => {
    const before = await open([], { producer_id: "writer" });
    before.push(text("one"));
    await before.flush();
    const now = openProducer({ base: server.base, run_id, producer_id: "writer", after: 1 });
    before.push(text("two"));
    await before.flush();
    now.push(text("two"));
    await expect(now.flush()).rejects.toMatchObject({ code: "KAI-PRODUCER-GAP-0001" });
    expect(server.stored).toEqual([text("one"), text("two")]);
    await before.close();
  });

  test.each([
    ["after it", "KAI-PRODUCER-FENCED-0001"],
    ["before it", "KAI-PRODUCER-GAP-0001"],
  ])("stores nothing in the place of a former life whose first batch comes %s", async (when, code) => {
    const clock = manualClock();
    const before = await open([], { producer_id: "writer", clock });
    const releaseOld = server.hold();
    before.push(text("old"));
    const old = before.flush();
    await expect.poll(() => server.batches).toHaveLength(1);
    clock.advance(1);
    const releaseNew = server.hold();
    const now = openProducer({ base: server.base, run_id, producer_id: "writer", after: 0, clock });
    for (const said of ["new", "newer"]) now.push(text(said));
    const fresh = now.flush();
    await expect.poll(() => server.batches).toHaveLength(2);
    const isLate = when === "after it";
    const [first, second] = isLate ? [releaseNew, releaseOld] : [releaseOld, releaseNew];
    first();
    await (isLate ? fresh : old);
    second();
    await expect(isLate ? old : fresh).rejects.toMatchObject({ code });
    expect(server.stored).toEqual(isLate ? [text("new"), text("newer")] : [text("old")]);
    await (isLate ? now : before).close();
  });

  test("that comes back in the same epoch goes on with its numbers", async () => {
    const identity = { producer_id: "writer", epoch: 7 };
    const before = await open([], identity);
    before.push(text("one"));
    await before.close();
    const now = openProducer({ base: server.base, run_id, ...identity });
    now.push(text("two"));
    await now.close();
    expect(server.stored).toEqual([text("one"), text("two")]);
  });

  test("that is closed lets go of everything, even of a heartbeat that gets no answer", async () => {
    server = await appendServer();
    const { signal, ...producer } = openProducer({
      base: server.base,
      run_id,
      fetch: () => new Promise(() => {}),
    });
    await producer.close();
    await producer.close();
    expect(signal.aborted).toBe(true);
    expect(() => producer.push(done)).toThrow("closed");
  });

  test("sets no timer any more once it is over, so that its process can end", async () => {
    const clock = manualClock();
    const stop = new AbortController();
    const producer = await open([], { clock, signal: stop.signal });
    expect(clock.isArmed(10_000)).toBe(true);
    producer.push(text("x"));
    stop.abort();
    expect([clock.isArmed(10_000), clock.isArmed(limits.lingerMs)]).toEqual([false, false]);
  });

  test("gives up when told to", async () => {
    const stop = new AbortController();
    const producer = await open([], { signal: stop.signal });
    server.hold();
    producer.push(text("a"));
    const flushed = producer.flush();
    stop.abort(new Error("enough"));
    await expect(flushed).rejects.toThrow("enough");
  });
});
