// What an encoder of Loom remembers, and what it says.

import type { Facts } from "../../events.js";
import { isId } from "../../ids.js";
import { isObject } from "../../parse.js";
import { type IdentifiedCall, isMadeUp } from "./calls.js";
import { noSpans, type Spans } from "./spans.js";
import { envelope, wordOf, words, wrongMembers } from "./words.js";

export interface LoomState {
  /** The last `event_id`. */
  readonly said: number;
  readonly session_id: string | null;
  /** Whether `run_start` was said. */
  readonly begun: boolean;
  readonly spans: Spans;
  /** Producers that have told of their model. */
  readonly models: readonly string[];
  /** Calls and approvals by `keyOf`, for as long as they are open. */
  readonly calls: { readonly [key: string]: IdentifiedCall };
  readonly asks: { readonly [key: string]: { readonly call_id: string; readonly name: string } };
  /** The highest number that was made up for a call without a name. */
  readonly made: number;
  /** What the reply will be. */
  readonly settled: Facts | null;
}

export const firstState: LoomState = {
  said: 0,
  session_id: null,
  begun: false,
  spans: noSpans,
  models: [],
  calls: {},
  asks: {},
  made: 0,
  settled: null,
};

/** Each run numbers its calls and requests by itself. */
export function keyOf(by: string, id: string): string {
  return `${by} ${id}`;
}

export function isKeyOf(by: string, key: string): boolean {
  return key.startsWith(keyOf(by, ""));
}

/** A message without its envelope, and the node it is said in where it is not the usual one. */
export interface Saying {
  readonly message: Facts;
  readonly node_id?: string | undefined;
  /** What a type that is not known says, where no envelope stands beside it. */
  readonly members?: Facts;
}

export type Said = readonly [LoomState, readonly Saying[]];

/** The word for a payload; undefined where the payload lacks what the word needs. */
export function said(type: string, payload: Facts): Facts | undefined {
  const word = words[type];
  if (word === undefined) return undefined;
  const members: { [member: string]: unknown } = {};
  for (const [theirs, [ours]] of Object.entries(word.members)) {
    const own = Object.hasOwn(payload, ours) ? payload[ours] : undefined;
    const value = theirs === "call_id" ? callIdOf(own, payload) : own;
    if (value !== undefined) members[theirs] = value;
  }
  if (payload.spilled !== undefined) members.spilled = payload.spilled;
  const message: Facts = { type, ...members, ...restOf(payload, Object.keys(word.members)) };
  return isRight(message) ? message : undefined;
}

export function isRight(message: Facts): boolean {
  const word = wordOf(message.type);
  return word !== undefined && wrongMembers(word, message).length === 0;
}

/**
 * Members that came without being ours. Any dialect may have kept them, so they never stand for the envelope, nor for
 * what the message itself says.
 */
export function restOf({ rest }: Facts, says: readonly string[]): Facts {
  if (!isObject(rest)) return {};
  const ours = new Set<string>([...envelope, ...says]);
  return Object.fromEntries(Object.entries(rest).filter(([name]) => !ours.has(name)));
}

/** A call as its sender named it, where it has another id here: the one member that is said as it came in spite of ours. */
export function callIdOf(call_id: unknown, { rest }: Facts): unknown {
  const given = isObject(rest) ? rest.call_id : undefined;
  const isTheirs = typeof given === "string" && (!isId(given) || isMadeUp(call_id));
  return given === null || isTheirs ? given : call_id;
}

export function say(message: Facts | undefined): readonly Saying[] {
  return message === undefined ? [] : [{ message }];
}
