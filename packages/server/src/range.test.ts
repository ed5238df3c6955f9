import { runwire, type StoredEvent } from "@runwire/protocol";
import { describe, expect, it } from "vitest";
import { stretchOf } from "./log/stretch.js";
import { encode, toRanges } from "./range.js";
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
});
