// The step costs of a tenant's last planned runs. They are read from the logs, so a restart forgets nothing; and kept for
// a minute, since an estimate need not know of the run that ended just now. That there are none yet is not kept.

import type { StoredEvent } from "@runwire/protocol";
import type { AgentHost } from "@runwire/server";
import { aborter } from "./aborter.js";
import { systemClock } from "./clock.js";
import { type StepCost, stepCostsOf } from "./estimates.js";
import { limits } from "./limits.js";

/** Never rejects: a plan without a history is still a plan. */
export type StepCosts = (tenant: string) => Promise<readonly StepCost[]>;

export function recentStepCosts(host: AgentHost): StepCosts {
  const kept = new Map<string, { readonly endsMs: number; readonly costs: Promise<readonly StepCost[]> }>();
  return (tenant) => {
    const nowMs = host.clock.monotonic();
    const known = kept.get(tenant);
    if (known !== undefined && known.endsMs > nowMs) return known.costs;
    const costs = read(host, tenant)
      .catch((error: unknown): readonly StepCost[] => {
        host.report("warn", "no history for an estimate", { tenant, error: String(error) });
        return [];
      })
      .then((found) => {
        if (found.length === 0) kept.delete(tenant);
        return found;
      });
    kept.delete(tenant);
    kept.set(tenant, { endsMs: nowMs + limits.historyMs, costs });
    const [oldest] = kept.keys();
    if (kept.size > limits.historyTenantsMax && oldest !== undefined) kept.delete(oldest);
    return costs;
  };
}

async function read(host: AgentHost, tenant: string): Promise<readonly StepCost[]> {
  const { heads } = await host.runs(tenant, { state: "done", limit: limits.historyRunsMax });
  // A run that is erased meanwhile never gets as far as it was.
  const reading = aborter();
  const cancel = systemClock.after(limits.historyReadMsMax, () => reading.abort());
  const costs: StepCost[] = [];
  let eventsLeft: number = limits.historyEventsMax;
  try {
    for (const { run, plan_id, views } of heads) {
      const { pos } = views.default;
      if (plan_id === null || pos > eventsLeft) continue;
      eventsLeft -= pos;
      const events: StoredEvent[] = [];
      for await (const more of host.follow({ tenant, run_id: run.run_id }, "default", 0, reading.signal)) {
        events.push(...more);
        if ((more.at(-1)?.pos ?? pos) >= pos) break;
      }
      if (reading.signal.aborted) break;
      costs.push(...stepCostsOf(events));
    }
  } finally {
    cancel();
  }
  return costs;
}
