import { StoredEvent } from "@runwire/protocol";
import { expect, it } from "vitest";
import type { Head } from "./log/head.js";
import { nothing, stretchOf } from "./log/stretch.js";
import type { Store } from "./store.js";
import { transcripts } from "./transcripts.js";

const key = { tenant: "acme", run_id: "run_a" };
const event = (pos: number): StoredEvent =>
  new StoredEvent(`evt_${pos}`, "2026-01-01T00:00:00.000Z", "custom", "run_a", "run_a", pos, pos, "{}", null);

/** A log of this many events, of which the first can be read. */
function storeOf(head: number | undefined): Store {
  const at = head === undefined ? undefined : ({ views: { full: { pos: head, seq: head } } } as Head);
  return {
    snapshotBefore: async () => undefined,
    read: async (_key: unknown, _view: unknown, after: number) =>
      after === 0 ? stretchOf([event(1)]) : nothing,
    head: async () => at,
  } as unknown as Store;
}

it("a transcript is whole, or whoever asks is told that the log went while it was read", async () => {
  expect(await transcripts(storeOf(1)).at(key, "full", 1)).toMatchObject({ pos: 1 });
  // Up to the head, where that comes first.
  expect(await transcripts(storeOf(1)).at(key, "full", 9)).toMatchObject({ pos: 1 });
  const gone = { code: "KAI-STREAM-CONN-0002" };
  await expect(transcripts(storeOf(2)).at(key, "full", 2)).rejects.toMatchObject(gone);
  await expect(transcripts(storeOf(undefined)).at(key, "full", 2)).rejects.toMatchObject(gone);
});

it("whoever asks for a transcript while it is folded shares that fold, which is kept once", async () => {
  const payload = JSON.stringify({ text: "x".repeat(100_000) });
  const large = new StoredEvent("evt_1", "", "custom", "run_a", "run_a", 1, 1, payload, null);
  let [reads, kept, isBroken] = [0, 0, false];
  const { at } = transcripts({
    ...storeOf(1),
    async read() {
      reads += 1;
      if (isBroken) throw new Error("damaged");
      return stretchOf([large]);
    },
    async keepSnapshot() {
      kept += 1;
    },
  });
  const asked = await Promise.all(Array.from({ length: 25 }, () => at(key, "full", 1)));
  expect([new Set(asked).size, reads, kept]).toEqual([1, 1, 1]);
  // It is shared no longer than it takes, and nor is what it failed of.
  isBroken = true;
  await expect(at(key, "full", 1)).rejects.toThrow("damaged");
  isBroken = false;
  expect(await at(key, "full", 1)).toMatchObject({ pos: 1 });
});
