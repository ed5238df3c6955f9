import { type EventType, eventTypes, koder, runwire, StoredEvent } from "@runwire/protocol";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { encodeEvents, toRanges } from "../range.js";
import { fromSegment, toSegments } from "../stores/sqlite/segments.js";
import { type Framing, wire } from "../wire.js";
import { countOf, type Lines, seqOf, typeOf } from "./lines.js";
import { between, stretchOf, stretchOfLines } from "./stretch.js";

const log = "run_01M7HTSWZSAYZ81X49583ZMJRX";
const framings: readonly Framing[] = ["sse", "sse-mux", "ndjson", "websocket", "in-process"];

const text = fc.oneof(
  fc.string({ unit: "binary", maxLength: 30 }),
  fc.nat(70_000).map((chars) => "x".repeat(chars)),
);
const payload = fc.dictionary(
  fc.string({ unit: "binary", maxLength: 9 }),
  fc.oneof(text, fc.integer(), fc.constant(null)),
  { maxKeys: 3 },
);
const type = fc.oneof(
  fc.constantFrom(...(Object.keys(eventTypes) as EventType[])),
  fc.stringMatching(/^x\.[a-z]{1,9}\.[a-z_]{1,20}$/).map((named) => named as EventType),
);
const child = fc.option(fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9_.:-]{0,40}$/));
const scope = fc.option(fc.record({ node: fc.string({ unit: "binary" }) }));

const events = fc
  .tuple(
    fc.integer({ min: 1, max: 1e9 }),
    fc.array(fc.tuple(type, child, payload, scope, fc.boolean()), { minLength: 1, maxLength: 20 }),
  )
  .map(([first, rows]) => {
    let seq = first;
    return rows.map(([of, child_id, facts, at, counts], i) => {
      if (counts) seq += 1;
      const id = `evt_${String(i).padStart(26, "0")}`;
      const ts = "2026-11-16T10:00:00.000Z";
      const scopeText = at === null ? null : JSON.stringify(at);
      return new StoredEvent(id, ts, of, log, child_id, first + i, seq, JSON.stringify(facts), scopeText);
    });
  });

const stored = (some: readonly StoredEvent[]): readonly Lines[] =>
  toSegments(some).map((segment) => fromSegment(log, segment));
const facts = (some: readonly StoredEvent[]) =>
  some.map(({ id, ts, type, run_id, child_id, pos, seq, payloadText, scopeText }) => ({
    id,
    ts,
    type,
    run_id,
    child_id,
    pos,
    seq,
    payloadText,
    scopeText,
  }));

describe("lines", { timeout: 60_000 }, () => {
  it("are the events that were stored, and give back their types and numbers", () =>
    fc.assert(
      fc.property(events, (some) => {
        const all = stored(some);
        expect(facts(all.flatMap((lines) => stretchOfLines(lines).events))).toEqual(facts(some));
        const read = all.flatMap((lines) =>
          Array.from({ length: countOf(lines) }, (_, i) => [typeOf(lines, i), seqOf(lines, i)]),
        );
        expect(read).toEqual(some.map(({ type, seq }) => [type, seq]));
      }),
    ));

  it("are cut where their events would be", () =>
    fc.assert(
      fc.property(events, fc.nat(22), fc.nat(22), (some, skip, take) => {
        const first = some[0]?.pos ?? 0;
        const [after, to] = [first - 2 + skip, first - 2 + skip + take];
        for (const lines of stored(some)) {
          const stretch = stretchOfLines(lines);
          const cut = between(stretch, after, to);
          expect(facts(cut.events)).toEqual(facts(between(stretchOf(stretch.events), after, to).events));
          expect(cut.last?.pos).toBe(cut.events.at(-1)?.pos);
        }
      }),
    ));

  it("are, on every wire that says them as they are, the bytes of their events", () =>
    fc.assert(
      fc.property(events, fc.boolean(), (some, chunked) => {
        for (const lines of stored(some)) {
          for (const dialect of [koder, runwire]) {
            for (const framing of framings) {
              const on = wire(dialect, framing, chunked && framing !== "websocket");
              const { bytes, messages } = encodeEvents(stretchOfLines(lines).events, on, dialect.first);
              const framed = on.frameLines?.(lines);
              expect(framed?.messages).toBe(messages);
              expect(framed?.bytes.equals(bytes)).toBe(true);
            }
          }
        }
      }),
    ));

  it("are cut by what they hold, what their events are about among it", () => {
    const at = JSON.stringify({ trace_id: "x".repeat(6000) });
    const some = Array.from({ length: 200 }, (_, i) => {
      const id = `evt_${String(i).padStart(26, "0")}`;
      return new StoredEvent(id, "2026-11-16T10:00:00.000Z", "custom", log, null, i + 1, 0, "{}", at);
    });
    const all = stored(some);
    expect(all.length).toBeGreaterThan(5);
    for (const { bytes } of all) expect(bytes.length).toBeLessThan(256 * 1024);
    const [range] = toRanges(0, stretchOf(some));
    expect(range?.weights.all).toBeGreaterThan(200 * 6000);
  });

  it("weigh as much as their events", () =>
    fc.assert(
      fc.property(events, (some) => {
        for (const lines of stored(some)) {
          const stretch = stretchOfLines(lines);
          const weights = (of: typeof stretch) =>
            toRanges(lines.firstPos - 1, of).map((range) => range.weights);
          expect(weights(stretch)).toEqual(weights(stretchOf(stretch.events)));
        }
      }),
    ));
});
