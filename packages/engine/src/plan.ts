// A run that plans first asks its model for a plan, by the one tool that it is given for that.

import { type Draft, type Plan, type PlanStep, planIntents } from "@runwire/protocol";
import { ask, completed } from "./answer.js";
import type { Loop } from "./loop.js";
import { ModelFailure, type ToolSpec } from "./model.js";
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
    system: "Plan before you act: call `plan.propose` with the steps you will take. Do nothing else.",
    messages: work.messages,
    tools: [planTool],
    partial: "",
  });
  if (said === undefined) return;
  const input = said.calls.find(({ tool }) => tool === planTool.name)?.input;
  const steps = (input as { steps?: readonly Partial<PlanStep>[] } | undefined)?.steps ?? [];
  if (steps.length === 0) throw new ModelFailure("broken", "the model proposed no plan");
  const plan: Plan = {
    id: loop.newId("plan"),
    run_id: loop.run.run_id,
    steps: steps.map((step, i) => ({ ...step, id: `s${i + 1}`, title: String(step.title) })),
  };
  const proposal: Draft = { type: "plan.proposal", payload: { plan } };
  await loop.log.write(...completed(loop, said.finished), proposal, await boundary(loop, "plan"));
}
