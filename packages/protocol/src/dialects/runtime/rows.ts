// What the log's own types are called in a runtime event stream, as data. A row says one type, or one kind of it; it
// is read in both directions. Whatever a row does not name passes as it is.

import type { Facts, NamedType } from "../../events.js";
import { isRunId } from "../../ids.js";
import { isObject } from "../../parse.js";
import { type RunState, runStates } from "../../state.js";
import type { ScopeId } from "./ids.js";

export interface Row {
  readonly type: NamedType;
  readonly as: string;
  /** Only what the log's run, or a run below it, says. */
  readonly by?: "own" | "child";
  /** For a call that has been told already: its second start, its second end. */
  readonly again?: true;
  /** Members that have this value, and are told by the type alone. */
  readonly fixed?: Facts;
  /** Members that become ids of the message. */
  readonly ids?: { readonly [member: string]: ScopeId };
  /** Members without which this row says nothing. */
  readonly needs?: readonly string[];
  /** Ids of the event's scope without which this row says nothing. */
  readonly scoped?: readonly ScopeId[];
  /** Members that have another name on the wire. */
  readonly names?: { readonly [member: string]: string };
  /** Members that only the wire has. */
  readonly marks?: Facts;
  /** The same, but a producer may say otherwise: null on our side is absence on the wire. */
  readonly defaults?: Facts;
  /** Members of the wire that follow from members which both sides have. */
  readonly adds?: (payload: Facts) => Facts;
  /** Where only some values of a wire's member are the log's: a ref of another's is no blob here. */
  readonly takes?: { readonly [wireName: string]: (value: unknown) => boolean };
  /** The whole payload is one member of the wire's. */
  readonly within?: string;
}

const call = { call_id: "tool_call_id" } as const;
const callNames = { tool: "toolName", input: "safeArgs" } as const;

const toolEnd = {
  type: "tool.end",
  ids: call,
  names: { blob_ref: "output_ref", duration_ms: "durationMs" },
  takes: { output_ref: isBlobRef },
  adds: outputPreview,
} as const;

/** Decisions that this server takes for an approval. */
const decisions = ["once", "session", "always", "deny"];

/** What a run's state is called; a `phase` where the word says less than the state. */
export const statusWords: {
  readonly [S in RunState]: { readonly status: string; readonly phase?: string };
} = {
  planning: { status: "preparing", phase: "planning" },
  awaiting_approval: { status: "waiting_permission", phase: "plan_approval" },
  running: { status: "running" },
  paused: { status: "paused" },
  redirecting: { status: "running", phase: "redirecting" },
  done: { status: "completed" },
  aborted: { status: "cancelled" },
  error: { status: "failed" },
};

const subagentTypes: { readonly [S in RunState]?: string } = {
  done: "subagent.completed",
  error: "subagent.failed",
  aborted: "subagent.closed",
};

// Those with a phase first: without one, the same status means the plain state.
const states = runStates.toSorted(
  (a, b) => Number(statusWords[b].phase !== undefined) - Number(statusWords[a].phase !== undefined),
);

