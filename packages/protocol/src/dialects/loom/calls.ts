// Which call a message about a tool means. Where it has a `call_id`, that says so. Otherwise its tool does, how far each
// call has got, and where it was spoken of:
//
//   tool_call_chunk                          the arguments that were begun last
//   tool_call, tool_approval, tool_start     the oldest call that has not got there yet
//   tool_output, tool_end                    the one that has got furthest, the oldest of several

import type { Facts } from "../../events.js";
import { isId } from "../../ids.js";
import { limits } from "../../limits.js";
import { isObject } from "../../parse.js";

export interface OpenCall {
  /** What its sender calls it; null where it has no name. */
  readonly named: string | null;
  readonly tool: string | null;
  /** Where it was spoken of last. */
  readonly node: string | null;
  readonly stage: number;
}

/** What a message tells of the call that it means. */
export type Clues = Omit<OpenCall, "stage"> & { readonly type: string };

/** How far a call has got with each word about it. */
export const stages: { readonly [type: string]: number } = {
  tool_call_chunk: 1,
  tool_call: 2,
  tool_approval: 3,
  tool_approval_response: 4,
  tool_start: 5,
  tool_output: 5,
  tool_end: 6,
};

/** A `call_id`; an empty one names nothing. */
export function nameIn(call_id: unknown): string | null {
  return typeof call_id === "string" && call_id !== "" ? call_id : null;
}

/** Of the open calls, in the order in which they were opened; undefined where another begins. */
export function callMeant<C extends OpenCall>(open: readonly C[], clues: Clues): C | undefined {
  const { type, named, tool, node } = clues;
  if (named !== null) return open.find((one) => one.named === named) ?? argumentsFor(open, clues);
  const fitting = open.filter((one) => tool === null || one.tool === null || one.tool === tool);
  const ripe = fitting.filter(ripeFor(type, fitting));
  const near = ripe.filter((one) => one.node === node);
  if (type !== "tool_call_chunk") return near[0] ?? ripe[0];
  // Arguments that name their tool may be the first of a call; those that do not go on with some.
  return near.at(-1) ?? (tool === null ? ripe.at(-1) : undefined);
}

/** Arguments that came without a name, of a call that now comes with one. */
function argumentsFor<C extends OpenCall>(open: readonly C[], { type, tool, node }: Clues): C | undefined {
  if (type !== "tool_call" && type !== "tool_approval" && type !== "tool_start") return undefined;
  return open.findLast(
    (one) =>
      one.named === null &&
      one.stage === stages.tool_call_chunk &&
      one.node === node &&
      (one.tool === null || one.tool === tool),
  );
}

/** Whether a call has got so far that this may be its next message. */
function ripeFor(type: string, calls: readonly OpenCall[]): (call: OpenCall) => boolean {
  const reached = stages[type] ?? 0;
  switch (type) {
    case "tool_call_chunk":
      return ({ stage }) => stage === reached;
    case "tool_approval_response":
      return ({ stage }) => stage === stages.tool_approval;
    case "tool_output":
    case "tool_end": {
      const furthest = Math.max(...calls.map(({ stage }) => stage));
      return ({ stage }) => stage === furthest;
    }
    default:
      return ({ stage }) => stage < reached;
  }
}

export interface IdentifiedCall extends OpenCall {
  /** What it is called here. */
  readonly id: string;
}

/** What the ids begin with that are made up here. */
const madeUp = "loom:";

export function isMadeUp(id: unknown): boolean {
  return typeof id === "string" && id.startsWith(madeUp);
}

/** The number of an id that was made up for a call without a name; 0 for any other. */
export function numberIn(id: string): number {
  return /^loom:[0-9]{1,15}$/.test(id) ? Number(id.slice(madeUp.length)) : 0;
}

/** Calls that are open in a run, and the highest number that was made up for one. */
export interface CallsBefore {
  readonly open: readonly IdentifiedCall[];
  readonly made: number;
}

/** Ids for the calls of a run: those they came with, and others where they had none or one that is no id here. */
export function callIds(before: CallsBefore = { open: [], made: 0 }): {
  identified(type: string, payload: Facts, node: string | null): Facts;
} {
  const open = [...before.open];
  let count = before.made;

  function idOf(named: string | null): string {
    if (named !== null) return isId(named) ? named : idFor(named);
    count += 1;
    return `${madeUp}${count}`;
  }

  function follow(known: IdentifiedCall | undefined, id: string, { type, named, tool, node }: Clues): void {
    const call: IdentifiedCall = {
      id,
      named: known?.named ?? named,
      tool: tool ?? known?.tool ?? null,
      node,
      stage: Math.max(stages[type] ?? 0, known?.stage ?? 0),
    };
    const at = known === undefined ? open.length : open.indexOf(known);
    open.splice(at, 1, ...(type === "tool_end" ? [] : [call]));
    // Nobody need ever end a call that was only told of.
    if (open.length > limits.openCallsMax) open.shift();
  }

  return {
    identified(type, payload, node) {
      if (!Object.hasOwn(stages, type)) return payload;
      const isAnswer = type === "tool_approval_response";
      const given = isAnswer ? payload.approval_id : payload.call_id;
      const tool = typeof payload.tool === "string" ? payload.tool : null;
      const clues: Clues = { type, named: nameIn(given), tool, node };
      const known = callMeant(open, clues);
      const id = known?.id ?? idOf(clues.named);
      // What is answered may have been asked in a request before this one.
      if (known !== undefined || !isAnswer) follow(known, id, clues);
      return {
        ...payload,
        ...(isAnswer ? {} : { call_id: id }),
        ...(isAnswer || type === "tool_approval" ? { approval_id: id } : {}),
        ...(given === id ? {} : { rest: withGiven(payload.rest, given) }),
      };
    },
  };
}

/** With what stood there instead, or that nothing did. */
function withGiven(rest: unknown, given: unknown): Facts {
  return { ...(isObject(rest) ? rest : {}), call_id: given ?? null };
}

/** The same for the same name, also in the next request, which knows nothing of this one. */
function idFor(name: string): string {
  let [one, other] = [0x811c9dc5, 0xc9dc5811];
  for (let i = 0; i < name.length; i++) {
    one = Math.imul(one ^ name.charCodeAt(i), 0x01000193);
    other = Math.imul(other ^ name.charCodeAt(i), 0x85ebca6b);
    other ^= other >>> 13;
  }
  return `${madeUp}x${[one, other].map((part) => (part >>> 0).toString(16).padStart(8, "0")).join("")}`;
}
