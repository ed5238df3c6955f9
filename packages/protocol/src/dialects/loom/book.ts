// What a run has come to, for whoever shows it: its nodes with what was said in each, its calls, its end. A node's id may
// come again; the entering and leaving tells one from the other.

import type { Facts } from "../../events.js";
import { isCount } from "../../parse.js";
import { callMeant, nameIn, stages } from "./calls.js";
import { wordOf, wrongMembers } from "./words.js";

export interface LoomRun {
  readonly session_id: string | null;
  readonly run_id: string | null;
  readonly message: string | null;
  readonly agent: string | null;
  readonly state: "running" | "done" | "cancelled" | "failed";
  readonly nodes: readonly LoomNode[];
  readonly calls: readonly LoomCall[];
  readonly usage: { readonly prompt_tokens: number; readonly completion_tokens: number };
  /** The reply, which stands for all chunks; null before it. */
  readonly reply: string | null;
  readonly error: string | null;
}

export interface LoomNode {
  readonly node_id: string | null;
  readonly id: string;
  readonly text: string;
  readonly thought: string;
  /** Null while it is open. */
  readonly result: unknown;
}

export interface LoomCall {
  readonly call_id: string | null;
  /** Where it was spoken of last. */
  readonly node_id: string | null;
  readonly name: string;
  readonly arguments: unknown;
  readonly output: string;
  readonly status: "called" | "waiting" | "running" | "done" | "failed";
  readonly result: string | null;
}

export const emptyRun: LoomRun = {
  session_id: null,
  run_id: null,
  message: null,
  agent: null,
  state: "running",
  nodes: [],
  calls: [],
  usage: { prompt_tokens: 0, completion_tokens: 0 },
  reply: null,
  error: null,
};

/** The run after one more of its messages. Types that are not known, and messages that lack something, change nothing. */
export function readInto(before: LoomRun, message: Facts): LoomRun {
  const { session_id } = message;
  const run = typeof session_id === "string" ? { ...before, session_id } : before;
  if (typeof message.type !== "string") {
    if (typeof message.reply !== "string") return run;
    return {
      ...run,
      reply: message.reply,
      state: message.stop_reason === "cancelled" ? "cancelled" : "done",
    };
  }
  const word = wordOf(message.type);
  if (word === undefined || wrongMembers(word, message).length > 0) return run;
  const { id, content } = message as { readonly id: string; readonly content: string };
  switch (message.type) {
    case "run_start":
      return {
        ...run,
        run_id: textOf(message.run_id),
        message: textOf(message.message),
        agent: textOf(message.agent),
      };
    case "node_enter":
      return { ...run, nodes: [...run.nodes, { ...newNode, id, node_id: textOf(message.node_id) }] };
    case "node_exit":
      return inNode(run, message, (node) => ({ ...node, result: message.result }));
    case "message_chunk":
      return inNode(run, message, (node) => ({ ...node, text: node.text + content }));
    case "thought_chunk":
      return inNode(run, message, (node) => ({ ...node, thought: node.thought + content }));
    case "usage": {
      const { prompt_tokens, completion_tokens } = run.usage;
      const more = (count: unknown): number => (isCount(count) ? count : 0);
      return {
        ...run,
        usage: {
          prompt_tokens: prompt_tokens + more(message.prompt_tokens),
          completion_tokens: completion_tokens + more(message.completion_tokens),
        },
      };
    }
    case "run_error":
      return { ...run, state: "failed", error: String(message.error) };
    default:
      return message.type.startsWith("tool_") ? { ...run, calls: withCall(run.calls, message) } : run;
  }
}

const newNode: LoomNode = { node_id: null, id: "", text: "", thought: "", result: null };

/** The open node that a message belongs to: by its id, then by its name; one of its own where there is none. */
function inNode(run: LoomRun, message: Facts, change: (node: LoomNode) => LoomNode): LoomRun {
  const { node_id, id } = message;
  const open = run.nodes.map((node, i) => ({ node, i })).filter(({ node }) => node.result === null);
  const at = (
    open.findLast(({ node }) => node_id != null && node.node_id === node_id && node.id === id) ??
    open.findLast(({ node }) => node.id === id)
  )?.i;
  if (at === undefined) {
    const alone = { ...newNode, id: String(id), node_id: textOf(node_id) };
    return { ...run, nodes: [...run.nodes, change(alone)] };
  }
  return { ...run, nodes: run.nodes.with(at, change(run.nodes[at] as LoomNode)) };
}

const statuses: { readonly [type: string]: LoomCall["status"] } = {
  tool_call_chunk: "called",
  tool_call: "called",
  tool_approval: "waiting",
  tool_approval_response: "called",
  tool_start: "running",
  tool_output: "running",
};

function withCall(calls: readonly LoomCall[], message: Facts): readonly LoomCall[] {
  const call_id = nameIn(message.call_id);
  const node_id = textOf(message.node_id);
  const name = textOf(message.name);
  const found = meantIn(calls, message);
  const known = found ?? {
    call_id,
    node_id,
    name: name ?? "",
    arguments: null,
    output: "",
    status: "called",
    result: null,
  };
  const isEnd = message.type === "tool_end";
  const call: LoomCall = {
    ...known,
    call_id: known.call_id ?? call_id,
    node_id: node_id ?? known.node_id,
    name: name ?? known.name,
    arguments: message.arguments ?? known.arguments,
    output: message.type === "tool_output" ? known.output + String(message.content) : known.output,
    status: isEnd
      ? message.is_error === true
        ? "failed"
        : "done"
      : (statuses[String(message.type)] ?? known.status),
    result: isEnd ? String(message.result) : known.result,
  };
  return found === undefined ? [...calls, call] : calls.with(calls.indexOf(found), call);
}

/**
 * A call is known by its id, also after its end; without one, an open one is meant. A run and its children may give the
 * same id: the tool, the node and how far a call has got then tell one from the other.
 */
function meantIn(calls: readonly LoomCall[], message: Facts): LoomCall | undefined {
  const type = String(message.type);
  const named = nameIn(message.call_id);
  const [tool, node] = [nameIn(message.name), textOf(message.node_id)];
  const same = calls.filter(
    ({ call_id, name }) =>
      named !== null && call_id === named && (tool === null || name === "" || name === tool),
  );
  const known =
    same.findLast(({ node_id }) => node_id === node) ?? same.findLast((call) => mayFollow(call, type));
  if (known !== undefined) return known;
  const open = calls
    .filter((call) => isOpen(call) && (named === null || call.call_id === null))
    .map((call) => ({
      call,
      named: call.call_id,
      tool: nameIn(call.name),
      node: call.node_id,
      stage: stageOf(call),
    }));
  return callMeant(open, { type, named, tool, node })?.call;
}

/** Whether a message of another node may be about this call: none begins what has begun. */
function mayFollow(call: LoomCall, type: string): boolean {
  if (type !== "tool_call" && type !== "tool_approval" && type !== "tool_start") return true;
  return isOpen(call) && stageOf(call) < (stages[type] ?? 0);
}

function isOpen({ status }: LoomCall): boolean {
  return status !== "done" && status !== "failed";
}

function stageOf({ status, arguments: given }: LoomCall): number {
  if (status === "running") return stages.tool_start ?? 0;
  if (status === "waiting") return stages.tool_approval ?? 0;
  return stages[given === null ? "tool_call_chunk" : "tool_call"] ?? 0;
}

function textOf(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}
