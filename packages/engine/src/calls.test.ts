import { expect, test } from "vitest";
import { demoModel } from "./demo/model.js";
import { engine } from "./engine.js";
import type { Model } from "./model.js";
import { spawnTool } from "./spawn.js";
import { mortal } from "./testing/mortal.js";
import { endedRun, payloadsOf, recordOf, served, startRun } from "./testing/served.js";
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
