import fc from "fast-check";
import { expect, it } from "vitest";
import { runMap } from "./run-map.js";

it("a map by tenant and run has the size of what it holds", () =>
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.constantFrom("set", "delete"), fc.nat(2), fc.nat(3))), (steps) => {
      const map = runMap<number>();
      for (const [act, tenant, run] of steps) {
        if (act === "set") map.set(`t${tenant}`, `run_${run}`, 1);
        else map.delete(`t${tenant}`, `run_${run}`);
        expect(map.size).toBe([...map.values()].length);
      }
    }),
  ));
