import { type Event, emptyTranscript, koder, reduce } from "@runwire/protocol";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type FollowOptions, follow } from "./follow.js";
import type { Followed } from "./reader.js";
import type { Status } from "./reconnect.js";
import type { Ending } from "./sources/source.js";
import { numbered, run_id, saying } from "./testing/log.js";
import { manualClock } from "./testing/manual-clock.js";
import {
  after,
  messagesOf,
  type Scene,
  type ScriptedSource,
  scriptedSource,
} from "./testing/scripted-source.js";

const log = saying(["one ", "two ", "three ", "four "]);
const soon = { random: () => 0 };

async function readAll(source: ScriptedSource, options: FollowOptions = {}): Promise<readonly Followed[]> {
  const items: Followed[] = [];
  for await (const item of follow(source, { ...soon, ...options })) items.push(item);
  return items;
}

function eventsIn(items: readonly Followed[]): readonly Event[] {
  return items.flatMap((item) => (item.kind === "event" ? [item.event] : []));
}

/** Sends what follows the cursor, up to `count` events, and ends so. */
function cutAfter(count: number, ending: Ending, of: readonly Event[] = log): Scene {
  return (at) => ({ batches: [messagesOf(after(of, at).slice(0, count))], ending });
}

/** Serves the whole from the cursor and hangs: only the terminal event can end the reading. */
const whole: Scene = (at) => ({ batches: [messagesOf(after(log, at))] });

const anyEnding = fc.constantFrom<Ending>({ close: "leaving" }, { close: "broken" });
const texts = fc.array(fc.string({ unit: "grapheme" }), { maxLength: 12 });

describe("a reader that is cut off", () => {
  test("gets every event once and in order, wherever and however often it is cut", async () => {
    const cuts = fc.array(fc.tuple(fc.nat(6), anyEnding), { maxLength: 5 });
    await fc.assert(
      fc.asyncProperty(texts, cuts, async (said, plan) => {
        const run = saying(said);
        const scenes = plan.map(([count, ending]) => cutAfter(count, ending, run));
        const last: Scene = (at) => ({ batches: [messagesOf(after(run, at))] });
        expect(eventsIn(await readAll(scriptedSource([...scenes, last])))).toEqual(run);
      }),
    );
  });

  test("gets every event once when the server sends some of them again", async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(log.length), fc.nat(log.length), async (count, back) => {
        const again: Scene = (at) => {
          const cursor = Math.max((at.get(run_id) ?? 0) - back, 0);
          return { batches: [messagesOf(log.slice(cursor))] };
        };
        const items = await readAll(scriptedSource([cutAfter(count, { close: "broken" }), again]));
        expect(eventsIn(items)).toEqual(log);
        expect(items.every(({ kind }) => kind === "event")).toBe(true);
      }),
    );
  });

  test("continues from its cursor", async () => {
    const source = scriptedSource([cutAfter(3, { close: "broken" }), whole]);
    await readAll(source);
    expect(source.opened).toEqual([0, 3]);
  });

  test("begins after the number it is given", async () => {
    const source = scriptedSource([whole]);
    expect(eventsIn(await readAll(source, { after: 5 }))).toEqual(log.slice(5));
    expect(source.opened).toEqual([5]);
  });

  test("reads koder by its own numbers", async () => {
    const core = log.filter((event) => koder.step(null, event)[1].length > 0);
    const scenes: Scene[] = [
      () => ({ batches: [messagesOf(core.slice(0, 3), koder)], ending: { close: "leaving" } }),
      (at) => ({
        batches: [
          messagesOf(
            core.filter(({ seq }) => seq > (at.get(run_id) ?? 0)),
            koder,
          ),
        ],
      }),
    ];
    const source = scriptedSource(scenes, { dialect: koder });
    const events = eventsIn(await readAll(source));
    expect(events.map(({ id }) => id)).toEqual(core.map(({ id }) => id));
    expect(source.opened).toEqual([0, 3]);
  });
});

