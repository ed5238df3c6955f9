// How a run goes about its task. `react` answers and acts, step by step, and is what the loop does anyway. The others
// think first: a tree of thoughts is searched, or a graph of parts is worked through, and what that comes to guides the
// same loop to its answer. Where a strategy has got to is a fold of the log, as everything else is.

import type { AnyEvent, Facts } from "@runwire/protocol";
import type { Work } from "../work.js";
import { advanceGot, firstGot, type Got, gotGuidance, nextOfGot } from "./got.js";
import { advanceTot, firstTot, nextOfTot, type Tot, totGuidance } from "./tot.js";

export const strategies = ["react", "tot", "got"] as const;
export const plainStrategy = "react";

export type Strategy = Tot | Got;

export function isStrategy(name: string): boolean {
  return strategies.some((known) => known === name);
}

/** A child goes about its part plainly, whatever its parent does. */
export function strategyFor({ agent, parent_id, got_adaptive }: Facts): Strategy | null {
  if (parent_id !== undefined) return null;
  if (agent === "tot") return firstTot;
  return agent === "got" ? { ...firstGot, isAdaptive: got_adaptive === true } : null;
}

export function advanceStrategy(strategy: Strategy, e: AnyEvent): Strategy {
  return strategy.kind === "tot" ? advanceTot(strategy, e) : advanceGot(strategy, e);
}

/** Whether the next thing to do is the strategy's. Once it is over, nothing takes it up again. */
export function isAtWork({ strategy, answer }: Work): boolean {
  if (strategy === null || (answer !== null && answer.purpose === undefined)) return false;
  return (strategy.kind === "tot" ? nextOfTot(strategy) : nextOfGot(strategy)) !== null;
}

/** What it came to, for whoever answers then; "" where that is nothing. */
export function guidanceOf(strategy: Strategy): string {
  return strategy.kind === "tot" ? totGuidance(strategy) : gotGuidance(strategy);
}
