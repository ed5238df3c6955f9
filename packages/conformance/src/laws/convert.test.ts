// CONVERT: a wire that was read into logs is said again as it was, directly and by way of the log's own dialect.

import {
  type Dialect,
  type Draft,
  dialects,
  type Event,
  koder,
  limits,
  logReader,
  logWriter,
  loom,
  runwire,
} from "@runwire/protocol";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { arbitraryLoomStream } from "../arbitrary-loom.js";
import { arbitraryRun, eventsOf } from "../arbitrary-runs.js";

const [first, second] = ["run_01K0000000000000000000000A", "run_01K0000000000000000000000B"];
const spoken = [...dialects.values()];

function linesOf(dialect: Dialect, events: readonly Event[]): readonly string[] {
  const writer = logWriter(dialect);
  return events.flatMap((e) => writer.say(e).map(({ data }) => data));
}

function readIn(dialect: Dialect, lines: readonly string[]): readonly Event[] {
  const reader = logReader(dialect);
  return lines.flatMap((line) => reader.read(line));
}

function convert(from: Dialect, to: Dialect, lines: readonly string[]): readonly string[] {
  return linesOf(to, readIn(from, lines));
}

describe.each(spoken.map((dialect) => [dialect.name, dialect] as const))("CONVERT %s", (_, dialect) => {
  it("to itself changes nothing more once it has been through", () => {
    fc.assert(
      fc.property(arbitraryRun(), ({ drafts }) => {
        const said = linesOf(dialect, eventsOf(first, drafts));
        const again = convert(dialect, dialect, said);
        expect(convert(dialect, dialect, again)).toEqual(again);
        if (typeof dialect.cursor === "string") expect(again).toEqual(said);
      }),
      { numRuns: 25 },
    );
  });

  it("to runwire and back is what converting to itself gives", () => {
    fc.assert(
      fc.property(arbitraryRun(), ({ drafts }) => {
        const said = linesOf(dialect, eventsOf(first, drafts));
        const way = convert(dialect, runwire, said);
        expect(convert(runwire, dialect, way)).toEqual(convert(dialect, dialect, said));
      }),
      { numRuns: 25 },
    );
  });

  it("takes several runs for several logs", () => {
    fc.assert(
      fc.property(arbitraryRun(), arbitraryRun(), (one, other) => {
        const lines = [
          linesOf(dialect, eventsOf(first, one.drafts)),
          linesOf(dialect, eventsOf(second, other.drafts)),
        ];
        const apart = lines.map((said) => convert(dialect, dialect, said));
        expect(convert(dialect, dialect, lines.flat())).toEqual(apart.flat());
        const runs = readIn(dialect, lines.flat()).map(({ run_id }) => run_id);
        expect(new Set(runs).size).toBe(lines.filter((said) => said.length > 0).length);
      }),
      { numRuns: 15 },
    );
  });

  it("reads what a server makes, which may be larger than any draft [RW-DRAFT-5]", () => {
    const wide = Object.fromEntries(Array.from({ length: limits.jsonKeysMax + 1 }, (_, i) => [`k${i}`, i]));
    const deep = JSON.parse(`${"[".repeat(200)}${"]".repeat(200)}`) as unknown;
    const drafts: readonly Draft[] = [
      { type: "run.lifecycle", payload: { state: "running" } },
      { type: "tool.start", payload: { call_id: "c", tool: "t", input: { wide, deep } } },
      { type: "tool.end", payload: { call_id: "c", ok: true, output: { wide, deep } } },
      { type: "run.lifecycle", payload: { state: "done" } },
    ];
    const events = readIn(dialect, linesOf(dialect, eventsOf(first, drafts)));
    const end = events.find(({ type }) => type === "tool.end");
    expect(end?.payload).toMatchObject({ call_id: "c", ok: true });
    if (dialect.carries === "all" || dialect === koder)
      expect(end?.payload).toEqual({ call_id: "c", ok: true, output: { wide, deep } });
  });

  it("makes logs: numbers without gaps, ids of their own, and the first state first", () => {
    fc.assert(
      fc.property(arbitraryRun(), ({ drafts }) => {
        const said = linesOf(dialect, eventsOf(first, drafts));
        const events = readIn(dialect, said);
        expect(events).toEqual(readIn(dialect, said));
        expect(events.map(({ pos }) => pos)).toEqual(events.map((_e, i) => i + 1));
        expect(events[0]?.type).toBe("run.lifecycle");
        expect(new Set(events.map(({ id }) => id)).size).toBe(events.length);
        const seqs = events.map(({ seq }) => seq);
        expect(seqs).toEqual(seqs.toSorted((a, b) => a - b));
      }),
      { numRuns: 15 },
    );
  });
});

