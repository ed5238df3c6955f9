// What any producer may write. Real runs are traced in conformance's `gateway/trace.test.ts`.

import fc from "fast-check";
import { expect, it } from "vitest";
import type { Event } from "./events.js";
import { tracer } from "./trace.js";

it("times are whole nanoseconds in 64 bits, however long a producer says that it waits", () => {
  fc.assert(
    fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (wait_ms) => {
      const trace = tracer("run_1");
      trace.hear(event(1, "model.requested", {}));
      trace.hear(event(2, "model.failed", { wait_ms }));
      trace.hear(event(3, "model.completed", {}));
      const times = trace.spans().map((span) => [span.startTimeUnixNano, span.endTimeUnixNano]);
      expect(times).toHaveLength(2);
      for (const time of times.flat()) {
        expect(time).toMatch(/^\d+$/);
        expect(BigInt(time) < 2n ** 64n).toBe(true);
      }
      for (const [start = "", end = ""] of times) expect(BigInt(start) <= BigInt(end)).toBe(true);
    }),
  );
});

function event(pos: number, type: Event["type"], payload: object): Event {
  const ts = `2026-01-01T00:00:0${pos}.000Z`;
  return { id: `evt_${pos}`, ts, type, run_id: "run_1", child_id: null, pos, seq: pos, payload } as Event;
}
