// A graph of thoughts: the task in parts, each of which is a child run. Parts whose dependencies have ended run side by
// side, in waves; with the end of a wave it is settled which parts are in the next, so that a crash in the middle of one
// changes nothing. A part that failed is told to those that need it, and these make the best of it.

import { type AnyEvent, type Draft, type Facts, isObject } from "@runwire/protocol";
import { limits } from "../limits.js";
import type { Part } from "./graph.js";

export interface GraphNode extends Part {
  readonly status: "waiting" | "running" | "done" | "failed";
  /** By which its child is found again. */
  readonly call_id: string | null;
  readonly child_id: string | null;
  /** What it came to, or why it failed. */
  readonly result: string;
  /** Whether it was asked if more follows from it. */
  readonly isAskedOn: boolean;
}

export interface Got {
  readonly kind: "got";
  readonly isAdaptive: boolean;
  /** Null before there is a graph. */
  readonly nodes: readonly GraphNode[] | null;
  /** The ids of those that run side by side now. */
  readonly wave: readonly string[];
  readonly expansions: number;
  /** Unusable answers in a row. */
  readonly misses: number;
}

export const firstGot: Got = {
  kind: "got",
  isAdaptive: false,
  nodes: null,
  wave: [],
  expansions: 0,
  misses: 0,
};

export function advanceGot(got: Got, e: AnyEvent): Got {
  const { nodes } = got;
  if (nodes === null) {
    if (e.type === "got.plan") return { ...got, nodes: nodesOf(e.payload.nodes), misses: 0 };
    const isMiss = e.type === "model.completed" && e.payload.unusable === true;
    return isMiss ? { ...got, misses: got.misses + 1 } : got;
  }
  switch (e.type) {
    case "got.node_start":
      return withNode(got, e.payload.id, { status: "running", call_id: textOf(e.payload.call_id) });
    case "child.spawn": {
      const { call_id, child_id } = e.payload;
      const of = nodes.find((node) => node.call_id !== null && node.call_id === call_id);
      return of === undefined ? got : withNode(got, of.id, { child_id });
    }
    case "got.node_complete": {
      const { id, result, result_summary } = e.payload;
      return withNode(got, id, { status: "done", result: textOf(result) ?? textOf(result_summary) ?? "" });
    }
    case "got.node_failed":
      return withNode(got, e.payload.id, { status: "failed", result: textOf(e.payload.error) ?? "" });
    case "got.expand": {
      const more = nodesOf(e.payload.nodes);
      return { ...got, nodes: [...nodes, ...more], expansions: got.expansions + 1 };
    }
    case "model.completed":
      return withNode(got, e.payload.expands, { isAskedOn: true });
    case "step.boundary":
      return { ...got, wave: readyIn(nodes) };
    default:
      return got;
  }
}

export type GotNext =
  | { readonly kind: "plan" }
  | { readonly kind: "run"; readonly nodes: readonly GraphNode[] }
  | { readonly kind: "expand"; readonly node: GraphNode }
  | { readonly kind: "end-wave" };

/** What is to be done next; null where the graph is done with. */
export function nextOfGot({ nodes, wave, misses, isAdaptive, expansions }: Got): GotNext | null {
  if (nodes === null) return misses < limits.strategyTriesMax ? { kind: "plan" } : null;
  if (wave.length === 0) return null;
  const inWave = nodes.filter(({ id }) => wave.includes(id));
  const open = inWave.filter((node) => !isEnded(node));
  if (open.length > 0) return { kind: "run", nodes: open };
  const hasRoom = expansions < limits.expansionsMax && nodes.length < limits.graphNodesMax;
  const node = inWave.find(({ status, isAskedOn }) => status === "done" && !isAskedOn);
  if (isAdaptive && hasRoom && node !== undefined) return { kind: "expand", node };
  return { kind: "end-wave" };
}

export const resultsHeading = "What the parts of the task have come to:";
export const failedPrefix = "This part failed: ";

export function doneHeading(id: string): string {
  return `Part ${id} is done:`;
}

export function gotGuidance({ nodes }: Got): string {
  if (nodes === null || nodes.length === 0) return "";
  return [
    "The task was done in parts. Write the answer from what they have come to, without telling of the parts.",
    resultsIn(nodes),
  ].join("\n\n");
}

/** One below the other, each under what it was to do. */
export function resultsIn(nodes: readonly GraphNode[]): string {
  const told = nodes.map(({ id, task, status, result }) => {
    const [what = ""] = task.split("\n");
    return `## ${id}: ${what}\n\n${status === "failed" ? `${failedPrefix}${result}` : result}`;
  });
  return `${resultsHeading}\n\n${told.join("\n\n")}`;
}

/** Children that a strategy waits for. */
export function liveChildrenOf(strategy: { readonly kind: string } | null): readonly string[] {
  return runningIn(strategy).flatMap(({ child_id }) => (child_id === null ? [] : [child_id]));
}

/** The ends of parts that nobody waits for any longer. */
export function endsOfNodes(strategy: { readonly kind: string } | null, error: string): readonly Draft[] {
  return runningIn(strategy).map(({ id }): Draft => ({ type: "got.node_failed", payload: { id, error } }));
}

function runningIn(strategy: { readonly kind: string } | null): readonly GraphNode[] {
  const nodes = strategy?.kind === "got" ? (strategy as Got).nodes : null;
  return nodes?.filter(({ status }) => status === "running") ?? [];
}

function isEnded({ status }: GraphNode): boolean {
  return status === "done" || status === "failed";
}

function readyIn(nodes: readonly GraphNode[]): readonly string[] {
  const ended = new Set(nodes.filter(isEnded).map(({ id }) => id));
  const ready = nodes.filter((node) => !isEnded(node) && node.deps.every((dep) => ended.has(dep)));
  return ready.map(({ id }) => id);
}

function withNode(got: Got, id: unknown, change: Partial<GraphNode>): Got {
  const nodes = got.nodes?.map((node) => (node.id === id ? { ...node, ...change } : node)) ?? null;
  return { ...got, nodes };
}

const newNode = { status: "waiting", call_id: null, child_id: null, result: "", isAskedOn: false } as const;

function nodesOf(given: unknown): readonly GraphNode[] {
  const list = Array.isArray(given) ? (given as readonly Facts[]).filter(isObject) : [];
  return list.map(({ id, task, deps }) => ({
    ...newNode,
    id: String(id),
    task: String(task),
    deps: Array.isArray(deps) ? deps.map(String) : [],
  }));
}

function textOf(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}
