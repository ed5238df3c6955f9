import { type Dialect, runtime, runwire, StoredEvent } from "@runwire/protocol";
import { describe, expect, it } from "vitest";
import { heldBytes } from "./held.js";
import { stretchOf, stretchOfLines } from "./log/stretch.js";
import { encode, rangeBytes, toRanges } from "./range.js";
import { fromSegment, toSegments } from "./stores/sqlite/segments.js";
import { type Framing, wire } from "./wire.js";

const event = {
  pos: 1,
  seq: 1,
  type: "custom",
  payloadText: '{"a":1}',
  child_id: null,
} as unknown as StoredEvent;

describe("a range that is kept", () => {
  const framings: readonly Framing[] = ["sse", "sse-mux", "ndjson", "websocket", "in-process"];

  it.each(framings)("keeps of what was made of it its own bytes alone: %s", (framing) => {
    const [range] = toRanges(0, stretchOf([event]));
    const saying = wire(runwire, framing, false);
    const { bytes } = encode(range!, saying, runwire.first);
    expect(bytes.toString()).toContain('"type":"custom"');
    expect(bytes.buffer.byteLength).toBe(bytes.length);
  });

  it("counts what its wires remember of the log before it", () => {
    const [range] = toRanges(0, stretchOf([event]));
    const remembering = { ...runwire, name: "mindful", step: (state: unknown) => [state, []] };
    const saying = wire(remembering as unknown as Dialect, "sse", false);
    const before = rangeBytes(range!);
    encode(range!, saying, { settled: { text: "x".repeat(1_000_000) } });
    expect(rangeBytes(range!)).toBeGreaterThan(before + 1_000_000);
  });

  it("counts what was made of it as long as it is, and the events that were made for that", () => {
    const log = "run_01M7HTSWZSAYZ81X49583ZMJRX";
    const events = Array.from({ length: 100 }, (_, i) => {
      const id = `evt_${String(i).padStart(26, "0")}`;
      const ts = "2026-01-01T00:00:00.000Z";
      return new StoredEvent(id, ts, "custom", log, null, i + 1, i + 1, '{"a":1}', null);
    });
    const lines = toSegments(events).map((segment) => fromSegment(log, segment))[0]!;
    const [range] = toRanges(0, stretchOfLines(lines));
    const own = lines.bytes.length;
    const { all } = range!.weights;
    // Nobody has said it yet; somebody will.
    expect(rangeBytes(range!)).toBe(own + all);
    const asItIs = encode(range!, wire(runwire as Dialect, "ndjson", false), runwire.first).bytes.length;
    const none = heldBytes(runwire.first);
    expect(rangeBytes(range!)).toBe(own + asItIs + none);
    const said = encode(range!, wire(runtime as Dialect, "sse", false), runtime.first).bytes.length;
    expect(said).toBeGreaterThan(2 * all);
    expect(rangeBytes(range!)).toBeGreaterThan(own + asItIs + none + said + all);
  });
});
