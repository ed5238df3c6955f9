// How many tickets and sessions a tenant may have. Each is a row that is kept until it is over, and whoever may read may
// make them: without a bound they would fill the disk.

import { RunwireError } from "@runwire/protocol";
import type { Clock } from "../clock.js";
import type { Grants } from "../store.js";

const grantsPerTenantMax = 100_000;
const countEveryMs = 1000;

/** To be asked before each; throws 429 where there is no room for another. */
export type GrantRoom = (tenant: string) => Promise<void>;

export function grantRoom(
  grants: Pick<Grants, "count">,
  { monotonic }: Pick<Clock, "monotonic">,
  max = grantsPerTenantMax,
): GrantRoom {
  // To count many takes a while, so that is done now and then, and those in between are added.
  const counts = new Map<string, number>();
  let countedMs = Number.NEGATIVE_INFINITY;
  return async (tenant) => {
    if (monotonic() >= countedMs + countEveryMs) {
      counts.clear();
      countedMs = monotonic();
    }
    if (!counts.has(tenant)) {
      const count = await grants.count(tenant);
      // Others may have come in the meantime.
      if (!counts.has(tenant)) counts.set(tenant, count);
    }
    const count = counts.get(tenant) ?? 0;
    if (count >= max) throw new RunwireError("KAI-LIMIT-GRANTS-0001", `a tenant has ${max} at most`);
    counts.set(tenant, count + 1);
  };
}
