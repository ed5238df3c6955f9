import { expect, test } from "vitest";
import { costOf } from "./prices.js";

const usage = { input_tokens: 10_000, output_tokens: 2000, reasoning_tokens: 500, cached_tokens: 4000 };

test("cached input costs less, and reasoning is part of the output", () => {
  expect(costOf({ provider: "anthropic", name: "claude-sonnet-5-5" }, usage)).toBeCloseTo(
    (6000 * 2 + 4000 * 0.2 + 2000 * 10) / 1e6,
    12,
  );
});

test("a dated model costs what the undated one does", () => {
  for (const [provider, dated, name] of [
    ["anthropic", "claude-haiku-4-5-20251001", "claude-haiku-4-5"],
    ["openai", "gpt-5-2025-08-07", "gpt-5"],
  ] as const)
    expect(costOf({ provider, name: dated }, usage)).toBe(costOf({ provider, name }, usage));
});

test("a long input costs more, all of it", () => {
  const long = { input_tokens: 300_000, output_tokens: 1000, reasoning_tokens: 0, cached_tokens: 0 };
  expect(costOf({ provider: "openai", name: "gpt-6-sol" }, long)).toBeCloseTo(
    (300_000 * 4 + 1000 * 15) / 1e6,
    12,
  );
});

test("what runs here costs nothing", () => {
  expect(costOf({ provider: "local", name: "llama" }, usage)).toBe(0);
  expect(costOf({ provider: "runwire", name: "demo" }, usage)).toBe(0);
});

test("a model whose price is not known has none, rather than a wrong one", () => {
  for (const name of ["gpt-99", "toString", "__proto__", ""])
    expect(costOf({ provider: "openai", name }, usage)).toBeNull();
  expect(costOf({ provider: "constructor", name: "name" }, usage)).toBeNull();
});
