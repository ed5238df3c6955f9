// The end of a step, with the workspace as it is then: that is on disk before the event that names it.

import type { Draft, StepKind } from "@runwire/protocol";
import type { Loop } from "./loop.js";
import type { Call } from "./model.js";
import { stepsOf } from "./plan-steps.js";

/** `calls` are those that the step was made of: they name the plan's steps that it was for. */
export async function boundary(loop: Loop, step_kind: StepKind, calls: readonly Call[] = []): Promise<Draft> {
  const checkpoint_id = await loop.checkpoint();
  const { steps: step_index, plan } = loop.log.work;
  const plan_steps = stepsOf(calls, plan);
  return {
    type: "step.boundary",
    payload: {
      step_index,
      step_kind,
      ...(plan_steps.length === 0 ? {} : { plan_steps }),
      ...(checkpoint_id === null ? {} : { checkpoint_id }),
    },
  };
}
