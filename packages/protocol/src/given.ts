// What a run was given to work with. A child has no more than each of its ancestors had, whoever spawned it and whatever
// it was promised, so this is a fold of what was asked of all of them (`turn.submitted`).

import type { Facts } from "./events.js";
import { isStrings } from "./parse.js";

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
  /** What the whole tree may cost, as its root was given it. */
  readonly budget_usd: number | null;
}

const byStrictness: readonly Approvals[] = ["always", "destructive"];

/** What was asked of a run, of its parent, and so on to its root. */
export function givenBy(asked: readonly Facts[]): Given {
  const model = asked.map((one) => one.model).find((name) => typeof name === "string");
  const fallbacks = asked.map((one) => one.fallback_models).find(isStrings);
  const budget = asked.at(-1)?.budget_usd;
  return {
    model: typeof model === "string" ? model : null,
    fallbacks: fallbacks ?? null,
    tools: asked.flatMap(({ tools }) => (isStrings(tools) ? [tools] : [])),
    approvals: byStrictness.find((approvals) => asked.some((one) => one.approvals === approvals)) ?? "never",
    budget_usd: typeof budget === "number" ? budget : null,
  };
}

/** A `*` means something at the end only: after a dot, or alone. Anywhere else it names no tool. */
export function isNamedBy(pattern: string, name: string): boolean {
  if (pattern === "*") return true;
  return pattern.endsWith(".*") ? name.startsWith(pattern.slice(0, -1)) : pattern === name;
}

/** One list that allows what each of these does. */
export function namedByAll(lists: readonly (readonly string[])[]): readonly string[] {
  // Of two patterns either one names all that the other does, or they have no tool in common.
  const inBoth = (a: readonly string[], b: readonly string[]): readonly string[] => {
    const within = (list: readonly string[], by: readonly string[]): readonly string[] =>
      list.filter((name) => by.some((pattern) => isNamedBy(pattern, name)));
    return [...new Set([...within(a, b), ...within(b, a)])];
  };
  return lists.reduce(inBoth, ["*"]);
}
