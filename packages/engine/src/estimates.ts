// What the steps of a plan are likely to cost: what steps like them have cost in the tenant's last planned runs with the
// same model, or, before there are any, what the price list says of a usual answer.

import type { AnyEvent, Event, PlanStep } from "@runwire/protocol";
import type { Model } from "./model.js";
import { planSteps } from "./plan-steps.js";
import { costOf } from "./prices.js";

export interface StepCost extends Pick<PlanStep, "intent"> {
  readonly model: string;
  readonly tools: string;
  readonly cost_usd: number;
}

/** Those that did the same with the same tools count first, then those that did the same, then any. */
export function estimate(step: PlanStep, model: Model, known: readonly StepCost[]): number | null {
  const ofModel = known.filter((one) => one.model === modelKey(model));
  const alike = ofModel.filter(({ intent }) => intent === step.intent);
  const same = alike.filter(({ tools }) => tools === toolsKey(step));
  const nearest = [same, alike, ofModel].find((list) => list.length > 0);
  if (nearest === undefined) return usual(step, model);
  return nearest.reduce((sum, { cost_usd }) => sum + cost_usd, 0) / nearest.length;
}

/** An answer that reads some pages and writes one, and another for each tool. */
const usualAnswer = { input_tokens: 6000, output_tokens: 600, reasoning_tokens: 0, cached_tokens: 0 };

function usual({ est_tools = [] }: PlanStep, model: Model): number | null {
  const cost = costOf(model, usualAnswer);
  return cost === null ? null : cost * (1 + est_tools.length);
}

interface Tally {
  readonly steps: readonly PlanStep[];
  readonly costs: ReadonlyMap<string, number>;
  /** Steps of calls and, by their spawns, of children. */
  readonly stepOf: ReadonlyMap<string, string>;
  /** Steps that the answer being told has named so far. */
  readonly named: readonly string[];
  readonly model: string;
  readonly isSettled: boolean;
  /** Whether something had no price: then nothing is known. */
  readonly isUnpriced: boolean;
}

const noTally: Tally = {
  steps: [],
  costs: new Map(),
  stepOf: new Map(),
  named: [],
  model: "",
  isSettled: false,
  isUnpriced: false,
};

/**
 * What the steps of a finished run's plan have cost. An answer is paid by the steps that its calls were for, and by all
 * of them alike where it named none; a child by the step that it was spawned for.
 */
export function stepCostsOf(events: Iterable<Event>): readonly StepCost[] {
  let tally = noTally;
  for (const event of events) tally = counted(tally, event as AnyEvent);
  const { steps, costs, model, isUnpriced } = tally;
  if (isUnpriced || model === "") return [];
  return steps.map((step) => ({
    ...(step.intent === undefined ? {} : { intent: step.intent }),
    model,
    tools: toolsKey(step),
    cost_usd: costs.get(step.id) ?? 0,
  }));
}

function counted(tally: Tally, e: AnyEvent): Tally {
  const isOwn = e.child_id === null;
  switch (e.type) {
    case "plan.proposal":
      return isOwn ? { ...tally, steps: e.payload.plan.steps, named: [] } : tally;
    case "control.requested": {
      const { action, steps } = e.payload;
      if (!isOwn || action !== "approve_plan" || !Array.isArray(steps)) return tally;
      return { ...tally, steps: planSteps(steps) };
    }
    case "tool.call": {
      const { call_id, plan_step } = e.payload;
      if (!isOwn || typeof plan_step !== "string") return tally;
      const stepOf = new Map([...tally.stepOf, [call_id, plan_step]]);
      return { ...tally, stepOf, named: [...new Set([...tally.named, plan_step])] };
    }
    case "child.spawn": {
      const { call_id, child_id } = e.payload;
      // A grandchild is for what its parent is for.
      const step = tally.stepOf.get(e.child_id ?? (typeof call_id === "string" ? call_id : ""));
      return step === undefined ? tally : { ...tally, stepOf: new Map([...tally.stepOf, [child_id, step]]) };
    }
    case "message.settled":
      return isOwn ? { ...tally, isSettled: true } : tally;
    case "usage":
      return paid(tally, e);
    default:
      return tally;
  }
}

function paid(tally: Tally, e: Event<"usage">): Tally {
  const { steps, stepOf, isSettled } = tally;
  // Making the plan is no step of it, nor is what follows the answer.
  if (steps.length === 0 || isSettled) return tally;
  const { cost_usd, model, provider } = e.payload;
  if (typeof cost_usd !== "number") return { ...tally, isUnpriced: true };
  const ofChild = e.child_id === null ? undefined : stepOf.get(e.child_id);
  const named = e.child_id === null ? tally.named : ofChild === undefined ? [] : [ofChild];
  const payers = named.length > 0 ? named : steps.map(({ id }) => id);
  const costs = new Map(tally.costs);
  for (const id of payers) costs.set(id, (costs.get(id) ?? 0) + cost_usd / payers.length);
  if (e.child_id !== null) return { ...tally, costs };
  return { ...tally, costs, named: [], model: modelKey({ name: String(model), provider: String(provider) }) };
}

function modelKey({ provider, name }: Pick<Model, "provider" | "name">): string {
  return `${provider}/${name}`;
}

function toolsKey({ est_tools }: PlanStep): string {
  return [...new Set(est_tools)].sort().join(" ");
}
