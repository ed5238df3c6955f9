import { describe, expect, it } from "vitest";
import type { RunwireError } from "../errors.js";
import type { Event } from "../events.js";
import { dialects } from "./index.js";
import { koder } from "./koder.js";

const done: Event = {
  id: "evt_9",
  ts: "2026-05-14T19:42:13.124Z",
  type: "run.lifecycle",
  run_id: "run_1",
  child_id: null,
  pos: 12,
  seq: 9,
  payload: { state: "done", reason: null },
};
const [last] = koder.step(null, done)[1];
if (last === undefined) throw new Error("the terminal event has a message");

describe("koder", () => {
  it("is the default on the wire", () => {
    expect([...dialects.keys()][0]).toBe("koder");
  });

  it("says core events under their seq and is silent about all others [RW-KODER-1]", () => {
    expect(last.id).toBe("9");
    expect(last.event).toBeUndefined();
    expect(koder.step(null, { ...done, type: "usage", payload: {} })[1]).toEqual([]);
    expect(koder.step(null, { ...done, type: "x.acme.done", payload: {} })[1]).toEqual([]);
  });

  it("tells on the terminal event how much this reader skipped, only if it did [RW-KODER-2]", () => {
    expect(koder.close(null, "finished", { dropped: 0, last })).toEqual([last]);
    const [told] = koder.close(null, "finished", { dropped: 41, last });
    expect(told?.id).toBe("9");
    expect(JSON.parse(told?.data ?? "")).toEqual({
      ...JSON.parse(last.data),
      payload: { state: "done", reason: null, dropped_count: 41, code: "KAI-STREAM-BUF-0001" },
    });
    expect(koder.decoder().decode(told ?? last)).toHaveLength(1);
  });

  it("adds nothing to a stream that does not finish [RW-KODER-2]", () => {
    for (const close of ["leaving", "broken"] as const)
      expect(koder.close(null, close, { dropped: 41 })).toEqual([]);
  });

  it.each([
    ["{", "KAI-STREAM-PROTO-0001"],
    ["[]", "KAI-STREAM-PROTO-0001"],
    ['{"type":"text.delta","payload":{}}', "KAI-STREAM-PROTO-0001"],
    ['{"type":"usage","payload":{}}', "KAI-STREAM-PROTO-0002"],
    ['{"type":"constructor","payload":{}}', "KAI-STREAM-PROTO-0002"],
  ])("refuses %s with %s [RW-KODER-3]", (data, code) => {
    try {
      koder.decoder().decode({ data });
      expect.unreachable();
    } catch (failure) {
      expect((failure as RunwireError).code).toBe(code);
    }
  });
});
