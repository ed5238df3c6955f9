import { type Dialect, runwire, type StoredEvent } from "@runwire/protocol";
import { describe, expect, it } from "vitest";
import { stretchOf } from "./log/stretch.js";
import { encode, rangeBytes, toRanges } from "./range.js";
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
});
