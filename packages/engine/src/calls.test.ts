import { expect, test } from "vitest";
import { demoModel } from "./demo/model.js";
import { engine } from "./engine.js";
import type { Model } from "./model.js";
import { mortal } from "./testing/mortal.js";
import { endedRun, payloadsOf, served, startRun } from "./testing/served.js";
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
