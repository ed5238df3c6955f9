import { type Dialect, runwire, type StoredEvent } from "@runwire/protocol";
import { describe, expect, it } from "vitest";
import type { Followed, Listener } from "../hub.js";
import { noWeight, type Range } from "../range.js";
import type { Rooms } from "../rooms.js";
import type { RunKey } from "../store.js";
import { wire } from "../wire.js";
import { type Mux, type MuxSink, mux } from "./mux.js";

const dialect = runwire as Dialect;
const options = {
  tenant: "default",
  view: "default" as const,
  backpressure: "lossless" as const,
  wire: wire(dialect, "ndjson", false),
};

/** Logs of so many events, each a range of its own that says its run. */
function muxOf(ends: ReadonlyMap<string, number>, sink: MuxSink, whenEmpty: "end" | "wait" = "end") {
  const listeners = new Map<string, Listener>();
  const follow = async ({ run_id }: RunKey, _view: unknown, listener: Listener): Promise<Followed> => {
    listeners.set(run_id, listener);
    const end = ends.get(run_id) ?? 0;
    const next = (after: number) => (after < end ? rangeOf(run_id, after) : undefined);
    return { end, weights: noWeight, next, leave() {} };
  };
  const readerOpened = () => ({ sent() {}, dropped() {}, closed() {} });
  const rooms = { hub: { follow }, report() {}, metrics: { readerOpened } } as unknown as Rooms;
  return { many: mux(rooms, options, sink, whenEmpty), listeners };
}

function rangeOf(run_id: string, after: number): Range {
  const said = { bytes: Buffer.from(run_id), messages: 1, state: null, stateBytes: 0 };
  return {
    after,
    to: after + 1,
    stretch: undefined as never,
    last: { pos: after + 1 } as StoredEvent,
    terminal: false,
    weights: noWeight,
    encoded: new Map([[options.wire.name, said]]),
  };
}

async function addAll(many: Mux, runs: Iterable<string>): Promise<void> {
  for (const run_id of runs)
    await many.add({
      run_id,
      after: 0,
      number: 0,
      atEnd: false,
      finished: false,
      state: null,
      first: Buffer.alloc(0),
    });
}

describe("several runs on one connection", () => {
  it("take turns where the reader is slower than they are", async () => {
    const sent: string[] = [];
    let isFull = true;
    const { many } = muxOf(
      new Map([
        ["a", 1000],
        ["b", 1000],
        ["c", 1],
      ]),
      {
        isFull: () => isFull,
        send(bytes) {
          sent.push(String(bytes));
          isFull = true;
        },
        close() {},
      },
    );
    await addAll(many, ["a", "b", "c"]);
    for (let drains = 0; drains < 6; drains++) {
      isFull = false;
      many.drained();
    }
    expect(sent).toEqual(["a", "b", "c", "a", "b", "a"]);
  });

  it("end with one that is gone: nobody would be told otherwise", async () => {
    const closes: string[] = [];
    const { many, listeners } = muxOf(new Map(), {
      isFull: () => false,
      send() {},
      close: (how) => closes.push(how),
    });
    await addAll(many, ["a", "b"]);
    listeners.get("a")?.gone();
    expect(closes).toEqual(["leaving"]);
  });

  it.each([
    ["end", ["over", "next"]],
    ["wait", ["next"]],
  ] as const)("are kept in mind after their end only where that is told: %s", async (whenEmpty, known) => {
    const told: string[][] = [];
    const sink: MuxSink = {
      isFull: () => false,
      send: (_bytes, cursors) => void told.push([...cursors.keys()]),
      close() {},
    };
    const { many } = muxOf(new Map([["next", 1]]), sink, whenEmpty);
    const over = {
      run_id: "over",
      after: 9,
      number: 9,
      atEnd: true,
      finished: true,
      state: null,
      first: Buffer.alloc(0),
    };
    await many.add(over);
    await addAll(many, ["next"]);
    expect(told).toEqual([known]);
  });
});
