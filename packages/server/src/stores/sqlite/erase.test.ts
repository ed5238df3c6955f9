import { expect, it } from "vitest";
import type { RunKey } from "../../store.js";
import { type EraserParts, eraser } from "./erase.js";

const root = (run_id: string): RunKey => ({ tenant: "acme", run_id });
const roots = ["run_a", "run_b", "run_c", "run_d"].map(root);

const sound = { condition: "ok", truncate: async () => {} };

/** An eraser over rows that are there, but for what is said, and what it did. */
function erasing(runs: object, writer: object = { ...sound, write: async () => {} }) {
  const dropped: string[] = [];
  const told: RunKey[] = [];
  const parts = {
    clock: { now: () => 0 },
    commits: { exclusively: (task: (asOf: number) => Promise<void>) => task(0) },
    runs: { tree: (_tenant: string, run_id: string) => [run_id], blobsOf: () => [], ...runs },
    hot: { rowsOf: () => [], dropTree: (_tenant: string, run_id: string) => dropped.push(run_id) },
    heads: { delete: () => {} },
    watch: { forget: () => {} },
    writer,
    moved: () => {},
    unreferred: async () => {},
    erased: async (gone: readonly RunKey[]) => void told.push(...gone),
  } as unknown as EraserParts;
  return { erased: eraser(parts).eraseTrees(roots), dropped, told };
}

it("a tree that cannot be read keeps no other, and is not told as gone", async () => {
  const malformed = (lost: string) => (_tenant: string, run_id: string) => {
    if (run_id === lost) throw new Error("malformed");
    return [run_id];
  };
  const { erased, dropped, told } = erasing({ tree: malformed("run_b"), blobsOf: malformed("run_c") });
  await expect(erased).rejects.toThrow("malformed");
  expect(dropped).toEqual(["run_a", "run_d"]);
  expect(told).toEqual([root("run_a"), root("run_d")]);
});

it("what is gone when the disk takes no more is known to be, and told", async () => {
  let writes = 0;
  const writer = {
    ...sound,
    async write() {
      writes += 1;
      // All at once is too much, then there is room for two.
      if (writes === 1) throw new Error("damaged");
      if (writes < 4) return;
      writer.condition = "full";
      throw new Error("full");
    },
  };
  const { erased, dropped, told } = erasing({}, writer);
  await expect(erased).rejects.toThrow("full");
  expect(dropped).toEqual(["run_a", "run_b"]);
  expect(told).toEqual([root("run_a"), root("run_b")]);
});
