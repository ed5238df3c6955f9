// The end of a step, with the workspace as it is then: that is on disk before the event that names it.

import type { Draft, StepKind } from "@runwire/protocol";
import type { Loop } from "./loop.js";

export async function boundary(loop: Loop, step_kind: StepKind): Promise<Draft> {
  const checkpoint_id = await loop.checkpoint();
  const { steps: step_index } = loop.log.work;
  return {
    type: "step.boundary",
    payload: { step_index, step_kind, ...(checkpoint_id === null ? {} : { checkpoint_id }) },
  };
}
