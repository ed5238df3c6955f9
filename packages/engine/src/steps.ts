// The end of a step, with the workspace as it is then: that is on disk before the event that names it.

import type { Draft, StepKind } from "@runwire/protocol";
import type { Loop } from "./loop.js";
import type { Call } from "./model.js";
import { stepsOf } from "./plan-steps.js";
import type { Work } from "./work.js";

/** `calls` are those that the step was made of: they name the plan's steps that it was for. */
export async function boundary(loop: Loop, step_kind: StepKind, calls: readonly Call[] = []): Promise<Draft> {
  const checkpoint_id = await loop.checkpoint();
  const { work } = loop.log;
  const { steps: step_index, plan } = work;
  const plan_steps = step_kind === "done" ? stepsOfAnswer(work) : stepsOf(calls, plan);
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

/**
 * The steps that are done with the answer: those that need no tool, and that no call was for. Where somebody redirected
 * the run, nobody knows what has become of its plan.
 */
function stepsOfAnswer({ plan, stepsDone, messages }: Work): readonly string[] {
  if (messages.some((message) => message.role === "user" && message.direction === "redirect")) return [];
  const open = plan?.steps.filter(({ id }) => !stepsDone.includes(id)) ?? [];
  return open.filter(({ est_tools = [] }) => est_tools.length === 0).map(({ id }) => id);
}
