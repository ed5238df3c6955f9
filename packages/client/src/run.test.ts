import { type Draft, emptyTranscript, reduce } from "@runwire/protocol";
import { describe, expect, test } from "vitest";
import { openRun, type RunView } from "./run.js";
import { numbered, run_id, saying } from "./testing/log.js";
import { after, messagesOf, type Scene, scriptedSource } from "./testing/scripted-source.js";

const log = saying(["one ", "two ", "three "]);
const whole: Scene = (at) => ({ batches: [messagesOf(after(log, at))] });
const folded = log.reduce(reduce, emptyTranscript(run_id));

function open(scenes: readonly Scene[]) {
  return openRun({ base: "", run_id, source: scriptedSource(scenes), random: () => 0 });
}

describe("an open run", () => {
  test("holds what its events add up to", async () => {
    const { transcript, connection } = await open([whole]).closed;
    expect(transcript).toEqual(folded);
    expect(connection).toEqual({ state: "closed", error: null });
  });

  test("adds up to the same over any number of connections", async () => {
    const some: Scene = (at) => ({
      batches: [messagesOf(after(log, at).slice(0, 2))],
      ending: { close: "broken" },
    });
    expect((await open([some, some, whole]).closed).transcript).toEqual(folded);
  });

  test("gives the same snapshot until something changes, and tells when it does", async () => {
    const run = open([whole]);
    const seen: RunView[] = [];
    run.subscribe(() => {
      expect(run.getSnapshot()).toBe(run.getSnapshot());
      expect(run.getSnapshot()).not.toBe(seen.at(-1));
      seen.push(run.getSnapshot());
    });
    await run.closed;
    expect(seen.at(-1)).toBe(run.getSnapshot());
  });

  test("tells once of all that came together", async () => {
    const run = open([whole]);
    const transcripts = new Set<unknown>();
    run.subscribe(() => transcripts.add(run.getSnapshot().transcript));
    await run.closed;
    // Before anything came, and after everything did.
    expect(transcripts.size).toBe(2);
  });

  test("folds what came together at a cost that grows with it, and not with its square", async () => {
    const count = 400;
    const calls = Array.from({ length: count }, (_, i): Draft => {
      return { type: "tool.start", payload: { call_id: `call_${i}`, tool: "shell" } };
    });
    const long = numbered([...calls, { type: "run.lifecycle", payload: { state: "done" } }]);
    const run = open([() => ({ batches: [messagesOf(long)] })]);
    let copied = 0;
    const iterator = { configurable: true, writable: true, value: Array.prototype[Symbol.iterator] };
    Object.defineProperty(Array.prototype, Symbol.iterator, {
      ...iterator,
      value(this: readonly { kind?: unknown }[]) {
        if (this[0]?.kind === "tool") copied += this.length;
        return iterator.value.call(this);
      },
    });
    const { transcript } = await run.closed;
    Object.defineProperty(Array.prototype, Symbol.iterator, iterator);
    expect(transcript.parts).toHaveLength(count);
    expect(copied).toBeLessThan(10 * count);
  });

  test("tells nobody who has stopped listening", async () => {
    const run = open([whole]);
    run.subscribe(() => expect.unreachable())();
    await run.closed;
  });

  test("begins anew when the log was reset", async () => {
    const other = saying(["another "], 0.7);
    const some: Scene = () => ({ batches: [messagesOf(log.slice(0, 4))], ending: { close: "broken" } });
    const { transcript } = await open([some, () => ({ batches: [messagesOf(other)] })]).closed;
    expect(transcript).toEqual(other.reduce(reduce, emptyTranscript(run_id)));
  });

  test("counts what it could not read", async () => {
    const unknown = { data: JSON.stringify({ ...log[2], type: "telepathy.delta" }) };
    const batch = [...messagesOf(log.slice(0, 2)), unknown, ...messagesOf(log.slice(5))];
    expect(await open([() => ({ batches: [batch] })]).closed).toMatchObject({ unknown: 1, missing: 2 });
  });

  test("stops reading when it is closed, which is no error", async () => {
    const run = open([() => ({ batches: [messagesOf(log.slice(0, 3))] })]);
    run.subscribe(() => {
      if (run.getSnapshot().transcript.pos === 3) run.close();
    });
    const { transcript, connection } = await run.closed;
    expect(transcript.pos).toBe(3);
    expect(connection).toEqual({ state: "closed", error: null });
  });

  test("says why it can read no more", async () => {
    const run = open([() => ({ batches: [[{ data: "{" }]] })]);
    expect(await run.closed).toMatchObject({
      connection: { state: "closed", error: { code: "KAI-STREAM-PROTO-0001" } },
    });
  });
});
