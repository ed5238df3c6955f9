// Nodes of runs whose producer names none, but tells of its model: it thinks while the model answers, acts while tools
// run, and observes what came of a step. What Loom itself has said tells of no model, so it is left as it is.

import { type Event, type Facts, is } from "../../events.js";
import { entered, leaving, left, type Span, type Spans } from "./spans.js";

/** What a node's beginning or end is said as, and where. */
export interface NodeSaying {
  readonly message: Facts;
  readonly node_id: string;
}

export interface Nodes {
  readonly spans: Spans;
  /** Producers that have told of their model. */
  readonly models: readonly string[];
}

type Said = readonly [Nodes, readonly NodeSaying[]];

/** What is entered and left before an event is said. */
export function nodesBefore(nodes: Nodes, e: Event): Said {
  const by = e.child_id ?? "";
  switch (e.type) {
    case "model.requested":
      return enter({ ...nodes, models: [...nodes.models.filter((one) => one !== by), by] }, by, nodeIn(e));
    case "got.node_start":
      return nodes.models.includes(by) ? enter(nodes, by, "execute_graph") : [nodes, []];
    case "tool.start":
    case "tool.end":
    case "approval.requested": {
      const isOpen = nodes.spans.open.some((span) => span.by === by);
      return isOpen || !nodes.models.includes(by) ? [nodes, []] : enter(nodes, by, "act");
    }
    case "step.boundary": {
      if (!nodes.models.includes(by)) return [nodes, []];
      const [acted, ends] = leaveAll(nodes, by, "Ok");
      const [observing, begins] = enter(acted, by, "observe");
      return [observing, [...ends, ...begins]];
    }
    case "run.lifecycle": {
      const { state, reason } = e.payload as Event<"run.lifecycle">["payload"];
      if (state === "done") return leaveAll(nodes, by, "Ok");
      if (state !== "aborted" && state !== "error" && state !== "redirecting") return [nodes, []];
      return leaveAll(nodes, by, { Err: reason ?? state });
    }
    default:
      return [nodes, []];
  }
}

/** What is left after it. */
export function nodesAfter(nodes: Nodes, e: Event): Said {
  const by = e.child_id ?? "";
  if (is(e, "model.completed")) return leave(nodes, by, nodeIn(e));
  if (is(e, "step.boundary")) return leave(nodes, by, "observe");
  return [nodes, []];
}

/** It thinks, unless it says what else the model is asked for. */
function nodeIn({ payload }: Event): string {
  const { node } = payload as Facts;
  return typeof node === "string" ? node : "think";
}

/** What a step has come to: what is left of it, and where one may go back to. */
export function stepSayings(
  e: Event<"step.boundary">,
  thread_id: string | null,
  node: string,
): readonly Facts[] {
  const { step_index, step_kind, checkpoint_id, plan_steps } = e.payload;
  const state = { step_index, step_kind, ...(plan_steps === undefined ? {} : { plan_steps }) };
  return [
    step_kind === "done" ? { type: "values", state } : { type: "updates", id: node, state },
    ...(checkpoint_id === undefined || checkpoint_id === null
      ? []
      : [
          {
            type: "checkpoint",
            checkpoint_id,
            timestamp: e.ts,
            step: step_index,
            state,
            thread_id,
            checkpoint_ns: e.child_id,
          },
        ]),
  ];
}

function enter(nodes: Nodes, by: string, name: string): Said {
  if (leaving(nodes.spans, by, name) !== undefined) return [nodes, []];
  const spans = entered(nodes.spans, by, name);
  const node_id = spans.open.at(-1)?.id ?? "";
  return [{ ...nodes, spans }, [{ message: { type: "node_enter", id: name }, node_id }]];
}

function leave(nodes: Nodes, by: string, name: string): Said {
  const span = nodes.models.includes(by) ? leaving(nodes.spans, by, name) : undefined;
  return span === undefined ? [nodes, []] : out(nodes, [span], "Ok");
}

function leaveAll(nodes: Nodes, by: string, result: unknown): Said {
  if (!nodes.models.includes(by)) return [nodes, []];
  return out(nodes, nodes.spans.open.filter((span) => span.by === by).toReversed(), result);
}

function out(nodes: Nodes, open: readonly Span[], result: unknown): Said {
  const spans = open.reduce(left, nodes.spans);
  const said = open.map(({ name, id }) => ({
    message: { type: "node_exit", id: name, result },
    node_id: id,
  }));
  return [{ ...nodes, spans }, said];
}
