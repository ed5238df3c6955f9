import fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import { clarifyTool } from "../clarify.js";
import type { Call, ChatMessage, ModelRequest } from "../model.js";
import { spawnTool } from "../spawn.js";
import { type Heard, hearAll, never } from "../testing/under-test.js";
import type { Tool } from "../tool.js";
import { fileWriteTool } from "../tools/file-write.js";
import { demoModel } from "./model.js";
import { factOn, subjectsOf } from "./subjects.js";
import { demoTools } from "./tools.js";

const demo = demoModel({ wordMs: 0 });
const [searchTool] = demoTools({ searchMs: 0 }) as [Tool];
const base: ModelRequest = { system: "", messages: [], tools: [spawnTool, clarifyTool], partial: "" };
const hear = (messages: readonly ChatMessage[], more: Partial<ModelRequest> = {}) =>
  hearAll(demo.stream({ ...base, messages, ...more }, never));

const user = (content: string): ChatMessage => ({ role: "user", content });
const steer = (content: string): ChatMessage => ({ role: "user", content, direction: "steer" });
const assistant = (content: string): ChatMessage => ({ role: "assistant", content, calls: [] });
const report = (text: string): ChatMessage => ({
  role: "tool",
  ...{ call_id: "c", tool: "spawn", ok: true, output: { text } },
});
const redirect = (content: string): ChatMessage => ({ role: "user", content, direction: "redirect" });
/** Calls of one answer, and what they came to. */
const called = (
  ...calls: readonly (readonly [tool: string, input: object, output: object, ok?: boolean])[]
): readonly ChatMessage[] => [
  {
    role: "assistant",
    content: "I'll see.",
    calls: calls.map(([tool, input], i) => ({ call_id: `${tool}-${i}`, tool, input })),
  },
  ...calls.map(
    ([tool, , output, ok = true], i): ChatMessage => ({
      role: "tool",
      ...{ call_id: `${tool}-${i}`, tool, ok, output },
    }),
  ),
];
const spawned = (...subjects: readonly string[]) =>
  called(
    ...subjects.map(
      (subject) =>
        ["spawn", { prompt: `Find out about ${subject}` }, { text: `${subject}: it is so.` }] as const,
    ),
  );
