import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isNamedBy, namedByAll } from "./given.js";

const name = fc
  .array(fc.constantFrom("a", "b", "ab"), { minLength: 1, maxLength: 3 })
  .map((parts) => parts.join("."));
const pattern = fc.oneof(
  name,
  name.map((begin) => `${begin}.*`),
  fc.constant("*"),
);

describe("one list made of several", () => {
  it("allows what each of them allows, and nothing else", () => {
    fc.assert(
      fc.property(fc.array(fc.array(pattern, { maxLength: 4 }), { maxLength: 4 }), name, (lists, tool) => {
        const allows = (list: readonly string[]): boolean => list.some((one) => isNamedBy(one, tool));
        expect(allows(namedByAll(lists))).toBe(lists.every(allows));
      }),
    );
  });
});
