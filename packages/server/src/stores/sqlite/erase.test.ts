import { expect, it } from "vitest";
import type { RunKey } from "../../store.js";
import { type EraserParts, eraser } from "./erase.js";

it("a tree that cannot be read keeps no other, and is not told as gone", async () => {
  const root = (run_id: string): RunKey => ({ tenant: "acme", run_id });
  const dropped: unknown[] = [];
  const told: RunKey[] = [];
  const parts = {
    clock: { now: () => 0 },
    commits: { exclusively: (task: (asOf: number) => Promise<void>) => task(0) },
    runs: {
      tree(_tenant: string, run_id: string) {
        if (run_id === "run_b") throw new Error("malformed");
        return [run_id];
      },
      blobsOf(_tenant: string, run_id: string) {
        if (run_id === "run_c") throw new Error("malformed");
        return [];
      },
    },
    hot: { rowsOf: () => [], dropTree: (_tenant: string, run_id: string) => dropped.push(run_id) },
    heads: { delete: () => {} },
    watch: { forget: () => {} },
    writer: { condition: "ok", write: async () => {}, truncate: async () => {} },
    moved: () => {},
    unreferred: async () => {},
    erased: async (roots: readonly RunKey[]) => void told.push(...roots),
  } as unknown as EraserParts;
  const roots = ["run_a", "run_b", "run_c", "run_d"].map(root);
  await expect(eraser(parts).eraseTrees(roots)).rejects.toThrow("malformed");
  expect(dropped).toEqual(["run_a", "run_d"]);
  expect(told).toEqual([root("run_a"), root("run_d")]);
});
