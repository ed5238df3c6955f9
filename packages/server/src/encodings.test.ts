import type { Dialect, StoredEvent } from "@runwire/protocol";
import { expect, it } from "vitest";
import { encodings } from "./encodings.js";
import { stretchOf } from "./log/stretch.js";
import type { RunKey, Store } from "./store.js";

/** A dialect that remembers what it was told last. */
const dialect = {
  name: "mindful",
  cursor: { last: () => 0 },
  first: "",
  step: (_state: unknown, { payloadText }: StoredEvent) => [payloadText, []],
} as unknown as Dialect;

const runs = 100;
const keys = Array.from({ length: runs }, (_, i): RunKey => ({ tenant: "acme", run_id: `run_${i}` }));

/** How many of the runs need not be folded from their beginning, after all were asked for in turn. */
async function remembered(chars: number): Promise<number> {
  const says = "x".repeat(chars);
  const last = 1000;
  let froms: number[] = [];
  const { at } = encodings({
    async read(_key: unknown, _view: unknown, after: number) {
      froms.push(after);
      return stretchOf(after >= last ? [] : [{ pos: last, payloadText: says } as StoredEvent]);
    },
  } as unknown as Store);
  for (const key of keys) expect(await at(key, "default", dialect, last)).toBe(says);
  let known = 0;
  // The last first: what is forgotten must not be put back in the place of what is not.
  for (const key of keys.toReversed()) {
    froms = [];
    expect(await at(key, "default", dialect, last)).toBe(says);
    if (!froms.includes(0)) known += 1;
    else break;
  }
  return known;
}

it("light states of all runs are remembered, heavy ones of the last, and too heavy ones not at all", async () => {
  expect(await remembered(100)).toBe(runs);
  const heavy = await remembered(1024 * 1024);
  expect(heavy).toBeGreaterThan(10);
  expect(heavy).toBeLessThan(50);
  expect(await remembered(8 * 1024 * 1024)).toBe(0);
});

it("what a state remembers of a tenant goes with what is erased of it", async () => {
  const froms: number[] = [];
  const { at, forget } = encodings({
    async read(_key: unknown, _view: unknown, after: number) {
      froms.push(after);
      return stretchOf(after === 1 ? [] : [{ pos: 1, payloadText: "said" } as StoredEvent]);
    },
  } as unknown as Store);
  const [mine, other] = ["acme", "acme2"].map((tenant): RunKey => ({ tenant, run_id: "run_1" })) as [
    RunKey,
    RunKey,
  ];
  for (const key of [mine, other]) await at(key, "default", dialect, 1);
  forget("acme");
  froms.length = 0;
  for (const key of [other, mine]) await at(key, "default", dialect, 1);
  expect(froms).toEqual([1, 0, 1]);
});
