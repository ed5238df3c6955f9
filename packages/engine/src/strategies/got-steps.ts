// What a graph of thoughts does next: asks for the graph, runs a wave of its parts, asks whether more follows from one.

import type { Draft } from "@runwire/protocol";
import { limits } from "../limits.js";
import type { Loop } from "../loop.js";
import { shortened } from "../shortened.js";
import { atOnce, mayBegin } from "../side-by-side.js";
import { reportOf } from "../spawn.js";
import { boundary } from "../steps.js";
import { isStoreDown } from "../store-down.js";
import type { Work } from "../work.js";
import { askFor, type Reading } from "./asking.js";
import { doneHeading, type Got, type GraphNode, nextOfGot, resultsIn } from "./got.js";
import { edgesIn, graphIn, type Part } from "./graph.js";

const system = "You divide a task into parts before anybody begins with it.";
const form = '{"nodes": [{"id": "…", "task": "…", "depends_on": ["…"]}]}';

export async function gotStep(loop: Loop, work: Work, got: Got): Promise<void> {
  const next = nextOfGot(got);
  switch (next?.kind) {
    case "plan":
      return plan(loop, work, got);
    case "run":
      return atOnce(next.nodes, (node) => runNode(loop, work, node));
    case "expand":
      return expand(loop, work, got, next.node);
    case "end-wave":
      return loop.log.write(await boundary(loop, "fan-in"));
    default:
      return;
  }
}

async function plan(loop: Loop, work: Work, { misses }: Got): Promise<void> {
  const wish = [
    `Divide the task into at most ${limits.graphNodesMax} parts, each of which somebody can do who sees nothing but what you ` +
      "write, and the results of the parts that it depends on. Parts that do not depend on each other are done at the same " +
      "time. Leave out putting together the answer: that is done in the end.",
    `Answer with JSON and nothing else: ${form}`,
    ...(misses === 0 ? [] : ["Your last answer could not be read. Write the JSON, and nothing around it."]),
  ].join("\n\n");
  await askFor(loop, work, {
    ...{ purpose: "got.plan", system, wish },
    async read(text): Promise<Reading | null> {
      const { parts, mended } = graphIn(text, [], limits.graphNodesMax);
      if (parts.length === 0) return null;
      const graph = {
        node_count: parts.length,
        edge_count: edgesIn(parts),
        node_ids: parts.map(({ id }) => id),
        nodes: parts,
      };
      return {
        thought: `The parts of the task:\n${told(parts, mended)}\n`,
        events: [{ type: "got.plan", payload: graph }],
        after: [await boundary(loop, "fan-out")],
      };
    },
  });
}

async function expand(loop: Loop, work: Work, { nodes }: Got, node: GraphNode): Promise<void> {
  const known = nodes ?? [];
  const room = Math.min(limits.nodesPerExpansionMax, limits.graphNodesMax - known.length);
  const wish = [
    `The parts of the task:\n${told(known, [])}`,
    `${doneHeading(node.id)}\n\n${node.result}`,
    `Does more have to be done that follows from this part and is in none of the others? If so, write at most ${room} more ` +
      "parts; if not, write none. Only what the answer would be wrong or poor without.",
    `Answer with JSON and nothing else: ${form}, or {"nodes": []}`,
  ].join("\n\n");
  await askFor(loop, work, {
    ...{ purpose: "got.expand", system, wish, facts: { expands: node.id } },
    read(text): Reading {
      const { parts, mended } = graphIn(text, known, room);
      // They follow from it, whether they say so or not.
      const more = parts.map((part) => ({ ...part, deps: [...new Set([node.id, ...part.deps])] }));
      if (more.length === 0) return { thought: "", events: [] };
      const [node_id, nodes_added, edges_added] = [node.id, more.length, edgesIn(more)];
      const events: Draft[] = [
        { type: "got.expand", payload: { node_id, nodes_added, edges_added, nodes: more } },
      ];
      return { thought: `More follows from ${node_id}:\n${told(more, mended)}\n`, events };
    },
  });
}

function told(parts: readonly Part[], mended: readonly string[]): string {
  const lines = parts.map(({ id, task, deps }) => {
    const after = deps.length === 0 ? "" : ` (after ${deps.join(", ")})`;
    return `- ${id}: ${shortened(task.replace(/\s+/g, " "), limits.nodeSummaryCharsMax)}${after}`;
  });
  return [...lines, ...mended.map((what) => `Left out: ${what}.`)].join("\n");
}

async function runNode(loop: Loop, work: Work, node: GraphNode): Promise<void> {
  const { log, newId } = loop;
  const { id } = node;
  const signal = loop.working();
  if (!(await mayBegin(log, signal))) return;
  const call_id = node.call_id ?? newId("call");
  if (node.status === "waiting") await log.write({ type: "got.node_start", payload: { id, call_id } });
  let end: Draft;
  try {
    const prompt = promptFor(work, node);
    const { text } = await reportOf(loop, { prompt, call_id }, node.child_id, signal);
    const result = shortened(text, limits.nodeResultCharsMax);
    const result_summary = shortened(text, limits.nodeSummaryCharsMax);
    end = { type: "got.node_complete", payload: { id, result_summary, result } };
  } catch (error) {
    // No failure of the part's: it goes on when the log can be written again.
    if (isStoreDown(error)) throw error;
    end = { type: "got.node_failed", payload: { id, error: (error as Error).message } };
  }
  // A run that was ended or redirected meanwhile has closed its parts itself; one whose server leaves goes on later.
  if (!signal.aborted) await log.write(end);
}

/** All that a part is told: it sees nothing else of the run. */
function promptFor({ messages, strategy }: Work, { task, deps }: GraphNode): string {
  const nodes = strategy?.kind === "got" ? (strategy.nodes ?? []) : [];
  const needed = nodes.filter(({ id }) => deps.includes(id));
  const asked = messages.findLast((message) => message.role === "user" && message.direction === undefined);
  const whole = shortened(asked?.role === "user" ? asked.content : "", limits.afterthoughtCharsMax);
  const steers = messages.flatMap((message) =>
    message.role === "user" && message.direction === "steer" ? [message.content] : [],
  );
  return [
    task,
    `It is a part of a larger task: ${whole}`,
    ...(steers.length === 0 ? [] : [`To be kept in mind: ${steers.join(" ")}`]),
    ...(needed.length === 0 ? [] : [resultsIn(needed)]),
  ].join("\n\n");
}