describe("the end of a run", () => {
  test("is its terminal event, even while the connection stays open", async () => {
    expect(eventsIn(await readAll(scriptedSource([whole])))).toEqual(log);
  });

  test("is not the terminal event of a child", async () => {
    const withChild = numbered([
      { type: "run.lifecycle", payload: { state: "done" }, child_id: "run_child" },
      { type: "run.lifecycle", payload: { state: "done" } },
    ]);
    const scene: Scene = (at) => ({ batches: [messagesOf(after(withChild, at))] });
    expect(eventsIn(await readAll(scriptedSource([scene])))).toHaveLength(2);
  });

  test("is known when there is nothing left to read", async () => {
    expect(
      await readAll(scriptedSource([() => ({ batches: [], ending: { close: "finished" } })]), { after: 8 }),
    ).toEqual([]);
  });

  test("is in the snapshot of a run that has ended", async () => {
    const transcript = log.reduce(reduce, emptyTranscript(run_id));
    const data = JSON.stringify({ type: "snapshot", pos: 8, seq: 6, transcript });
    const items = await readAll(scriptedSource([() => ({ batches: [[{ event: "snapshot", data }]] })]));
    expect(items).toEqual([{ kind: "snapshot", run_id, at: 8, transcript }]);
  });
});

describe("a snapshot", () => {
  test("stands for the events before it, on wires with and without event names", async () => {
    for (const named of [true, false]) {
      const transcript = log.slice(0, 4).reduce(reduce, emptyTranscript(run_id));
      const data = JSON.stringify({ type: "snapshot", pos: 4, seq: 3, transcript });
      const message = named ? { id: "4", event: "snapshot", data } : { data };
      const source = scriptedSource([
        () => ({ batches: [[message]], ending: { close: "broken" } }),
        (at) => ({ batches: [messagesOf(after(log, at))] }),
      ]);
      const [first, ...rest] = await readAll(source);
      expect(first).toEqual({ kind: "snapshot", run_id, at: 4, transcript });
      expect(eventsIn(rest)).toEqual(log.slice(4));
      expect(source.opened).toEqual([0, 4]);
    }
  });
});

describe("a log that was reset", () => {
  const other = saying(["another ", "life "], 0.7);

  test("is told, and the new log is read from its beginning", async () => {
    const fromStart: Scene = () => ({ batches: [messagesOf(other)] });
    const items = await readAll(scriptedSource([cutAfter(5, { close: "broken" }), fromStart]));
    expect(eventsIn(items.slice(0, 5))).toEqual(log.slice(0, 5));
    expect(items[5]).toEqual({ kind: "reset", run_id });
    expect(eventsIn(items.slice(6))).toEqual(other);
  });

  test("is told even where the two logs begin alike", async () => {
    const restored = [...log.slice(0, 3), ...other.slice(3)];
    const fromStart: Scene = () => ({ batches: [messagesOf(restored)] });
    const source = scriptedSource([cutAfter(5, { close: "broken" }), fromStart, fromStart]);
    const items = await readAll(source);
    const reset = items.findIndex(({ kind }) => kind === "reset");
    expect(eventsIn(items.slice(reset))).toEqual(restored);
    expect(source.opened).toEqual([0, 5, 0]);
  });
});

