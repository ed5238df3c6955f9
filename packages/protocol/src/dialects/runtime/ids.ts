// Ids stand at the top of a message in camelCase, and in an event's scope in snake_case. Readers take both spellings.

import type { Facts } from "../../events.js";
import { isId } from "../../ids.js";

/** The ids that the standard names, as a scope spells them. */
export const scopeIds = [
  "session_id",
  "thread_id",
  "turn_id",
  "task_id",
  "parent_task_id",
  "root_task_id",
  "run_id",
  "attempt_id",
  "step_id",
  "item_id",
  "tool_call_id",
  "action_id",
  "subagent_id",
  "artifact_id",
  "evidence_id",
  "request_id",
  "model_request_id",
  "process_id",
  "channel_id",
  "job_id",
  "job_item_id",
  "queue_id",
  "runtime_id",
  "trace_id",
  "span_id",
] as const;

export type ScopeId = (typeof scopeIds)[number];

const known: ReadonlySet<string> = new Set(scopeIds);

/** `toolCallId` of `tool_call_id`. */
export const camelId = Object.fromEntries(
  scopeIds.map((name) => [name, name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())]),
) as { readonly [N in ScopeId]: string };

const scopeIdOf: ReadonlyMap<string, ScopeId> = new Map(
  scopeIds.flatMap((name) => [
    [camelId[name], name],
    [name, name],
  ]),
);

export interface SplitMembers {
  readonly ids: { readonly [N in ScopeId]?: string };
  /** What is no id that a scope can hold. */
  readonly others: readonly (readonly [string, unknown])[];
}

/** Parts ids from the other members of a message. Where an id stands in both spellings, camelCase is heard. */
export function splitIds(members: readonly (readonly [string, unknown])[]): SplitMembers {
  const ids: { [N in ScopeId]?: string } = {};
  const all = new Map(members);
  const others = members.filter(([name, value]) => {
    const id = scopeIdOf.get(name);
    if (id === undefined || !isId(value)) return true;
    if (name === id && all.has(camelId[id])) return !isId(all.get(camelId[id]));
    ids[id] = value;
    return false;
  });
  return { ids, others };
}

/** An id of a message in either spelling. */
export function idOf(message: Facts, name: string): string | undefined {
  const snake = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  const id = message[name] ?? message[snake];
  return typeof id === "string" && id !== "" ? id : undefined;
}

export function isScopeId(name: string): name is ScopeId {
  return known.has(name);
}
