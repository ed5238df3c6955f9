// A run that plans first asks its model for a plan, by the one tool that it is given for that.

import { type Draft, isObject, type Plan, type PlanStep, planIntents } from "@runwire/protocol";
import { ask, completed } from "./answer.js";
import { estimate } from "./estimates.js";
import type { Loop } from "./loop.js";
import type { ToolSpec } from "./model.js";
import { planSteps, toolsPrefix } from "./plan-steps.js";
import { boundary } from "./steps.js";
import type { Work } from "./work.js";

export const planTool: ToolSpec = {
  name: "plan.propose",
  description: "Propose the steps by which the task will be done. Call it once.",
  input_schema: {
    type: "object",
    required: ["steps"],
    additionalProperties: false,
    properties: {
      steps: {
        type: "array",
        minItems: 1,
        maxItems: 20,
        items: {
          type: "object",
          required: ["title"],
          properties: {
            title: { type: "string" },
            intent: { enum: [...planIntents] },
            est_tools: { type: "array", items: { type: "string" } },
          },
        },
      },
    },
  },
};

export async function propose(loop: Loop, work: Work): Promise<void> {
  const said = await ask(loop, {
    system: systemText(loop.box.specs),
    messages: work.messages,
    tools: [planTool],
    partial: work.answer?.text ?? "",
  });
  if (said === undefined) return;
  const input = said.calls.find(({ tool }) => tool === planTool.name)?.input;
  const proposed = planSteps(isObject(input) ? input.steps : undefined);
  // Not every model calls tools. What it will do is then one step, and people may still edit it.
  const steps = proposed.length > 0 ? proposed : planSteps([{ title: "Do what was asked" }]);
  const plan: Plan = { id: loop.newId("plan"), run_id: loop.run.run_id, ...(await priced(loop, steps)) };
  const proposal: Draft = { type: "plan.proposal", payload: { plan } };
  const { id: plan_id, est_total_cost_usd } = plan;
  const estimated: readonly Draft[] =
    est_total_cost_usd === undefined
      ? []
      : [{ type: "cost.estimated", payload: { plan_id, estimated_usd: est_total_cost_usd } }];
  await loop.log.write(
    ...completed(loop, said.finished),
    ...estimated,
    proposal,
    await boundary(loop, "plan"),
  );
}

/** Who does not know which tools there will be plans with tools that there are not. */
function systemText(specs: readonly ToolSpec[]): string {
  const task = "Plan before you act: call `plan.propose` with the steps you will take. Do nothing else.";
  const names = specs.map(({ name }) => name).join(", ");
  return `${task}\n\n${names === "" ? "You will have no tools then." : `${toolsPrefix}${names}`}`;
}

/** With what each step is likely to cost, and all of them; without, where nobody can know. */
async function priced(
  { model, run, stepCosts }: Loop,
  steps: readonly PlanStep[],
): Promise<Pick<Plan, "steps" | "est_total_cost_usd">> {
  const known = await stepCosts(run.tenant);
  const estimates = steps.map((step) => estimate(step, model, known));
  const total = estimates.reduce<number | null>(
    (sum, usd) => (sum === null || usd === null ? null : sum + usd),
    0,
  );
  return {
    steps: steps.map((step, i) => {
      const usd = estimates[i] ?? null;
      return usd === null ? step : { ...step, est_cost_usd: rounded(usd) };
    }),
    ...(total === null ? {} : { est_total_cost_usd: rounded(total) }),
  };
}

/** An estimate has no more than two digits that mean something. */
function rounded(usd: number): number {
  return Number(usd.toPrecision(2));
}
