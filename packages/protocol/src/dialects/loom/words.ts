// What Loom can say, and what each word is in a log. Encoder, decoder, validator and documents read this one table.

import type { Facts, NamedType } from "../../events.js";
import { isCount, isObject } from "../../parse.js";

export interface Word {
  /** The event type that it is. */
  readonly means: NamedType;
  /** Its members: the payload's name of each, and what it must be. A trailing `?` allows absence and null. */
  readonly members: { readonly [theirs: string]: readonly [ours: string, kind: string] };
}

const call = { call_id: ["call_id", "string?"], name: ["tool", "string"] } as const;

/** Words whose members are those of an event under other names. The rest is in `encode.ts` and `decode.ts`. */
export const words: { readonly [type: string]: Word } = {
  run_start: {
    means: "turn.started",
    members: { run_id: ["run_id", "string?"], message: ["message", "string?"], agent: ["agent", "string?"] },
  },
  node_enter: { means: "node.enter", members: { id: ["id", "string"] } },
  node_exit: { means: "node.exit", members: { id: ["id", "string"], result: ["result", "result"] } },
  message_chunk: { means: "text.delta", members: { content: ["text", "string"], id: ["node", "string"] } },
  thought_chunk: {
    means: "reasoning.delta",
    members: { content: ["text", "string"], id: ["node", "string"] },
  },
  usage: {
    means: "usage",
    members: {
      prompt_tokens: ["input_tokens", "count"],
      completion_tokens: ["output_tokens", "count"],
      total_tokens: ["total_tokens", "count"],
    },
  },
  values: { means: "state.values", members: { state: ["state", "any"] } },
  updates: { means: "state.updates", members: { id: ["id", "string"], state: ["state", "any"] } },
  custom: { means: "custom", members: { value: ["value", "any"] } },
  checkpoint: {
    means: "checkpoint",
    members: {
      checkpoint_id: ["checkpoint_id", "string"],
      timestamp: ["timestamp", "string"],
      step: ["step", "number"],
      state: ["state", "any"],
      thread_id: ["thread_id", "string?"],
      checkpoint_ns: ["checkpoint_ns", "string?"],
    },
  },
  tot_expand: { means: "tot.expand", members: { candidates: ["candidates", "strings"] } },
  tot_evaluate: {
    means: "tot.evaluate",
    members: { chosen: ["chosen", "count"], scores: ["scores", "numbers"] },
  },
  tot_backtrack: {
    means: "tot.backtrack",
    members: { reason: ["reason", "string"], to_depth: ["to_depth", "count"] },
  },
  got_plan: {
    means: "got.plan",
    members: {
      node_count: ["node_count", "count"],
      edge_count: ["edge_count", "count"],
      node_ids: ["node_ids", "strings"],
    },
  },
  got_node_start: { means: "got.node_start", members: { id: ["id", "string"] } },
  got_node_complete: {
    means: "got.node_complete",
    members: { id: ["id", "string"], result_summary: ["result_summary", "string"] },
  },
  got_node_failed: {
    means: "got.node_failed",
    members: { id: ["id", "string"], error: ["error", "string"] },
  },
  got_expand: {
    means: "got.expand",
    members: {
      node_id: ["node_id", "string"],
      nodes_added: ["nodes_added", "count"],
      edges_added: ["edges_added", "count"],
    },
  },
  tool_call_chunk: {
    means: "tool.args.delta",
    members: {
      call_id: ["call_id", "string?"],
      name: ["tool", "string?"],
      arguments_delta: ["text", "string"],
    },
  },
  tool_call: { means: "tool.call", members: { ...call, arguments: ["input", "object"] } },
  tool_start: { means: "tool.start", members: call },
  tool_output: { means: "text.delta", members: { ...call, content: ["text", "string"] } },
  tool_end: {
    means: "tool.end",
    members: { ...call, result: ["output", "string"], is_error: ["ok", "boolean"] },
  },
  tool_approval: { means: "approval.requested", members: { ...call, arguments: ["input", "object"] } },
  tool_approval_response: {
    means: "approval.resolved",
    members: {
      call_id: ["approval_id", "string"],
      approved: ["decision", "boolean"],
      reason: ["reason", "string?"],
    },
  },
  run_error: {
    means: "run.lifecycle",
    members: { error: ["reason", "string"], run_id: ["run_id", "string?"] },
  },
};

/** Events that have no word of their own, or more than one, and what they are said as. */
const otherSayings: { readonly [T in NamedType]?: readonly string[] } = {
  "turn.submitted": ["run_start"],
  "run.lifecycle": ["reply", "run_error"],
  "message.settled": ["reply"],
  "text.delta": ["message_chunk", "tool_output"],
  "tool.output": ["tool_output"],
  "tool.start": ["tool_call", "tool_start"],
  "step.boundary": ["updates", "values", "checkpoint"],
  "model.requested": ["node_enter"],
  "model.completed": ["node_exit"],
  "plan.proposal": ["custom"],
  "clarify.requested": ["custom"],
  "clarify.resolved": ["custom"],
};

/** What each event type is said as; those that are not in here are not said. */
export const loomNames: ReadonlyMap<NamedType, readonly string[]> = new Map([
  ...Object.entries(words).map(([type, { means }]) => [means, [type]] as const),
  ...(Object.entries(otherSayings) as [NamedType, readonly string[]][]),
]);

/** Members that stand beside those of every word. */
export const envelope = ["session_id", "node_id", "event_id", "type"] as const;

export function withoutEnvelope(message: Facts): Facts {
  const { session_id: _, node_id: __, event_id: ___, type: ____, ...members } = message;
  return members;
}

/** `got_expand` names a node of its own where the others name the one that speaks. */
export function hasNodeId(type: unknown): boolean {
  return type !== "got_expand";
}

export function wordOf(type: unknown): Word | undefined {
  return typeof type === "string" && Object.hasOwn(words, type) ? words[type] : undefined;
}

/** The members that are wrong, each with what it must be. */
export function wrongMembers({ members }: Word, message: Facts): readonly string[] {
  return Object.entries(members).flatMap(([name, [, kindText]]) => {
    const isOptional = kindText.endsWith("?");
    const kind = isOptional ? kindText.slice(0, -1) : kindText;
    const value = Object.hasOwn(message, name) ? message[name] : undefined;
    // Null is what absent is, but for a state or a value, which may be null.
    if (value === undefined || (value === null && kind !== "any"))
      return isOptional ? [] : [`\`${name}\` must be ${says[kind]}`];
    return kinds[kind]?.(value) ? [] : [`\`${name}\` must be ${says[kind]}`];
  });
}

const kinds: { readonly [kind: string]: (value: unknown) => boolean } = {
  string: (value) => typeof value === "string",
  number: (value) => typeof value === "number",
  boolean: (value) => typeof value === "boolean",
  count: isCount,
  object: isObject,
  strings: (value) => Array.isArray(value) && value.every((item) => typeof item === "string"),
  numbers: (value) => Array.isArray(value) && value.every((item) => typeof item === "number"),
  result: (value) =>
    value === "Ok" || (isObject(value) && Object.keys(value).length === 1 && typeof value.Err === "string"),
  any: () => true,
};

const says: { readonly [kind: string]: string } = {
  string: "a string",
  number: "a number",
  boolean: "true or false",
  count: "a whole number from 0",
  object: "an object",
  strings: "an array of strings",
  numbers: "an array of numbers",
  result: '"Ok" or {"Err": string}',
  any: "there",
};

/** What a type that no table knows may be called, so that it can be stored. */
export function isName(type: string): boolean {
  return /^[A-Za-z0-9_-]{1,64}$/.test(type);
}
