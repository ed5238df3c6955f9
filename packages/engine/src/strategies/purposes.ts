import type { ModelRequest, Purpose } from "../model.js";

/** Names of nodes, for readers who are told where a run is. */
const nodes: { readonly [P in Purpose]: string } = {
  "tot.expand": "think_expand",
  "tot.evaluate": "think_evaluate",
  "got.plan": "plan_graph",
  "got.expand": "expand_graph",
};

/** What the events of such an ask say of it. */
export function purposeFacts({ purpose }: Pick<ModelRequest, "purpose">): {
  readonly purpose?: Purpose;
  readonly node?: string;
} {
  return purpose === undefined ? {} : { purpose, node: nodes[purpose] };
}