describe("a gap", () => {
  const gapped: Scene = () => ({ batches: [messagesOf([...log.slice(0, 2), ...log.slice(5)])] });

  test("is filled from the stored events", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(fc.nat(log.length - 2)),
        fc.integer({ min: 1, max: 4 }),
        async (dropped, size) => {
          const sent = log.filter((_, index) => !dropped.includes(index));
          const source = scriptedSource([() => ({ batches: [messagesOf(sent)] })], {
            page: async (_run, from, eventsMax) =>
              messagesOf(log.slice(from, from + Math.min(eventsMax, size))),
          });
          expect(eventsIn(await readAll(source))).toEqual(log);
        },
      ),
    );
  });

  test("is only told when the reader does not want it filled", async () => {
    const source = scriptedSource([gapped], { page: () => Promise.reject(new Error("not asked")) });
    const items = await readAll(source, { repair: false });
    expect(items[2]).toEqual({ kind: "gap", run_id, from: 3, to: 5 });
    expect(eventsIn(items)).toEqual([...log.slice(0, 2), ...log.slice(5)]);
  });

  test("is told when the stored events lack it too", async () => {
    const items = await readAll(scriptedSource([gapped], { page: async () => [] }));
    expect(items[2]).toEqual({ kind: "gap", run_id, from: 3, to: 5 });
  });

  test("is read by a new connection when the stored events cannot be reached", async () => {
    const source = scriptedSource([gapped, whole], { page: async () => ({ close: "broken" }) });
    const items = await readAll(source);
    expect(items.map(({ kind }) => kind)).toEqual(log.map(() => "event"));
    expect(source.opened).toEqual([0, 2]);
  });
});

describe("messages that are no known event", () => {
  const unknown = { data: JSON.stringify({ ...log[2], type: "telepathy.delta" }) };

  test("are skipped when only their type is unknown, and the cursor moves on", async () => {
    const source = scriptedSource([
      () => ({ batches: [[...messagesOf(log.slice(0, 2)), unknown]], ending: { close: "leaving" } }),
      whole,
    ]);
    const items = await readAll(source);
    expect(items[2]).toEqual({ kind: "unknown", run_id, at: 3, type: "telepathy.delta" });
    expect(source.opened).toEqual([0, 3]);
    expect(eventsIn(items)).toEqual(log.filter(({ pos }) => pos !== 3));
  });

  test("are an error when they are malformed, after everything before them", async () => {
    const items: Followed[] = [];
    const source = scriptedSource([() => ({ batches: [[...messagesOf(log.slice(0, 2)), { data: "{" }]] })]);
    const reading = (async () => {
      for await (const item of follow(source)) items.push(item);
    })();
    await expect(reading).rejects.toMatchObject({ code: "KAI-STREAM-PROTO-0001" });
    expect(eventsIn(items)).toEqual(log.slice(0, 2));
  });

  test("mean another attempt when they tell an error that may pass", async () => {
    const told = { error: { code: "KAI-SERVER-STORE-0001", message: "store unavailable", retry: true } };
    const ill: Scene = () => ({
      batches: [[...messagesOf(log.slice(0, 2)), { data: JSON.stringify(told) }]],
    });
    expect(eventsIn(await readAll(scriptedSource([ill, whole])))).toEqual(log);
  });

  test("are thrown when they tell an error", async () => {
    const told = { error: { code: "KAI-STREAM-CONN-0002", message: "replay window expired", retry: false } };
    const source = scriptedSource([() => ({ batches: [[{ data: JSON.stringify(told) }]] })]);
    await expect(readAll(source)).rejects.toMatchObject({
      code: "KAI-STREAM-CONN-0002",
      message: "replay window expired",
    });
  });
});

