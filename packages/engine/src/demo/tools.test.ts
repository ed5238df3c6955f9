import { getEventListeners } from "node:events";
import { expect, test } from "vitest";
import { testContext } from "../testing/context.js";
import type { Tool } from "../tool.js";
import { demoTools } from "./tools.js";

test("a search that is called off, before or meanwhile, is over at once", async () => {
  const [search] = demoTools({ searchMs: 3_600_000 }) as [Tool];
  const context = testContext();
  try {
    const found = search.run({ query: "Redis" }, context);
    context.abort();
    expect(await found).toMatchObject({ query: "Redis" });
    expect(await search.run({ query: "Redis" }, context)).toMatchObject({ query: "Redis" });
  } finally {
    context.remove();
  }
});

test("a search that is over listens no more", async () => {
  const [search] = demoTools({ searchMs: 0 }) as [Tool];
  const context = testContext();
  try {
    await search.run({ query: "Redis" }, context);
    expect(getEventListeners(context.signal, "abort")).toEqual([]);
  } finally {
    context.remove();
  }
});
