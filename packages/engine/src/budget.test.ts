// A budget is kept: it is told once that it runs low, once that it is used up, and then no model is asked any more.

import type { Event } from "@runwire/protocol";
import { describe, expect, test } from "vitest";
import { demoModel } from "./demo/model.js";
import { chooseModel } from "./providers/choose.js";
import { spawnTool } from "./spawn.js";
import { answering } from "./testing/asides.js";
import { lookTool, payloadsOf, readRun, served, servedOnFake, startRun } from "./testing/served.js";
import { secretKey } from "./testing/under-test.js";
import { plainAnswer } from "./testing/wires/answer.js";

const { fake, server } = await servedOnFake({ tools: [lookTool, spawnTool] }, (url) => ({
  ANTHROPIC_API_KEY: secretKey,
  ANTHROPIC_BASE_URL: url,
  RUNWIRE_OPENAI_BASE_URL: url,
}));

/** At $2 and $10 for a million tokens: $0.03 an answer. */
const usage = { input: 10_000, cached: 0, output: 1000, reasoning: 0 };
const model = "anthropic/claude-sonnet-5-5";
const quotas = (events: readonly Event[]) =>
  events.filter(({ type }) => type.startsWith("quota.")).map(({ type, child_id }) => [type, child_id]);

describe("a run with a budget", () => {
  test("ends before it asks again, and says each once for the whole tree [RW-COURSE-3]", async () => {
    // Each run spawns two children, as deep as it may.
    fake.script(
      answering(() => ({
        kind: "answer",
        answer: {
          ...plainAnswer,
          usage,
          finish: "calls",
          calls: ["one", "two"].map((prompt, i) => ({
            call_id: `c${i}`,
            tool: "spawn",
            args: JSON.stringify({ prompt }),
          })),
        },
      })),
    );
    const run_id = await startRun(server.url, { model, budget_usd: 0.1 });
    const events = await readRun(server.url, run_id);
    expect(quotas(events)).toEqual([
      ["quota.low", null],
      ["quota.blocked", null],
    ]);
    expect(events.at(-1)?.payload).toMatchObject({
      state: "error",
      reason: expect.stringContaining("the budget is used up"),
    });
    const [blocked] = payloadsOf(events, "quota.blocked");
    expect(Number(blocked?.spent_usd)).toBeGreaterThanOrEqual(0.1);
    // Those that were on their way when it was noticed may have gone on; nobody began after that.
    const answers = payloadsOf(events, "usage").length;
    expect(answers).toBeGreaterThanOrEqual(4);
    expect(answers).toBeLessThanOrEqual(16);
  });

  test("that is enough for the answer has it, and nothing beside it", async () => {
    fake.script(answering(() => ({ kind: "answer", answer: { ...plainAnswer, usage } })));
    const events = await readRun(server.url, await startRun(server.url, { model, budget_usd: 0.02 }));
    expect(events.at(-1)?.payload).toMatchObject({ state: "done" });
    expect(payloadsOf(events, "usage")).toHaveLength(1);
    const rich = await readRun(server.url, await startRun(server.url, { model, budget_usd: 5 }));
    expect(quotas(rich)).toEqual([]);
    expect(payloadsOf(rich, "title")).toHaveLength(1);
  });

  test("asks no model without a price, also where the server was given others since [RW-COURSE-3]", async () => {
    // The server's own choice is made anew when a run begins.
    const own = { ANTHROPIC_API_KEY: secretKey, ANTHROPIC_BASE_URL: fake.url };
    let asked = 0;
    fake.script(() => {
      asked += 1;
      return { kind: "answer", answer: { ...plainAnswer, usage } };
    });
    let name = model;
    const other = await served({
      model: () => chooseModel(name, { env: own, demo: demoModel({ wordMs: 0 }) }),
      around: (makeAgent) => (host) => {
        const agent = makeAgent(host);
        return {
          ...agent,
          take(run) {
            name = "anthropic/claude-unheard-of";
            agent.take(run);
          },
        };
      },
    });
    try {
      const events = await readRun(other.url, await startRun(other.url, { budget_usd: 1 }));
      expect(payloadsOf(events, "routing.not_possible")).toHaveLength(1);
      expect(events.at(-1)?.payload).toMatchObject({
        state: "error",
        reason: expect.stringContaining("anthropic/claude-unheard-of"),
      });
      expect(asked).toBe(0);
    } finally {
      await other.close();
    }
  });

  test("is refused where a price is not known [RW-COURSE-3]", async () => {
    const refused = startRun(server.url, { model: "anthropic/claude-unheard-of", budget_usd: 1 });
    await expect(refused).rejects.toThrow("KAI-MODEL-PRICE-0001");
    const fallback = startRun(server.url, { model, fallback_models: ["anthropic/claude-x"], budget_usd: 1 });
    await expect(fallback).rejects.toThrow("anthropic/claude-x");
    await expect(startRun(server.url, { model, budget_usd: 0 })).rejects.toThrow("422");
    // What nobody sends a bill for costs nothing.
    await startRun(server.url, { model: "local/llama", budget_usd: 1 });
  });
});
