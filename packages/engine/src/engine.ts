// The built-in agent: it writes the runs that are its own, each in a loop of its own, and takes up again what a
// restart has left unfinished.

import { idSource, messageOf, RunwireError } from "@runwire/protocol";
import type { Agent, AgentHost, MakeAgent, RunKey, RunRecord } from "@runwire/server";
import { aborter } from "./aborter.js";
import { workspaces } from "./checkpoints/workspaces.js";
import { systemClock, wait } from "./clock.js";
import { evidenceOf } from "./course.js";
import { givenTo } from "./given.js";
import { commandHook, type HookCommand } from "./hooks/command.js";
import { inputCheckHook } from "./hooks/input-check.js";
import { limits } from "./limits.js";
import { drive, type LoopParts } from "./loop.js";
import { type OfferOptions, offer } from "./offer.js";
import { router } from "./routing.js";
import { recentStepCosts } from "./step-costs.js";
import { isStoreDown } from "./store-down.js";
import { strategyFor } from "./strategies/strategy.js";
import { moreOf } from "./tools/source.js";
import { until } from "./tools/until.js";

export interface EngineOptions extends OfferOptions {
  /** The operator's commands that look at calls. */
  readonly hooks?: readonly HookCommand[];
  /** Whether runs show a plan first, where nobody says otherwise. */
  readonly planningGate: ReturnType<Agent["planningGate"]>;
}

export function engine(options: EngineOptions): MakeAgent {
  const { modelOf, fallbacks = [], hooks: commands = [], planningGate } = options;
  // What does not fit is no business of the operator's commands.
  const hooks = [inputCheckHook, ...commands.map(commandHook)];
  return (host: AgentHost): Agent => {
    const offered = offer(options, host);
    const ids = idSource(Math.random);
    let isStopping = false;
    const leaving = aborter();
    const places = workspaces(host);
    const stepCosts = recentStepCosts(host);
    const running = new Map<string, Promise<void>>();
    /** Those that work in a tree's folder, by the tree. */
    const inside = new Map<string, Set<Worker>>();
    /** Trees that were erased while somebody was still at work in them. */
    const forgetting = new Set<Promise<void>>();

    function take(run: RunKey): void {
      const name = nameOf(run);
      if (running.has(name) || isStopping) return;
      const loop = write(run).finally(() => running.delete(name));
      running.set(name, loop);
    }

    /** A store that takes nothing, as on a full disk, is waited for: then the log says what is next, as after a crash. */
    async function write(run: RunKey): Promise<void> {
      while ((await tryToWrite(run)) === "store is down")
        await wait(systemClock, limits.storeWaitMs, leaving.signal).catch(() => {});
    }

    async function tryToWrite(run: RunKey): Promise<"store is down" | "over"> {
      const stop = aborter();
      try {
        const head = await host.head(run);
        if (head === undefined || isStopping) return "over";
        await within(
          { ...run, run_id: head.run.root_id },
          { stop, working: work(run, head.run, stop.signal) },
        );
      } catch (error) {
        // Somebody ended it between two of its words.
        const isOver = error instanceof RunwireError && error.code === "KAI-RUN-ENDED-0001";
        if (stop.signal.aborted || isOver) return "over";
        return isStoreDown(error) ? "store is down" : giveUp(run, error);
      } finally {
        // Its log is followed for as long as nobody says otherwise.
        stop.abort();
      }
      return "over";
    }

    async function within(root: RunKey, worker: Worker): Promise<void> {
      const name = nameOf(root);
      const workers = inside.get(name) ?? new Set();
      inside.set(name, workers.add(worker));
      try {
        await worker.working;
      } finally {
        workers.delete(worker);
        if (workers.size === 0) inside.delete(name);
      }
    }

    async function work(run: RunKey, record: RunRecord, signal: AbortSignal): Promise<void> {
      let had = await until(signal, offered.everyTool());
      const given = await givenTo(host, run, signal);
      const parts: LoopParts = {
        host,
        run,
        record,
        // Again, and not only when the run was created: the server may have been given other models since.
        routing: router(
          given.budget_usd === null ? modelOf : offered.pricedModelOf,
          given.model,
          given.fallbacks ?? fallbacks,
        ),
        tools() {
          // Asked for again, and not waited for: a server that hangs holds nobody up.
          if (had.missing.length > 0)
            void offered.everyTool().then((now) => {
              had = moreOf(had, now);
            });
          return had.tools;
        },
        hooks,
        given,
        workspace: await places.make(record),
        checkpoint: () => places.checkpoint(record),
        settle: (named) => places.settle(record, named),
        stepCosts,
        take,
        newId: (prefix) => ids.next(prefix, host.clock.now()),
      };
      await drive(parts, signal);
    }

    async function forget(roots: readonly RunKey[]): Promise<void> {
      const workers = roots.flatMap((root) => [...(inside.get(nameOf(root)) ?? [])]);
      // They may not have heard that their runs have ended: the log that said so is gone.
      for (const { stop } of workers) stop.abort();
      const removed = places.forget(roots);
      if (workers.length === 0) return removed;
      // What they were at may still be written, whatever could not be removed now.
      const again = Promise.allSettled([removed, ...workers.map(({ working }) => working)])
        .then(() => places.forget(roots))
        // The next round of the sweep tries again.
        .catch(() => {})
        .finally(() => forgetting.delete(again));
      forgetting.add(again);
      return removed;
    }

    /** A run that cannot go on ends, and says why. */
    async function giveUp(run: RunKey, error: unknown): Promise<"store is down" | "over"> {
      const reason = messageOf(error);
      host.report("warn", "run given up", { run_id: run.run_id, error: reason });
      return host.writer
        .append(run, [evidenceOf(run.run_id), { type: "run.lifecycle", payload: { state: "error", reason } }])
        .then(
          () => "over",
          // Or it has ended already.
          (refusal: unknown) => (isStoreDown(refusal) ? "store is down" : "over"),
        );
    }

    return {
      // Who thinks first shows by that what it is up to.
      planningGate: (agent) => (strategyFor({ agent }) === null ? planningGate : "off"),
      take,
      checkpoints: { kept: places.kept, restore: places.restore },
      forget,
      sweep: places.sweep,
      check: offered.check,
      checkInput: offered.checkInput,
      async close() {
        isStopping = true;
        leaving.abort();
        for (const workers of inside.values()) for (const { stop } of workers) stop.abort();
        await Promise.allSettled(running.values());
        await Promise.allSettled(forgetting);
        await offered.close();
      },
    };
  };
}

interface Worker {
  readonly stop: AbortController;
  readonly working: Promise<void>;
}

function nameOf({ tenant, run_id }: RunKey): string {
  return `${tenant}/${run_id}`;
}
