import fc from "fast-check";
import { expect, it } from "vitest";
import { inputWords } from "./words.js";

it("text that is cut has no half of a character", () => {
  const text = fc.string({ unit: fc.constantFrom("a", " ", "ž", "🐎"), maxLength: 80 });
  fc.assert(
    fc.property(text, fc.integer({ min: 2, max: 20 }), (given, charsMax) => {
      const words = inputWords(given, charsMax);
      expect(words.length).toBeLessThanOrEqual(charsMax);
      expect(words).not.toMatch(/\p{Cs}|�/u);
    }),
  );
});
