import type { StoredEvent } from "@runwire/protocol";
import { describe, expect, it } from "vitest";
import { memoryBus } from "./bus.js";
import { hub } from "./hub.js";
import type { Store } from "./store.js";

const eventsMax = 10_000;
const cut = 500;
const eventAt = (pos: number) =>
  ({ pos, type: "custom", payloadText: "x".repeat(100), child_id: null }) as unknown as StoredEvent;

/** A log that is all in memory. */
const store = {
  head: async () => ({ views: { default: { pos: eventsMax }, full: { pos: eventsMax } } }),
  read: async (_key: unknown, _view: unknown, after: number) =>
    Array.from({ length: Math.min(cut, eventsMax - after) }, (_, i) => eventAt(after + i + 1)),
} as unknown as Store;

describe("whoever reads a long log that others have read", () => {
  it("lets others come in between", async () => {
    const listener = { moved() {}, gone() {}, lagBytes: () => undefined };
    const log = await hub(store, memoryBus()).follow({ tenant: "t", run_id: "run_a" }, "default", listener);
    const readAll = async (): Promise<{ readonly turns: number; readonly reads: number }> => {
      let [turns, reads, isOver] = [0, 0, false];
      const turn = (): void => {
        turns += 1;
        if (!isOver) setImmediate(turn);
      };
      setImmediate(turn);
      for (let at = 0; at < eventsMax; reads += 1) at = (await log.next(at))?.to ?? eventsMax;
      isOver = true;
      return { turns, reads };
    };
    await readAll();
    const { turns, reads } = await readAll();
    expect(reads).toBe(eventsMax / cut);
    expect(turns).toBeGreaterThanOrEqual(reads - 2);
  });
});
