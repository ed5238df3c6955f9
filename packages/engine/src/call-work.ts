// Where each call of an answer stands: the calls' part of the fold.

import type { Event, Facts } from "@runwire/protocol";
import type { Call } from "./model.js";
import { type Opened, openAfter } from "./opened.js";

export interface CallWork extends Call {
  readonly status: "called" | "running" | "ended";
  readonly ok: boolean;
  readonly output: unknown;
  readonly approval: Ask | null;
  readonly question: Ask | null;
  /** The child that it spawned. */
  readonly child_id: string | null;
  /** What it has begun and not ended. */
  readonly open: readonly Opened[];
  /** Whether something of its input is not kept, so that nobody knows what it was. */
  readonly redacted: boolean;
}

/** What stands in the log for an input of which nothing may be kept because it could not be read. */
export const unreadable = "[unreadable]";

/** A request to people that belongs to a call. */
export interface Ask {
  readonly id: string;
  readonly resolved: Facts | null;
}

export function newCall(call: Call, redacted: boolean): CallWork {
  return {
    ...call,
    status: "called",
    ok: false,
    output: null,
    approval: null,
    question: null,
    child_id: null,
    open: [],
    redacted,
  };
}

/** Whether the server took something out of what the event says. */
export function isRedacted(payload: Facts): boolean {
  return payload.redacted !== undefined;
}

export function withCall(
  calls: readonly CallWork[],
  call_id: unknown,
  more: Partial<CallWork>,
): readonly CallWork[] {
  return calls.map((call) => (call.call_id === call_id ? { ...call, ...more } : call));
}

export function withOpened(calls: readonly CallWork[], event: Event): readonly CallWork[] {
  const call = calls.find(({ call_id }) => call_id === event.scope?.tool_call_id);
  return call === undefined ? calls : withCall(calls, call.call_id, { open: openAfter(call.open, event) });
}

/** The first answer stands. */
export function withAnswer(
  calls: readonly CallWork[],
  kind: "approval" | "question",
  id: string,
  resolved: Facts,
): readonly CallWork[] {
  return calls.map((call) => {
    const ask = call[kind];
    return ask?.id === id && ask.resolved === null ? { ...call, [kind]: { id, resolved } } : call;
  });
}