describe("CONVERT", () => {
  it("Loom as a sender wrote it, to runwire and back, is what it is to itself", () => {
    fc.assert(
      fc.property(fc.array(arbitraryLoomStream, { maxLength: 3 }), (streams) => {
        const lines = streams.flat().map((message) => JSON.stringify(message));
        const direct = convert(loom, loom, lines);
        expect(convert(runwire, loom, convert(loom, runwire, lines))).toEqual(direct);
        const said = direct.map((line) => JSON.parse(line) as { readonly event_id: number });
        const starts = said.filter(({ event_id }) => event_id === 1);
        expect(starts).toHaveLength(streams.length);
      }),
      { numRuns: 50 },
    );
  });

  it.each([
    ["a `run_start`", [{ type: "run_start" }, { type: "run_start" }], 2],
    ["an `event_id` that begins again", [3, 4, 1].map((event_id) => loomChunk({ event_id })), 2],
    ["what follows a reply without numbers", [{ reply: "a" }, { reply: "b" }], 2],
    [
      "a run that goes on after its reply by number",
      [{ reply: "a", event_id: 1 }, loomChunk({ event_id: 2 })],
      1,
    ],
    ["a number that came twice", [3, 3].map((event_id) => loomChunk({ event_id })), 1],
  ])("reads %s in Loom for what it is", (_, messages, count) => {
    const lines = messages.map((message) => JSON.stringify(message));
    expect(new Set(readIn(loom, lines).map(({ run_id }) => run_id)).size).toBe(count);
  });

  it("keeps the run's name, and two runs apart that have the same", () => {
    const start = JSON.stringify({ type: "run_start", run_id: "run-1" });
    const names = readIn(loom, [start, start]).map(({ run_id }) => run_id);
    expect(names[0]).toBe("run-1");
    expect(new Set(names).size).toBe(2);
  });

  it("reads runs that come in turns as their own logs", () => {
    fc.assert(
      fc.property(arbitraryRun(), arbitraryRun(), fc.infiniteStream(fc.boolean()), (one, other, picks) => {
        const logs = [[...eventsOf(first, one.drafts)], [...eventsOf(second, other.drafts)]];
        const mixed: Event[] = [];
        for (const pick of picks) {
          const from = logs[pick ? 0 : 1]?.length ? pick : !pick;
          const e = logs[from ? 0 : 1]?.shift();
          if (e === undefined) break;
          mixed.push(e);
        }
        const said = linesOf(loom, mixed);
        const apart = [eventsOf(first, one.drafts), eventsOf(second, other.drafts)].flatMap((events) =>
          linesOf(loom, events),
        );
        expect(said.toSorted()).toEqual(apart.toSorted());
        expect(convert(koder, koder, linesOf(koder, mixed))).toEqual(linesOf(koder, mixed));
      }),
      { numRuns: 15 },
    );
  });

  it("refuses what could never be an event", () => {
    const deep = `{"type":"custom","value":${"[".repeat(100_000)}${"]".repeat(100_000)}}`;
    expect(() => readIn(loom, [deep])).toThrow("nested deeper");
    expect(() => readIn(loom, ['{"type":"custom","value":1e999}'])).toThrow("overflows");
  });
});

function loomChunk(envelope: object): object {
  return { ...envelope, type: "message_chunk", content: "x", id: "think" };
}