const promptsOf = ({ calls }: Heard) => calls.map(({ input }) => (input as { prompt?: string }).prompt);
const planned = (...titles: readonly string[]) =>
  `Work.\n\nThe plan, to be kept to:\n${titles.map((title, i) => `s${i + 1}. ${title}`).join("\n")}`;
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
    ["at a tool's end", [question, assistant("I'll look."), report("uPlot is small"), steer("be brief")]],
    ["in mid-answer", [question, answer, user("and now?"), assistant("I'll"), redirect("be brief")]],
    ["before it has said anything", [question, redirect("be brief")]],
  ])("does as it is told %s", async (_, messages) => {
    const heard = await hear(messages);
    expect(heard.text).toMatch(/^Understood: be brief/);
    expect(heard.calls).toEqual([]);
  });

  test("says which step of the plan its helpers are for", async () => {
    const system = "Work.\n\nThe plan, to be kept to:\ns1. Split\ns2. Look into uPlot\nx9. Look into ECharts";
    const { calls } = await hear([question], { system });
    expect(calls.map(({ input }) => (input as { plan_step?: string }).plan_step)).toEqual(["s2", "x9"]);
  });

  test("makes a title of the first words, and suggestions of what it knows", async () => {
    const asked = [user("  help me to find the very best of all the charts "), answer, user("Name it.")];
    expect((await hear(asked, { aside: "title", tools: [] })).text).toBe("Help me to find the very best of");
    const suggested = (await hear([question, answer], { aside: "suggestions", tools: [] })).text.split("\n");
    expect(suggested).toHaveLength(3);
    expect(suggested.join()).toContain("uPlot");
  });

  test("looks for itself where it may have no helpers, and answers", async () => {
    const tools = [searchTool, fileWriteTool];
    const asked = user("compare two databases");
    const heard = await hear([asked], { tools });
    const queries = heard.calls.map(({ tool, input }) => [tool, input]);
    expect(queries).toEqual([
      ["demo.search", { query: "SQLite" }],
      ["demo.search", { query: "PostgreSQL" }],
    ]);
    const found = called(
      ["demo.search", { query: "SQLite" }, { text: "one file." }],
      ["demo.search", { query: "PostgreSQL" }, { text: "a server." }],
    );
    const { text, calls } = await hear([asked, ...found], { tools });
    expect(calls).toEqual([]);
    expect(text).toContain("- SQLite: one file.\n- PostgreSQL: a server.\n\nI would try SQLite first.");
  });

  test("answers from what it knows where it has no tools", async () => {
    const heard = await hear([question], { tools: [] });
    expect(heard.calls).toEqual([]);
    expect(heard.text).toContain("I have nothing to look it up with.");
    expect(heard.text).toContain("- uPlot: very small");
    const nothing = await hear([user("paint it blue")], { tools: [] });
    expect(nothing.text).toBe(
      'I have nothing to look it up with. I know nothing by heart about "paint it blue".',
    );
    expect((await hear([user("Find out about uPlot")], { tools: [] })).text).toMatch(/^uPlot: very small/);
  });

  test("plans with the tools that it will have, and with no others", async () => {
    const planTools = [{ name: "plan.propose", description: "", input_schema: {} }];
    const asked = user("help me choose a database and save it");
    const toolsIn = async (system: string) => {
      const { calls } = await hear([asked], { system, tools: planTools });
      const { steps } = (calls[0] as Call).input as { steps: readonly { est_tools: readonly string[] }[] };
      return steps.map(({ est_tools }) => est_tools.join());
    };
    const told = "Plan.\n\nThe tools that you will have then: ";
    const searches = ["demo.search", "demo.search", "demo.search"];
    expect(await toolsIn("Plan.")).toEqual([""]);
    expect(await toolsIn(`${told}demo.search`)).toEqual([...searches, ""]);
    expect(await toolsIn(`${told}spawn`)).toEqual(["spawn", "spawn", "spawn", ""]);
    expect(await toolsIn(`${told}clarify, demo.search, file.write, spawn`)).toEqual([
      ...["clarify", ...searches],
      ...["file.write", ""],
    ]);
  });

  test("repeats little of what it hears, whole words and characters of it, and is soon done", async () => {
    const slow = demoModel({ wordMs: 15 });
    const long = fc
      .constantFrom("word ", "of ", "😀", "of of,", "a, ", " ", "\n", '"')
      .map((s) => s.repeat(330_000));
    await fc.assert(
      fc.asyncProperty(long, fc.constantFrom("", "x", "compare "), async (rest, start) => {
        for (const messages of [
          [user(start + rest)],
          [user(start + rest), ...spawned("uPlot", "ECharts"), steer(rest), steer(start + rest)],
          [question, redirect(start + rest)],
        ]) {
          const heard = await hear(messages);
          expect(heard.text.length + heard.reasoning.length).toBeLessThan(1500);
          expect(heard.text + heard.reasoning).not.toMatch(/\p{Surrogate}/u);
        }
      }),
      { numRuns: 8 },
    );
    const prompt = Array.from({ length: 30 }, (_, i) => `word${i}`).join(" ");
    const { text } = await hear([user(prompt), ...spawned("uPlot", "ECharts")]);
    expect(text).toMatch(/on "word0 word1 .* word\d+…":/);
    expect(/on "(.*)…"/.exec(text)?.[1]?.length).toBeLessThanOrEqual(100);
    vi.useFakeTimers();
    try {
      const reports = Array.from({ length: 10 }, (_, i) => report(`${i} ${"a ".repeat(500)}`));
      const messages = [question, assistant("I'll look."), ...reports];
      let isDone = false;
      const hearing = hearAll(slow.stream({ ...base, messages }, never)).then(() => {
        isDone = true;
      });
      await vi.advanceTimersByTimeAsync(3000);
      expect(isDone).toBe(true);
      await hearing;
    } finally {
      vi.useRealTimers();
    }
  });

  test("does what it is redirected to, and takes nothing that was cut short for knowledge", async () => {
    const cut = { message: "The run was redirected before the tool was done." };
    const before = [question, ...called(["spawn", { prompt: "Find out about uPlot" }, cut, false])];
    const system = planned("Look into uPlot", "Look into ECharts", "Compare");
    const task = redirect("compare two databases, in depth");
    const heard = await hear([...before, task], { system });
    expect(heard.text).toContain("Understood: compare two databases, in depth. I'll have SQLite, PostgreSQL");
    expect(promptsOf(heard)).toEqual(["Find out about SQLite", "Find out about PostgreSQL"]);
    const { text, calls } = await hear([...before, task, ...spawned("SQLite", "PostgreSQL")], { system });
    expect(calls).toEqual([]);
    expect(text).toContain("- SQLite: it is so.\n- PostgreSQL: it is so.");
    expect(text).not.toContain("redirected");
    expect((await hear([...before, redirect("just say hello")])).text).toBe("Understood: just say hello.");
    const known = (await hear([question, ...spawned("uPlot"), redirect("just say hello")])).text;
    expect(known).toBe("Understood: just say hello.\n\nSo far I know:\n\n- uPlot: it is so.");
  });

  test("keeps to the plan that it is given", async () => {
    const looks = async (...titles: readonly string[]) =>
      promptsOf(await hear([question], { system: planned(...titles) }));
    expect(await looks("Only look into uPlot")).toEqual(["Find out about uPlot"]);
    expect(await looks("Look into ECharts and Chart.js.", "Answer")).toEqual([
      "Find out about ECharts",
      "Find out about Chart.js",
    ]);
    expect(await looks("Do not look into uPlot", "Look at ECharts")).toEqual(["Find out about ECharts"]);
    const nothing = await hear([question], { system: planned("Only this") });
    expect(nothing.calls).toEqual([]);
    expect(nothing.text).toContain("The plan has me look nothing up. This is what I know by heart");
    const one = await hear([question, ...spawned("uPlot")], { system: planned("Only look into uPlot") });
    expect(one.text).toContain("I looked into nothing else");
    const saving = [user("compare two databases and save it"), ...spawned("SQLite", "DuckDB")];
    const tools = [spawnTool, fileWriteTool];
    expect((await hear(saving, { tools })).calls).toHaveLength(1);
    expect((await hear(saving, { tools, system: planned("Look into SQLite") })).calls).toEqual([]);
  });

  test.each([
    ["speed", "Good to know: speed.", "For speed, I would try DuckDB first."],
    ["many features", "Good to know: many features.", "For many features, I would try PostgreSQL first."],
    [
      "a small download",
      "Good to know: a small download.",
      "For a small download, I would try SQLite first.",
    ],
    [
      "the colour!",
      "Good to know: the colour!",
      'I cannot tell which is best for "the colour!". I would try',
    ],
    [
      null,
      "Nobody answered, so I use my own judgement.",
      "Nobody said what matters most. By my own judgement,",
    ],
  ])("recommends by what was answered to its question: %s", async (said, heard, recommended) => {
    const asked = user("help me choose a database");
    expect((await hear([asked])).calls).toMatchObject([{ tool: "clarify" }]);
    const told = called(["clarify", { question: "What matters most?" }, { answer: said, note: "…" }]);
    expect((await hear([asked, ...told])).text).toContain(heard);
    const end = await hear([asked, ...told, ...spawned("SQLite", "PostgreSQL", "DuckDB")]);
    expect(end.text).toContain(recommended);
  });

  test("heeds all that it is told, also before its helpers are asked", async () => {
    const told = [steer("prefer small ones"), steer("many features, please!")];
    const { text } = await hear([
      user("compare databases"),
      ...spawned("SQLite", "PostgreSQL", "DuckDB"),
      ...told,
    ]);
    expect(text).toMatch(/^Understood: prefer small ones\. Many features, please! Here is/);
    expect(text).toContain("For a small download and many features, I would try SQLite first.");
    const asked = called(["clarify", { question: "What matters most?" }, { answer: "speed" }]);
    const early = await hear([user("help me choose a database"), ...asked, steer("be quick")]);
    expect(early.text).toMatch(/^Understood: be quick\. Good to know: speed\. I'll have/);
    expect(early.calls).toHaveLength(3);
  });

  test("suggests something about what it has answered, or about what it knows", async () => {
    const suggested = async (asked: string, said: string) =>
      (await hear([user(asked), assistant(said), user("Suggest.")], { aside: "suggestions", tools: [] }))
        .text;
    expect(await suggested("prefer small ones", "- SQLite: small.\n- DuckDB: fast.")).toBe(
      "Tell me more about SQLite\nWhat speaks against SQLite?\nCompare SQLite and DuckDB",
    );
    expect(await suggested("paint it", "I found nothing.")).toContain("Compare three charting libraries");
  });

  test("says so where it has found nothing, and whether it has saved anything", async () => {
    const nothing = called(["spawn", { prompt: "Find out about Foo" }, { text: `Foo: ${factOn("Foo")}` }]);
    expect((await hear([user("compare Foo, Bar"), ...nothing])).text).toContain(
      "I found nothing that would help",
    );
    const asked = [user("compare two databases and save it"), ...spawned("SQLite", "PostgreSQL")];
    const tools = [spawnTool, fileWriteTool];
    expect((await hear(asked, { tools })).calls).toMatchObject([{ input: { path: "report.md" } }]);
    const written = (output: object, ok: boolean) =>
      hear([...asked, ...called(["file.write", { path: "report.md" }, output, ok])], { tools });
    expect((await written({ path: "other.md", bytes: 3 }, true)).text).toMatch(
      /first\.\n\nSaved to other\.md\.$/,
    );
    expect((await written({ message: "Denied: no." }, false)).text).toMatch(
      /It was not saved\. Denied: no\.$/,
    );
  });

  test("makes a paragraph of what it says before it acts", async () => {
    expect((await hear([question])).text).toMatch(/at the same time\.\n\n$/);
  });

  test.each([
    ["compare two databases", "SQLite, PostgreSQL"],
    ["compare 2 charting libraries and save it", "uPlot, ECharts"],
    ["compare four databases", "SQLite, PostgreSQL, DuckDB"],
    ["Compare DuckDB and sqlite", "DuckDB, SQLite"],
    ["compare apples and pears", "apples, pears"],
    ["compare Redis, SQLite and Foo in depth?", "Redis, SQLite, Foo in depth"],
    ["Tell me more about uPlot", "uPlot"],
    ["write a paragraph", "what it is for, what it costs, what people say"],
  ])("looks into as much as is asked for: %s", (asked, subjects) => {
    expect(subjectsOf(asked).join(", ")).toBe(subjects);
  });

  test("goes on word for word from wherever it was cut off", async () => {
    const messages = fc.constantFrom(
      [question],
      [question, answer, user("and now?")],
      [question, assistant("I'll look."), report("uPlot is small")],
      [question, redirect("be brief")],
      [question, ...spawned("uPlot", "ECharts"), steer("be brief"), steer("prefer small ones")],
      [user("x ".repeat(5000))],
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
