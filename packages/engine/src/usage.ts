// What was used up, as an event. Every request to a model is counted once, where it ends: with its answer, with the
// failure of its try, or when somebody interrupts it. So the sums of a log say what a run has cost until there.

import type { Draft } from "@runwire/protocol";
import type { RunLog } from "./log.js";
import type { Model, ModelUsage } from "./model.js";
import { costOf, isFree } from "./prices.js";
import { isOver } from "./work.js";

/** Who is paid. */
export type Payee = Pick<Model, "name" | "provider">;

/** What nobody can price is said to be so. */
export function used(model: Payee, usage: ModelUsage): Draft {
  return usageOf(model, usage, costOf(model, usage) !== null);
}

/** Of a request that did not come to its end: the last of it was used up too, and nobody tells how much that was. */
export function usedInPart(model: Payee, usage: ModelUsage | undefined): Draft {
  return usageOf(model, usage, isFree(model));
}

/** Of requests that somebody interrupted. A run that has ended, be it just now, takes no more events. */
export async function countUsed(log: RunLog, drafts: readonly Draft[]): Promise<void> {
  if (drafts.length > 0 && !isOver(log.work)) await log.write(...drafts).catch(() => {});
}

function usageOf(model: Payee, usage: ModelUsage | undefined, isKnown: boolean): Draft {
  const cost_usd = costOf(model, usage);
  return {
    type: "usage",
    payload: {
      model: model.name,
      provider: model.provider,
      ...usage,
      requests: 1,
      ...(cost_usd === null ? {} : { cost_usd }),
      ...(isKnown ? {} : { unpriced_requests: 1 }),
    },
  };
}
