// The built-in agent: it writes the runs that are its own, each in a loop of its own, and takes up again what a
// restart has left unfinished.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { idSource, RunwireError } from "@runwire/protocol";
import type { Agent, AgentHost, MakeAgent, RunKey } from "@runwire/server";
import { aborter } from "./aborter.js";
import { givenTo } from "./given.js";
import { drive } from "./loop.js";
import type { Model } from "./model.js";
import { recentStepCosts } from "./step-costs.js";
import type { Tool } from "./tool.js";
import type { McpServer } from "./tools/mcp.js";
import { gathered, mcpSource } from "./tools/source.js";
import { isNamedBy } from "./tools/toolbox.js";

/** Of a refusal. */
const toldCharsMax = 100;
const toldToolsMax = 50;

export interface EngineOptions {
  /** The model of a run, by the name that was asked for. */
  readonly modelOf: (name: string | null) => Model;
  readonly tools: readonly Tool[];
  /** MCP servers, whose tools are had while they can be reached. */
  readonly mcp?: readonly McpServer[];
  /** Whether runs show a plan first, where nobody says otherwise. */
  readonly planningGate: Agent["planningGate"];
}

export function engine({ modelOf, tools: own, mcp = [], planningGate }: EngineOptions): MakeAgent {
  return (host: AgentHost): Agent => {
    const sources = mcp.map((server) =>
      mcpSource(server, host.clock, (name, error) => {
        const why = error instanceof Error ? error.message : String(error);
        host.report("warn", "mcp server not reached", { server: name, error: why });
      }),
    );
    // Begun now, so that the first run need not wait for them.
    void gathered(sources);
    const ids = idSource(Math.random);
    const stopping = aborter();
    const stepCosts = recentStepCosts(host);
    const running = new Map<string, Promise<void>>();

    function take(run: RunKey): void {
      const name = `${run.tenant}/${run.run_id}`;
      if (running.has(name) || stopping.signal.aborted) return;
      const loop = write(run).finally(() => running.delete(name));
      running.set(name, loop);
    }

    async function write(run: RunKey): Promise<void> {
      try {
        const head = await host.head(run);
        if (head === undefined) return;
        const { tools } = await everyTool();
        const given = await givenTo(host, run, stopping.signal);
        const workspace = join(host.dataFolder, "workspaces", run.tenant, head.run.root_id);
        mkdirSync(workspace, { recursive: true, mode: 0o700 });
        await drive(
          {
            host,
            run,
            modelOf,
            tools,
            given,
            workspace,
            stepCosts,
            take,
            newId: (prefix) => ids.next(prefix, host.clock.now()),
          },
          stopping.signal,
        );
      } catch (error) {
        // Somebody ended it between two of its words.
        const isOver = error instanceof RunwireError && error.code === "KAI-RUN-ENDED-0001";
        if (stopping.signal.aborted || isOver) return;
        await giveUp(run, error);
      }
    }

    async function everyTool() {
      const { tools, missing } = await gathered(sources);
      return { tools: [...own, ...tools], missing };
    }

    /** A run that cannot go on ends, and says why. */
    async function giveUp(run: RunKey, error: unknown): Promise<void> {
      const reason = error instanceof Error ? error.message : String(error);
      host.report("warn", "run given up", { run_id: run.run_id, error: reason });
      await host.writer
        .append(run, [{ type: "run.lifecycle", payload: { state: "error", reason } }])
        // It has ended already, or the store is down: then the next start tries again.
        .catch(() => {});
    }

    return {
      planningGate,
      take,
      async check({ model, tools: wanted = [] }) {
        modelOf(model);
        if (wanted.length === 0) return;
        const { tools, missing } = await everyTool();
        // A server that is away may have what its name promises.
        const isKnown = (pattern: string): boolean =>
          tools.some(({ name }) => isNamedBy(pattern, name)) ||
          missing.some((source) => pattern.startsWith(`${source}.`));
        const unknown = wanted.find((pattern) => !isKnown(pattern));
        if (unknown === undefined) return;
        const there = tools.map(({ name }) => name).sort();
        throw new RunwireError(
          "KAI-RUN-TOOL-0003",
          `${JSON.stringify(unknown.slice(0, toldCharsMax))}; there is ${there.slice(0, toldToolsMax).join(", ")}`,
        );
      },
      async checkInput(name, input) {
        const tool = (await everyTool()).tools.find((known) => known.name === name);
        try {
          tool?.check?.(input);
        } catch (error) {
          throw new RunwireError("KAI-REQUEST-BODY-0002", `\`input\`: ${(error as Error).message}`);
        }
      },
      async close() {
        stopping.abort();
        await Promise.allSettled(running.values());
        await Promise.allSettled(sources.map((source) => source.close()));
      },
    };
  };
}
