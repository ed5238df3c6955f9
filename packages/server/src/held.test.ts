import fc from "fast-check";
import { expect, it } from "vitest";
import { heldBytes, heldBytesMax } from "./held.js";

it("what a state holds is counted by its texts and members, up to a bound", () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.nat({ max: 10_000 }), (value, chars) => {
      const state = { value, text: "x".repeat(chars) };
      expect(heldBytes(state)).toBeGreaterThanOrEqual(heldBytes({ value }) + 2 * chars);
      expect(heldBytes({ value })).toBe(heldBytes({ value: structuredClone(value) }));
      expect(heldBytes({ value, text: [{ text: "x".repeat(heldBytesMax) }] })).toBe(heldBytesMax);
    }),
  );
});

it("what states share is counted once, also within what they do not", () => {
  let looks = 0;
  const shared = {
    get text() {
      looks += 1;
      return "said";
    },
  };
  const first = heldBytes({ said: 1, shared, runs: { a: 1, shared } });
  expect(heldBytes({ said: 2, shared, runs: { a: 2, shared } })).toBe(first);
  expect(looks).toBe(1);
});
