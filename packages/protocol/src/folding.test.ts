import { expect, test } from "vitest";
import { remembering } from "./folding.js";

test("what is remembered last is not what is forgotten, whatever it is called", () => {
  const two = remembering(remembering({}, "call_a", "a", 2), "call_b", "b", 2);
  // An object has names that look like numbers before all others.
  expect(remembering(two, "7", "c", 2)).toHaveProperty("7", "c");
  expect(Object.keys(remembering(two, "7", "c", 2))).toHaveLength(2);
});
