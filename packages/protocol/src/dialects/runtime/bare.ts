// A message without what its stream gives it: no id, time or number, and no id that only says where it stands. What is
// left is what somebody said, and it goes through the log unchanged.

import type { Facts, Scope } from "../../events.js";
import { isId } from "../../ids.js";
import { isObject } from "../../parse.js";
import { camelId, isScopeId, scopeIds, splitIds } from "./ids.js";
import { runtimeId } from "./types.js";

export interface Bare {
  readonly type: string;
  /** The run below the stream's that says it. */
  readonly child_id: string | null;
  readonly scope: Scope;
  /** Members of the message that are none of the others. */
  readonly members: Facts;
  readonly payload: unknown;
}

/** Members that the stream gives anew, whoever passes a message on. */
const streamMembers: ReadonlySet<string> = new Set([
  "type",
  "eventId",
  "schemaVersion",
  "timestamp",
  "sequence",
  "streamId",
  "payload",
]);

const scopeMembersMax = 32;

/** A message's members in their order, but for those of its stream. `scope` holds the ids that the standard has no name for. */
export function membersOf({ child_id, scope, members, payload }: Bare): Facts {
  const ids: { [name: string]: string } = child_id === null ? {} : { childId: child_id };
  const others: (readonly [string, string])[] = [];
  for (const name of scopeIds) if (Object.hasOwn(scope, name)) ids[camelId[name]] = scope[name] as string;
  for (const name of Object.keys(scope)) if (!isScopeId(name)) others.push([name, scope[name] as string]);
  return others.length === 0
    ? { ...ids, ...members, payload }
    : { ...ids, scope: Object.fromEntries(others), ...members, payload };
}

export function bareOf(type: string, message: Facts): Bare {
  const entries = Object.entries(message).filter(([name]) => !streamMembers.has(name));
  const { ids, others } = splitIds(entries);
  const members = new Map(others);
  let child_id: string | null = null;
  if (isId(members.get("childId"))) {
    child_id = members.get("childId") as string;
    members.delete("childId");
  }
  let scope = withoutDefaults(type, ids, isId(message.streamId) ? message.streamId : undefined, child_id);
  const unnamed = members.get("scope");
  if (isUnnamedScope(unnamed) && Object.keys({ ...scope, ...unnamed }).length <= scopeMembersMax) {
    scope = { ...scope, ...unnamed };
    members.delete("scope");
  }
  const payload = Object.hasOwn(message, "payload") ? message.payload : {};
  return { type, child_id, scope, members: Object.fromEntries(members), payload };
}

function isUnnamedScope(value: unknown): value is Scope {
  if (!isObject(value)) return false;
  const entries = Object.entries(value);
  return (
    entries.length > 0 &&
    entries.every(([name, id]) => !isScopeId(name) && /^[a-z][a-z0-9_]{0,63}$/.test(name) && isId(id))
  );
}

/** Ids without those that an encoder would fill in anyway. */
export function withoutDefaults(
  type: string,
  ids: Scope,
  stream_id: string | undefined,
  child_id: string | null,
): Scope {
  if (Object.keys(ids).length === 0) return ids;
  const run = child_id ?? stream_id;
  const isDefault: { readonly [name: string]: boolean } = {
    run_id: ids.run_id === run,
    attempt_id: ids.attempt_id === (ids.run_id ?? run),
    subagent_id: ids.subagent_id === child_id && type !== "subagent.spawned",
    thread_id: ids.thread_id === (ids.session_id ?? stream_id),
    session_id: ids.session_id === stream_id,
    turn_id: ids.turn_id === stream_id,
    runtime_id: ids.runtime_id === runtimeId,
  };
  return Object.fromEntries(
    Object.entries(ids).filter(([name]) => !(Object.hasOwn(isDefault, name) && isDefault[name])),
  );
}
