// What a run was given to work with. A child has no more than each of its ancestors had, whoever spawned it and
// whatever it was promised: which tools it may use, and which of them wait for somebody's approval, is read from all
// of their logs.

import { type Event, type Facts, is } from "@runwire/protocol";
import type { AgentHost, RunKey } from "@runwire/server";

export type Approvals = "never" | "destructive" | "always";

export interface Given {
  /** As it was asked for: by the run, or else by the nearest ancestor that did. */
  readonly model: string | null;
  /** Models that go on where that is given up on, by the same rule; null where nobody said. */
  readonly fallbacks: readonly string[] | null;
  /** Patterns of each that was given any, of which a tool must fit all. */
  readonly tools: readonly (readonly string[])[];
  /** The strictest of all. */
  readonly approvals: Approvals;
  readonly session_id: string | null;
  /** What the whole tree may cost, as its root was given it. */
  readonly budget_usd: number | null;
}

const byStrictness: readonly Approvals[] = ["always", "destructive"];

export async function givenTo(host: AgentHost, run: RunKey, signal: AbortSignal): Promise<Given> {
  const asked: Facts[] = [];
  const session_id = (await host.head(run))?.run.session_id ?? null;
  for (let run_id: string | null = run.run_id; run_id !== null; ) {
    const key: RunKey = { tenant: run.tenant, run_id };
    asked.push(await askedOf(host, key, signal));
    run_id = (await host.head(key))?.run.parent_id ?? null;
  }
  const model = asked.map((one) => one.model).find((name) => typeof name === "string");
  const fallbacks = asked.map((one) => one.fallback_models).find(isStrings);
  const budget = asked.at(-1)?.budget_usd;
  return {
    fallbacks: fallbacks ?? null,
    model: typeof model === "string" ? model : null,
    tools: asked.flatMap(({ tools }) => (isStrings(tools) ? [tools] : [])),
    approvals: byStrictness.find((approvals) => asked.some((one) => one.approvals === approvals)) ?? "never",
    session_id,
    budget_usd: typeof budget === "number" ? budget : null,
  };
}

/** What is asked stands at the beginning of every run. */
async function askedOf(host: AgentHost, run: RunKey, signal: AbortSignal): Promise<Facts> {
  const isAsked = (e: Event): boolean => e.child_id === null && is(e, "turn.submitted");
  for await (const events of host.follow(run, "full", 0, signal)) {
    const found = events.find(isAsked);
    if (found !== undefined) return found.payload;
  }
  throw signal.reason;
}

function isStrings(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}
