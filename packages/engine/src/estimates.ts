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

/** Of one run, and nobody else's: each event adds to it in place, so that a long run costs no more than its length. */
interface Tally {
  steps: readonly PlanStep[];
  /** What answers cost since the last plan that all its steps pay alike. */
  sharedUsd: number;
  readonly costs: Map<string, number>;
  /** Steps of calls and, by their spawns, of children. */
  readonly stepOf: Map<string, string>;
  /** Steps that the answer being told has named so far. */
  readonly named: Set<string>;
  model: string;
  isSettled: boolean;
  /** Whether something had no price: then nothing is known. */
  isUnpriced: boolean;
}

function newTally(): Tally {
  return {
    steps: [],
    sharedUsd: 0,
    costs: new Map(),
    stepOf: new Map(),
    named: new Set(),
    model: "",
    isSettled: false,
    isUnpriced: false,
  };
}

/**
 * What the steps of a finished run's plan have cost. An answer is paid by the steps that its calls were for, and by all
 * of them alike where it named none; a child by the step that it was spawned for.
 */
export function stepCostsOf(events: Iterable<Event>): readonly StepCost[] {
  const tally = newTally();
  for (const event of events) count(tally, event as AnyEvent);
  share(tally);
  const { steps, costs, model, isUnpriced } = tally;
  if (isUnpriced || model === "") return [];
  return steps.map((step) => ({
    ...(step.intent === undefined ? {} : { intent: step.intent }),
    model,
    tools: toolsKey(step),
    cost_usd: costs.get(step.id) ?? 0,
  }));
}

function count(tally: Tally, e: AnyEvent): void {
  const isOwn = e.child_id === null;
  switch (e.type) {
    case "plan.proposal":
      if (!isOwn) return;
      plan(tally, e.payload.plan.steps);
      tally.named.clear();
      return;
    case "control.requested": {
      const { action, steps } = e.payload;
      if (isOwn && action === "approve_plan" && Array.isArray(steps)) plan(tally, planSteps(steps));
      return;
    }
    case "tool.call": {
      const { call_id, plan_step } = e.payload;
      if (!isOwn || typeof plan_step !== "string") return;
      tally.stepOf.set(call_id, plan_step);
      tally.named.add(plan_step);
      return;
    }
    case "child.spawn": {
      const { call_id, child_id } = e.payload;
      // A grandchild is for what its parent is for.
      const step = tally.stepOf.get(e.child_id ?? (typeof call_id === "string" ? call_id : ""));
      if (step !== undefined) tally.stepOf.set(child_id, step);
      return;
    }
    case "message.settled":
      if (isOwn) tally.isSettled = true;
      return;
    case "usage":
      pay(tally, e);
      return;
    default:
      return;
  }
}

/** Other steps than before: what those had in common is theirs. */
function plan(tally: Tally, steps: readonly PlanStep[]): void {
  share(tally);
  tally.steps = steps;
}

function share(tally: Tally): void {
  const { steps, costs, sharedUsd } = tally;
  for (const { id } of steps) add(costs, id, sharedUsd / steps.length);
  tally.sharedUsd = 0;
}

function pay(tally: Tally, e: Event<"usage">): void {
  const { steps, stepOf, costs, named, isSettled } = tally;
  // Making the plan is no step of it, nor is what follows the answer.
  if (steps.length === 0 || isSettled) return;
  const { cost_usd, model, provider } = e.payload;
  if (typeof cost_usd !== "number") {
    tally.isUnpriced = true;
    return;
  }
  const ofChild = e.child_id === null ? undefined : stepOf.get(e.child_id);
  const payers = e.child_id === null ? [...named] : ofChild === undefined ? [] : [ofChild];
  if (payers.length === 0) tally.sharedUsd += cost_usd;
  for (const id of payers) add(costs, id, cost_usd / payers.length);
  if (e.child_id !== null) return;
  named.clear();
  tally.model = modelKey({ name: String(model), provider: String(provider) });
}

function add(costs: Map<string, number>, id: string, usd: number): void {
  costs.set(id, (costs.get(id) ?? 0) + usd);
}

function modelKey({ provider, name }: Pick<Model, "provider" | "name">): string {
  return `${provider}/${name}`;
}

function toolsKey({ est_tools }: PlanStep): string {
  return [...new Set(est_tools)].sort().join(" ");
}
