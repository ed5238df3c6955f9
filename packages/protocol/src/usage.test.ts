import { describe, expect, it } from "vitest";
import { limits } from "./limits.js";
import { addedUsage, type Usage } from "./usage.js";

const { usageNamesMax, usageNameCharsMax } = limits;

describe("sums of usage", () => {
  it("have the first names that there is room for, and count on under these [RW-CHILD-5]", () => {
    const many = Object.fromEntries(Array.from({ length: 2 * usageNamesMax }, (_, i) => [`n${i}`, 1]));
    let usage: Usage = addedUsage(null, {}, { input_tokens: 1 });
    for (let events = 0; events < 3; events++) usage = addedUsage(null, usage, { ...many, input_tokens: 1 });
    expect(Object.keys(usage)).toHaveLength(usageNamesMax);
    expect(usage).toMatchObject({ input_tokens: 4, n0: 3, [`n${usageNamesMax - 2}`]: 3 });
  });

  it("have no long name [RW-CHILD-5]", () => {
    const longest = "x".repeat(usageNameCharsMax);
    expect(addedUsage(null, {}, { [longest]: 1, [`${longest}x`]: 1 })).toEqual({ [longest]: 1 });
  });
});
