import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { clarifyTool } from "../asks.js";
import type { ChatMessage, ModelRequest } from "../model.js";
import { spawnTool } from "../spawn.js";
import { hearAll, never } from "../testing/under-test.js";
import { demoModel } from "./model.js";

const demo = demoModel({ wordMs: 0 });
const base: ModelRequest = { system: "", messages: [], tools: [spawnTool, clarifyTool], partial: "" };
const hear = (messages: readonly ChatMessage[], more: Partial<ModelRequest> = {}) =>
  hearAll(demo.stream({ ...base, messages, ...more }, never));

const user = (content: string): ChatMessage => ({ role: "user", content });
const direction = (content: string): ChatMessage => ({ role: "user", content, direction: "steer" });
const assistant = (content: string): ChatMessage => ({ role: "assistant", content, calls: [] });
const report = (text: string): ChatMessage => ({
  role: "tool",
  ...{ call_id: "c", tool: "spawn", ok: true, output: { text } },
});
const question = user("compare three charting libraries");
const answer = assistant("Here is what came back.");

describe("the demo", () => {
  test("takes a later question for a question, and remembers what was asked before", async () => {
    const heard = await hear([question, answer, user("which database is smallest?")]);
    expect(heard.text).toContain('You asked before: "compare three charting libraries".');
    expect(heard.text).toContain("SQLite, PostgreSQL, DuckDB");
    expect(heard.calls.map(({ tool }) => tool)).toEqual(["spawn", "spawn", "spawn"]);
  });

  test("takes one that names nothing to be about what was asked before", async () => {
    const heard = await hear([user("databases?"), answer, question, answer, user("which is smallest?")]);
    expect(heard.text).toContain("uPlot, ECharts, Observable Plot");
  });

  test("answers a later question by what was found since, not by what was found before", async () => {
    const before = [question, assistant("I'll look."), report("old"), answer];
    const heard = await hear([...before, user("and now?"), assistant("I'll look."), report("new")]);
    expect(heard.text).toContain("new");
    expect(heard.text).not.toContain("old");
    expect(heard.calls).toEqual([]);
  });

  test.each([
    ["at a tool's end", [question, assistant("I'll look."), report("uPlot is small"), direction("be brief")]],
    ["in mid-answer", [question, answer, user("and now?"), assistant("I'll"), direction("be brief")]],
    ["before it has said anything", [question, direction("be brief")]],
  ])("does as it is told %s", async (_, messages) => {
    const heard = await hear(messages);
    expect(heard.text).toMatch(/^Understood: be brief/);
    expect(heard.calls).toEqual([]);
  });

  test("says which step of the plan its helpers are for", async () => {
    const system = "Work.\n\nThe plan, to be kept to:\ns1. Split\ns2. Look into uPlot\nx9. Look into ECharts";
    const { calls } = await hear([question], { system });
    expect(calls.map(({ input }) => (input as { plan_step?: string }).plan_step)).toEqual([
      "s2",
      "x9",
      undefined,
    ]);
  });

  test("makes a title of the first words, and suggestions of what it knows", async () => {
    const asked = [user("  help me to find the very best of all the charts "), answer, user("Name it.")];
    expect((await hear(asked, { aside: "title", tools: [] })).text).toBe("Help me to find the very best of");
    const suggested = (await hear([question, answer], { aside: "suggestions", tools: [] })).text.split("\n");
    expect(suggested).toHaveLength(3);
    expect(suggested.join()).toContain("uPlot");
  });

  test("goes on word for word from wherever it was cut off", async () => {
    const messages = fc.constantFrom(
      [question],
      [question, answer, user("and now?")],
      [question, assistant("I'll look."), report("uPlot is small")],
      [question, direction("be brief")],
    );
    await fc.assert(
      fc.asyncProperty(messages, fc.nat(), async (asked, cut) => {
        const whole = await hear(asked);
        const partial = whole.text.slice(0, cut % whole.text.length);
        const rest = await hear(asked, { partial });
        expect(partial + rest.text).toBe(whole.text);
        expect(rest.calls).toEqual(whole.calls);
      }),
      { numRuns: 30 },
    );
  });
});
