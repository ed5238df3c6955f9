import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type AgentHost, startGateway } from "@runwire/server";
import { expect, it } from "vitest";
import { demoModel } from "./demo/model.js";
import { demoTools } from "./demo/tools.js";
import { engine } from "./engine.js";
import { spawnTool } from "./spawn.js";

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
