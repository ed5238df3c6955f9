import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { type AgentHost, type MakeAgent, startGateway } from "@runwire/server";
import { expect, it } from "vitest";
import { demoModel } from "./demo/model.js";
import { demoTools } from "./demo/tools.js";
import { engine } from "./engine.js";
import type { Model } from "./model.js";
import { spawnTool } from "./spawn.js";
import { endedRun, joined, lookTool, served, startRun } from "./testing/served.js";
import type { Tool } from "./tool.js";
import { toolLimits } from "./tools/limits.js";

it("an agent follows the logs of the runs that it writes, and no longer than it writes them", async () => {
  const folder = mkdtempSync(join(tmpdir(), "runwire-engine-"));
  const followed = new Set<string>();
  let most = 0;
  const make = engine({
    modelOf: () => demoModel({ wordMs: 0 }),
    tools: [...demoTools({ searchMs: 0 }), spawnTool],
    planningGate: "off",
  });
  const gateway = await startGateway({ port: 0, dataFolder: folder, durability: "os" }, undefined, (host) => {
    const follow: AgentHost["follow"] = async function* (run, ...rest) {
      const name = `${run.run_id} ${most}`;
      followed.add(name);
      most += 1;
      try {
        yield* host.follow(run, ...rest);
      } finally {
        followed.delete(name);
      }
    };
    return make({ ...host, follow });
  });
  const body = JSON.stringify({ prompt: "compare three databases" });
  const headers = { "Content-Type": "application/json" };
  const created = await fetch(`${gateway.url}/v1/agent/runs`, { method: "POST", headers, body });
  const { run_id } = (await created.json()) as { run_id: string };
  const stateOf = async (): Promise<unknown> => {
    const run = await fetch(`${gateway.url}/v1/agent/runs/${run_id}`);
    return ((await run.json()) as { state: string }).state;
  };
  await expect.poll(stateOf, { timeout: 60_000 }).toBe("done");
  await expect.poll(() => followed.size, { timeout: 60_000 }).toBe(0);
  // Its own, and each helper's twice at least: the helper writes it, and the run waits for it.
  expect(most).toBeGreaterThanOrEqual(7);
  await gateway.close();
  rmSync(folder, { recursive: true });
});

it("a run that began while an MCP server was away has its tools once it is there", async () => {
  const folder = mkdtempSync(join(tmpdir(), "runwire-engine-"));
  const program = join(folder, "server.mjs");
  let aheadMs = 0;
  let rounds = 0;
  const usage = { input_tokens: 1, output_tokens: 1, reasoning_tokens: 0, cached_tokens: 0 };
  // Looks around until there is something to see.
  const looking: Model = {
    ...demoModel({ wordMs: 0 }),
    async *stream({ tools, aside }) {
      const isThere = tools.some(({ name }) => name.startsWith("late."));
      const isDone = aside !== undefined || isThere || rounds === 100;
      if (isDone) yield { kind: "text", text: isThere ? "Seen." : "Not seen." };
      else yield { kind: "call", call_id: "c", tool: "look.up", input: {} };
      yield { kind: "finished", reason: isDone ? "stop" : "calls", usage, refs: {} };
    },
  };
  const lookUp: Tool = {
    ...lookTool,
    async run() {
      // It comes when the run is at work, and is tried again in time.
      const server = new URL("./testing/mcp-stdio.js", import.meta.url);
      if (rounds++ === 0) writeFileSync(program, `await import(${JSON.stringify(server.href)});`);
      aheadMs = toolLimits.mcpRetryMs;
      await setTimeout(50);
    },
  };
  const make = engine({
    modelOf: () => looking,
    tools: [lookUp],
    mcp: [{ name: "late", command: process.execPath, args: [program] }],
    planningGate: "off",
  });
  const around: MakeAgent = (host) =>
    make({ ...host, clock: { ...host.clock, monotonic: () => host.clock.monotonic() + aheadMs } });
  const server = await served({ around: () => around });
  try {
    const events = await endedRun(server.url, await startRun(server.url, {}));
    expect(joined(events, "text.delta")).toBe("Seen.");
    expect(rounds).toBeGreaterThan(0);
  } finally {
    await server.close();
    rmSync(folder, { recursive: true });
  }
});