describe("waiting", () => {
  const nothing =
    (ending: Ending): Scene =>
    () => ({ batches: [], ending });

  async function delaysOf(scenes: readonly Scene[], random = () => 0.999_999): Promise<readonly number[]> {
    const delays: number[] = [];
    const clock = manualClock();
    const onStatus = (status: Status) => {
      if (status.state !== "waiting") return;
      delays.push(status.delayMs);
      // The loop sets its timer right after telling; by the next turn it stands.
      setImmediate(() => clock.advance(status.delayMs));
    };
    await readAll(scriptedSource(scenes), { clock, random, onStatus });
    return delays;
  }

  test("doubles up to ten seconds while nothing comes, and is short again after progress", async () => {
    const broken = { close: "broken" } as const;
    const failures = Array.from({ length: 8 }, () => nothing(broken));
    expect(await delaysOf([...failures, cutAfter(2, broken), whole])).toEqual([
      249, 499, 999, 1999, 3999, 7999, 9999, 9999, 249,
    ]);
  });

  test("is not needed when a server leaves in the middle", async () => {
    expect(await delaysOf([cutAfter(2, { close: "leaving" }), whole])).toEqual([0]);
  });

  test("is as long as the server asks", async () => {
    expect(await delaysOf([cutAfter(2, { close: "leaving", retryMs: 700 }), whole])).toEqual([700]);
    expect(await delaysOf([nothing({ close: "broken", retryMs: 30_000 }), whole])).toEqual([30_000]);
  });

  test("grows when all a server ever does is leave", async () => {
    const leave = nothing({ close: "leaving" });
    expect(await delaysOf([leave, leave, leave, whole])).toEqual([249, 499, 999]);
  });

  test("ends after as many attempts as allowed, with the reason", async () => {
    const cause = new Error("nobody there");
    const source = scriptedSource([nothing({ close: "broken", cause }), nothing({ close: "broken", cause })]);
    await expect(readAll(source, { attemptsMax: 2 })).rejects.toBe(cause);
  });

  test("counts no attempt that brought something", async () => {
    const cause = new Error("cut");
    const scenes = [cutAfter(2, { close: "broken", cause }), cutAfter(2, { close: "leaving" }), whole];
    const attempts: number[] = [];
    const onStatus = (status: Status) => void (status.state === "waiting" && attempts.push(status.attempts));
    const items = await readAll(scriptedSource(scenes), { attemptsMax: 1, onStatus, random: () => 0 });
    expect(eventsIn(items)).toEqual(log);
    expect(attempts).toEqual([0, 0]);
  });

  test("ends when the reader gives up", async () => {
    const clock = manualClock();
    const stop = new AbortController();
    const reason = new Error("enough");
    const reading = readAll(scriptedSource([nothing({ close: "broken", retryMs: 1234 })]), {
      clock,
      signal: stop.signal,
    });
    await clock.armed(1234);
    stop.abort(reason);
    await expect(reading).rejects.toBe(reason);
  });
});

describe("a connection that has gone silent", () => {
  test("is given up after two and a half keep-alives, and reading goes on from the cursor", async () => {
    const clock = manualClock();
    const hang: Scene = (at) => ({ batches: [messagesOf(after(log, at).slice(0, 3))] });
    const source = scriptedSource([hang, whole]);
    const states: string[] = [];
    const items: Followed[] = [];
    const reading = (async () => {
      const onStatus = ({ state }: Status) => states.push(state);
      for await (const item of follow(source, { ...soon, clock, onStatus })) {
        items.push(item);
        // All of the first connection was read: the next thing it does is wait for the wire.
        if (items.length === 3) setImmediate(() => clock.advance(37_500));
      }
    })();
    await clock.armed(0);
    clock.advance(0);
    await reading;
    expect(eventsIn(items)).toEqual(log);
    expect(states).toEqual(["connecting", "open", "waiting", "connecting", "open"]);
  });

  test("is not confused with a reader that takes its time", async () => {
    const clock = manualClock();
    const source = scriptedSource([whole]);
    for await (const _ of follow(source, { clock })) clock.advance(100_000);
    expect(source.opened).toEqual([0]);
  });
});

describe("a reader that stops", () => {
  test("closes its connection when it leaves the loop", async () => {
    let closed = false;
    const source = scriptedSource([whole]);
    const open = source.open;
    const watched = {
      ...source,
      open(...args: Parameters<typeof open>) {
        args[1].addEventListener("abort", () => {
          closed = true;
        });
        return open(...args);
      },
    };
    for await (const _ of follow(watched)) break;
    expect(closed).toBe(true);
  });
});
