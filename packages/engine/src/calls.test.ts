import { expect, test } from "vitest";
import { demoModel } from "./demo/model.js";
import { engine } from "./engine.js";
import type { Model } from "./model.js";
import { spawnTool } from "./spawn.js";
import { answering } from "./testing/asides.js";
import { fakeProvider } from "./testing/fake-provider.js";
import { mortal } from "./testing/mortal.js";
import { endedRun, payloadsOf, recordOf, served, startRun } from "./testing/served.js";
import { plainAnswer } from "./testing/wires/answer.js";
import type { Tool } from "./tool.js";

const usage = { input_tokens: 1, output_tokens: 1, reasoning_tokens: 0, cached_tokens: 0 };

/** Calls a tool once, and says then that it is done. */
const caller: Model = {
  ...demoModel({ wordMs: 0 }),
  async *stream({ messages, aside }) {
    const isFirst = aside === undefined && !messages.some(({ role }) => role === "tool");
    if (isFirst) yield { kind: "call", call_id: "c", tool: "far.write", input: {} };
    else yield { kind: "text", text: "Done." };
    yield { kind: "finished", reason: isFirst ? "calls" : "stop", usage, refs: {} };
  },
};

const farTool: Tool = {
  name: "far.write",
  description: "Writes somewhere else.",
  effect: "destructive",
  input_schema: { type: "object" },
  run: async () => "written",
};

test("a call that a crash cut off is told as interrupted, also where its tool cannot be had any more", async () => {
  let lives = 0;
  const server = await served({
    model: () => caller,
    tools: [farTool],
    around: (first) => {
      const without = engine({ modelOf: () => caller, tools: [], planningGate: "off" });
      const agent = mortal((host) => (lives++ === 0 ? first(host) : without(host)));
      // What it is about, the model's request, its call, the tool's start.
      agent.killAfter(4);
      return agent.make;
    },
  });
  try {
    const events = await endedRun(server.url, await startRun(server.url, { approvals: "never" }));
    expect(payloadsOf(events, "tool.start")).toHaveLength(1);
    expect(payloadsOf(events, "tool.end")).toMatchObject([
      { ok: false, error: { code: "KAI-RUN-TOOL-0001" } },
    ]);
    expect(lives).toBe(2);
  } finally {
    await server.close();
  }
});

test("a call finds its child again after a crash, also where the tools that it gave are away", async () => {
  /** Gives its work to a helper, who only talks. */
  const giver: Model = {
    ...demoModel({ wordMs: 0 }),
    async *stream({ messages, aside }) {
      const asked = JSON.stringify(messages);
      const isGiving = aside === undefined && asked.includes("Say hello") && !asked.includes("Nothing there");
      const input = { prompt: "Look there", tools_allowed: ["far.*"] };
      if (isGiving) yield { kind: "call", call_id: "c", tool: "spawn", input };
      else yield { kind: "text", text: "Nothing there." };
      yield { kind: "finished", reason: isGiving ? "calls" : "stop", usage, refs: {} };
    },
  };
  let lives = 0;
  const server = await served({
    model: () => giver,
    tools: [farTool, spawnTool],
    around: (first) => {
      const without = engine({ modelOf: () => giver, tools: [spawnTool], planningGate: "off" });
      const agent = mortal((host) => (lives++ === 0 ? first(host) : without(host)));
      // What it is about, the model's request, its call, the tool's start, the child, and what that is about.
      agent.killAfter(6);
      return agent.make;
    },
  });
  try {
    const events = await endedRun(server.url, await startRun(server.url, {}));
    expect(lives).toBe(2);
    const [child, ...more] = payloadsOf(events, "child.spawn");
    expect(more).toEqual([]);
    expect(payloadsOf(events, "tool.end")).toMatchObject([
      { ok: true, output: { child_id: child?.child_id, text: "Nothing there." } },
    ]);
    expect(await recordOf(server.url, String(child?.child_id))).toMatchObject({ state: "done" });
  } finally {
    await server.close();
  }
});

test.each([
  ["deeper than a log takes", `{"prompt":${"[".repeat(100)}${"]".repeat(100)}}`],
  ["deeper than anything takes", `{"prompt":${"[".repeat(20_000)}${"]".repeat(20_000)}}`],
  ["blank", '{"prompt":" \\n"}'],
])("a call whose input is %s is refused, and the run goes on", async (_, args) => {
  const fake = await fakeProvider();
  const server = await served({ tools: [spawnTool] });
  try {
    server.given({ OPENAI_API_KEY: "key", OPENAI_BASE_URL: fake.url });
    const calls = [{ call_id: "c", tool: "spawn", args }];
    const calling = { ...plainAnswer, calls, finish: "calls" as const, deltaChars: 10_000 };
    const said = { ...plainAnswer, text: "Then not." };
    fake.script(answering((_, n) => ({ kind: "answer", answer: n === 0 ? calling : said })));
    const events = await endedRun(server.url, await startRun(server.url, { model: "openai/gpt-5" }));
    expect(events.at(-1)?.payload).toMatchObject({ state: "done" });
    expect(payloadsOf(events, "tool.end")).toMatchObject([{ ok: false, error: { kind: "invalid-input" } }]);
    expect(payloadsOf(events, "child.spawn")).toEqual([]);
  } finally {
    await server.close();
    await fake.close();
  }
});
