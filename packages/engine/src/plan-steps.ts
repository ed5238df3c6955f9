// The steps of a plan, and which of them a call is for. The model says so itself, with one more member in the input of
// any tool; it is taken out again before the tool sees it.

import { isId, isObject, type Plan, type PlanIntent, type PlanStep, planIntents } from "@runwire/protocol";
import { limits } from "./limits.js";
import type { Call, ToolSpec } from "./model.js";

/** Above the steps, for whoever is to do them. */
export const planHeading = "The plan, to be kept to:";

/** Before the names of the tools, for whoever plans. */
export const toolsPrefix = "The tools that you will have then: ";

/** What a model proposed, or a person made of it, as steps: each has a title and an id of its own that readers take. */
export function planSteps(given: unknown): readonly PlanStep[] {
  const told = Array.isArray(given) ? given.filter(isObject).slice(0, limits.planStepsMax) : [];
  const ids = new Set(told.flatMap(({ id }) => (isId(id) ? [id] : [])));
  const taken = new Set<string>();
  return told.flatMap(({ id, title, intent, est_tools }, i): readonly PlanStep[] => {
    if (typeof title !== "string" || title.trim() === "") return [];
    const named = isId(id) && !taken.has(id) ? id : freeId(i + 1, ids, taken);
    taken.add(named);
    const tools = Array.isArray(est_tools) ? est_tools.filter((tool) => typeof tool === "string") : [];
    return [{ id: named, title: title.trim(), intent: intentOf(intent), est_tools: tools }];
  });
}

function freeId(from: number, ...used: readonly ReadonlySet<string>[]): string {
  let n = from;
  while (used.some((ids) => ids.has(`s${n}`))) n += 1;
  return `s${n}`;
}

function intentOf(given: unknown): PlanIntent {
  return planIntents.find((intent) => intent === given) ?? "other";
}

const member = "plan_step";

/** The tools as they are offered while there is a plan. One that has such a member itself, or takes no object, keeps its own. */
export function offered(specs: readonly ToolSpec[], plan: Plan | null): readonly ToolSpec[] {
  if (plan === null) return specs;
  const step = { enum: plan.steps.map(({ id }) => id), description: "the step of the plan that this is for" };
  return specs.map((spec) => {
    const { type, properties = {} } = spec.input_schema;
    if (type !== "object" || !isObject(properties) || Object.hasOwn(properties, member)) return spec;
    return { ...spec, input_schema: { ...spec.input_schema, properties: { ...properties, [member]: step } } };
  });
}

/** A call as the tool gets it, with the step beside its input. */
export function withoutStep(call: Call, specs: readonly ToolSpec[], plan: Plan | null): Call {
  const { input } = call;
  if (plan === null || !isObject(input) || !Object.hasOwn(input, member)) return call;
  const { properties } = specs.find(({ name }) => name === call.tool)?.input_schema ?? {};
  if (isObject(properties) && Object.hasOwn(properties, member)) return call;
  const { [member]: step, ...rest } = input;
  const isKnown = plan.steps.some(({ id }) => id === step);
  return { ...call, input: rest, ...(isKnown ? { plan_step: step as string } : {}) };
}

/** As the model wrote it, so that it sees what it did and goes on so. */
export function withStep({ input, plan_step }: Call): unknown {
  return plan_step === undefined || !isObject(input) ? input : { ...input, [member]: plan_step };
}

/** The steps that calls were for, in the plan's order. */
export function stepsOf(calls: readonly Call[], plan: Plan | null): readonly string[] {
  const named = new Set(calls.map(({ plan_step }) => plan_step));
  return plan?.steps.filter(({ id }) => named.has(id)).map(({ id }) => id) ?? [];
}