/** Of two rows that could read a message the first does. */
export const rows: readonly Row[] = [
  ...states.map(
    (state): Row => ({
      type: "run.lifecycle",
      as: "run.status",
      by: "own",
      fixed: { state },
      marks: statusWords[state],
    }),
  ),
  ...states.map(
    (state): Row => ({
      type: "run.lifecycle",
      as: subagentTypes[state] ?? "subagent.status",
      by: "child",
      fixed: { state },
      marks: statusWords[state],
    }),
  ),
  {
    type: "child.spawn",
    as: "subagent.spawned",
    ids: { child_id: "subagent_id" },
    // Another's subagent is no run here.
    takes: { subagentId: isRunId },
  },

  { type: "reasoning.delta", as: "reasoning.delta", ids: call },
  { type: "tool.output", as: "tool.progress", ids: call, needs: ["call_id"], marks: { stream: "output" } },
  // What a call says while a process of it runs is that process's output, of all its streams.
  {
    type: "text.delta",
    as: "process.output",
    ids: call,
    needs: ["call_id"],
    scoped: ["process_id"],
    marks: { stream: "combined" },
  },
  { type: "text.delta", as: "tool.progress", ids: call, needs: ["call_id"] },
  { type: "text.delta", as: "model.delta" },
  {
    type: "process.output",
    as: "process.output",
    ids: { ...call, process_id: "process_id" },
  },

  {
    type: "tool.call",
    as: "tool.started",
    ids: call,
    names: { tool: "toolName" },
    marks: { status: "pending" },
  },
  {
    type: "tool.call",
    as: "tool.progress",
    again: true,
    ids: call,
    names: { tool: "toolName" },
    marks: { repeated: "started", status: "pending" },
  },
  { type: "tool.start", as: "tool.started", ids: call, names: callNames, adds: inputRef },
  { type: "tool.start", as: "tool.args", again: true, ids: call, names: callNames, adds: inputRef },
  { type: "tool.args.delta", as: "tool.args", ids: call, needs: ["call_id"] },
  { ...toolEnd, as: "tool.result", fixed: { ok: true } },
  { ...toolEnd, as: "tool.failed", fixed: { ok: false } },
  { ...toolEnd, as: "tool.progress", again: true, marks: { repeated: "ended" } },

  {
    type: "clarify.requested",
    as: "action.required",
    ids: { clarify_id: "action_id", ...call },
    names: { question: "prompt", expires_at: "expiresAt" },
    marks: { actionType: "clarify" },
  },
  {
    type: "approval.requested",
    as: "action.required",
    ids: { approval_id: "action_id", ...call },
    names: { ...callNames, expires_at: "expiresAt" },
    defaults: { actionType: "approval", availableDecisions: decisions },
  },
  {
    type: "clarify.resolved",
    as: "action.resolved",
    ids: { clarify_id: "action_id" },
    marks: { actionType: "clarify" },
  },
  // Whoever is asked for anything else than leave may answer without a decision.
  {
    type: "approval.resolved",
    as: "action.resolved",
    fixed: { decision: "resolved", outcome: "answered" },
    ids: { approval_id: "action_id" },
    defaults: { actionType: "approval" },
  },
  {
    type: "approval.resolved",
    as: "action.resolved",
    ids: { approval_id: "action_id" },
    defaults: { actionType: "approval" },
  },

  {
    type: "message.settled",
    as: "item.completed",
    names: { message_id: "itemId" },
    marks: { itemType: "agent_message" },
  },
  { type: "message.interim", as: "item.updated", marks: { itemType: "agent_message" } },
  { type: "plan.proposal", as: "item.updated", marks: { itemType: "todo" }, adds: planItem },
  { type: "title", as: "thread.updated" },
  { type: "usage", as: "cost.recorded", within: "usage" },
];

function isBlobRef(value: unknown): boolean {
  return typeof value === "string" && value.startsWith("blob_");
}

/** Where large arguments are, if they lie beside the log. */
export function inputRef({ spilled }: Facts): Facts {
  const input = isObject(spilled) ? spilled.input : undefined;
  return isObject(input) && typeof input.blob_ref === "string" ? { input_ref: input.blob_ref } : {};
}

/** What a large result begins with, and what it is. Where it is says `blob_ref`. */
export function outputPreview({ spilled }: Facts): Facts {
  const output = isObject(spilled) ? spilled.output : undefined;
  if (!isObject(output) || typeof output.preview !== "string") return {};
  const { preview, bytes, media_type } = output;
  return { preview, metadata: { bytes: bytes ?? null, media_type: media_type ?? null } };
}

function planItem({ plan }: Facts): Facts {
  return isObject(plan) && typeof plan.id === "string" ? { itemId: plan.id } : {};
}
