// The built-in agent: it writes the runs that are its own, each in a loop of its own, and takes up again what a
// restart has left unfinished.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { idSource } from "@runwire/protocol";
import type { Agent, AgentHost, MakeAgent, RunKey } from "@runwire/server";
import { aborter } from "./aborter.js";
import { drive } from "./loop.js";
import type { Model } from "./model.js";
import { recentStepCosts } from "./step-costs.js";
import type { Tool } from "./tool.js";

export interface EngineOptions {
  /** The model of a run, by the name that was asked for. */
  readonly modelOf: (name: string | null) => Model;
  readonly tools: readonly Tool[];
  /** Whether runs show a plan first, where nobody says otherwise. */
  readonly planningGate: Agent["planningGate"];
}

export function engine({ modelOf, tools, planningGate }: EngineOptions): MakeAgent {
  return (host: AgentHost): Agent => {
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
        const workspace = join(host.dataFolder, "workspaces", run.tenant, head.run.root_id);
        mkdirSync(workspace, { recursive: true, mode: 0o700 });
        await drive(
          {
            host,
            run,
            modelOf,
            tools,
            workspace,
            stepCosts,
            take,
            newId: (prefix) => ids.next(prefix, host.clock.now()),
          },
          stopping.signal,
        );
      } catch (error) {
        if (stopping.signal.aborted) return;
        await giveUp(run, error);
      }
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
      async close() {
        stopping.abort();
        await Promise.allSettled(running.values());
      },
    };
  };
}
