// What was used up, as an event. Every request to a model is counted once, where it ends: with its answer, with the
// failure of its try, or when somebody interrupts it. So the sums of a log say what a run has cost until there.

import type { Draft } from "@runwire/protocol";
import type { Model, ModelUsage } from "./model.js";
import { costOf } from "./prices.js";

/** Without `usage`, something was used up and nobody tells how much. What nobody can price is said to be so. */
export function used(model: Model, usage: ModelUsage | undefined): Draft {
  const cost_usd = costOf(model, usage);
  return {
    type: "usage",
    payload: {
      model: model.name,
      provider: model.provider,
      ...usage,
      requests: 1,
      ...(cost_usd === null ? { unpriced_requests: 1 } : { cost_usd }),
    },
  };
}
