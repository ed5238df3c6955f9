import { describe, expect, it } from "vitest";
import { runtimeReader } from "./reader.js";

describe("incidents that a snapshot tells", () => {
  const failed = { type: "run.failed", reason: "out of memory" };

  it("are there once, however often it comes", () => {
    const reader = runtimeReader();
    reader.read(message(1, "runtime.error", { code: "x" }));
    for (let i = 2; i < 6; i++)
      reader.read(snapshot(i, [failed, { eventId: "evt_1", type: "runtime.error" }]));
    expect(reader.model.incidents.map(({ type }) => type)).toEqual(["runtime.error", "run.failed"]);
  });

  it("are no more than a reader keeps of those that it reads itself", () => {
    const reader = runtimeReader();
    const reasons = Array.from({ length: 1500 }, (_, i) => ({ ...failed, reason: `reason ${i}` }));
    reader.read(snapshot(1, reasons));
    expect(reader.model.incidents).toEqual(reasons.slice(-1000));
  });
});

function message(sequence: number, type: string, payload: object): object {
  return { eventId: `evt_${sequence}`, type, timestamp: "2026-01-01T00:00:00Z", sequence, payload };
}

function snapshot(sequence: number, incidents: readonly object[]): object {
  const threads = [{ threadId: "thread_1", status: "running", incidents }];
  return message(sequence, "snapshot.updated", {
    recovery: { mode: "snapshot" },
    snapshot: { lastSequence: sequence, threads },
  });
}
