// The built-in agent: it writes the runs that are its own, each in a loop of its own, and takes up again what a
// restart has left unfinished.

import { idSource } from "@runwire/protocol";
import type { Agent, AgentHost, MakeAgent, RunKey } from "@runwire/server";
import { aborter } from "./aborter.js";
import { workspaces } from "./checkpoints/workspaces.js";
import { drive } from "./loop.js";
import type { Model } from "./model.js";
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
    const places = workspaces(host);
    const running = new Map<string, Promise<void>>();
    /** Those that work in a tree's folder, by the tree. */
    const inside = new Map<string, Set<Promise<void>>>();
    /** Trees that were erased while somebody was still at work in them. */
    const forgetting = new Set<Promise<void>>();

    function take(run: RunKey): void {
      const name = nameOf(run);
      if (running.has(name) || stopping.signal.aborted) return;
      const loop = write(run).finally(() => running.delete(name));
      running.set(name, loop);
    }

    async function write(run: RunKey): Promise<void> {
      try {
        const head = await host.head(run);
        if (head === undefined) return;
        await within({ ...run, run_id: head.run.root_id }, async () =>
          drive(
            {
              host,
              run,
              modelOf,
              tools,
              workspace: await places.make(head.run),
              checkpoint: () => places.checkpoint(head.run),
              settle: (named) => places.settle(head.run, named),
              take,
              newId: (prefix) => ids.next(prefix, host.clock.now()),
            },
            stopping.signal,
          ),
        );
      } catch (error) {
        if (stopping.signal.aborted) return;
        await giveUp(run, error);
      }
    }

    async function within(root: RunKey, work: () => Promise<void>): Promise<void> {
      const name = nameOf(root);
      const working = work();
      inside.set(name, (inside.get(name) ?? new Set()).add(working));
      try {
        await working;
      } finally {
        inside.get(name)?.delete(working);
        if (inside.get(name)?.size === 0) inside.delete(name);
      }
    }

    async function forget(roots: readonly RunKey[]): Promise<void> {
      await places.forget(roots);
      const late = roots.filter((root) => inside.has(nameOf(root)));
      if (late.length === 0) return;
      // They stop by themselves, since their runs have ended, but what they were at may be written after this.
      const workers = late.flatMap((root) => [...(inside.get(nameOf(root)) ?? [])]);
      const again = Promise.allSettled(workers)
        .then(() => places.forget(late))
        // The next round of the sweep tries again.
        .catch(() => {})
        .finally(() => forgetting.delete(again));
      forgetting.add(again);
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
      checkpoints: { kept: places.kept, restore: places.restore },
      forget,
      sweep: places.sweep,
      async close() {
        stopping.abort();
        await Promise.allSettled(running.values());
        await Promise.allSettled(forgetting);
      },
    };
  };
}

function nameOf({ tenant, run_id }: RunKey): string {
  return `${tenant}/${run_id}`;
}
