// Loom read into a log. Members that have no place in an event are kept in `payload.rest`, and a type that is not
// known as `x.loom.<type>`; the encoder says both again as they came.

import { malformed, RunwireError } from "../../errors.js";
import type { Draft, EventType, Facts, Scope } from "../../events.js";
import { isId } from "../../ids.js";
import { isCount, isObject } from "../../parse.js";
import { type CallsBefore, callIds } from "./calls.js";
import { foreign } from "./encode.js";
import { entered, leaving, left, noSpans, type Spans, spanFor } from "./spans.js";
import { isKeyOf, type LoomState } from "./state.js";
import { isYes } from "./tools.js";
import { envelope, hasNodeId, isName, type Word, withoutEnvelope, wordOf, wrongMembers } from "./words.js";

export interface LoomDecoder {
  /** `members` are what a message of an unknown type says, where they do not stand among those of its envelope. */
  decode(message: Facts, members?: Facts): readonly Draft[];
  /** How many runs there were so far. */
  runs(): number;
}

/** `after` is what an encoder remembers of the log that these messages go on with; without it, they begin one. */
export function loomDecoder(after?: LoomState): LoomDecoder {
  let spans: Spans = noSpans;
  let session: string | undefined;
  let calls = callIds(after && callsIn(after));
  const runs = runCount();

  function decode(message: Facts, members = withoutEnvelope(message)): readonly Draft[] {
    const { type } = message;
    if (typeof type !== "string") return replied(message);
    const word = wordOf(type);
    if (word === undefined) {
      const named = foreignType(type);
      begin(message);
      return [draftOf(named, { message: members }, message)];
    }
    const [wrong] = wrongMembers(word, message);
    if (wrong !== undefined) throw malformed(`${type}: ${wrong}`);
    begin(message);
    const last = spanFor(spans, "") ?? (after && spanFor(after.spans, ""));
    const node = typeof message.node_id === "string" ? message.node_id : last?.id;
    const payload = calls.identified(type, payloadOf(type, word, message), node ?? null);
    return [draftOf(word.means, payload, message)];
  }

  /** Nothing of one run belongs to the next. */
  function begin(message: Facts): void {
    if (!runs.begins(message)) return;
    spans = noSpans;
    session = undefined;
    // All that goes on with a log is of one run there.
    if (after === undefined) calls = callIds();
  }

  function replied(message: Facts): readonly Draft[] {
    const { reply, stop_reason } = message;
    if (typeof reply !== "string") throw malformed("a message needs a string `type`, or a string `reply`");
    begin(message);
    const isCancelled = stop_reason === "cancelled";
    const rest = unmapped(message, ["reply", ...(isCancelled ? ["stop_reason"] : [])]);
    const end = isCancelled ? { state: "aborted", reason: "cancelled" } : { state: "done", reason: null };
    return [
      { type: "message.settled", payload: { text: reply, ...rest } },
      draftOf("run.lifecycle", end, message),
    ];
  }

  /** The draft, in its node. What follows from the messages before is not written down again. */
  function draftOf(type: EventType, payload: Facts, message: Facts): Draft {
    const scope: { [id: string]: string } = {};
    // Names that are no ids here.
    const odd: { [name: string]: unknown } = {};
    const put = (name: string, value: unknown): void => {
      if (isId(value)) scope[name] = value;
      else if (value != null) odd[name] = value;
    };
    if (message.session_id != null && message.session_id !== session) put("session_id", message.session_id);
    if (typeof message.session_id === "string") session = message.session_id;
    const node_id = hasNodeId(message.type) ? message.node_id : undefined;
    if (node_id != null && node_id !== impliedNode(type, payload)) put("node_id", node_id);
    move(type, payload, node_id);
    return {
      type,
      payload: { ...payload, ...(Object.keys(odd).length === 0 ? {} : { envelope: odd }) } as never,
      ...(Object.keys(scope).length === 0 ? {} : { scope: scope as Scope }),
    };
  }

  function impliedNode(type: EventType, { id, node }: Facts): string | undefined {
    // Nodes are counted in the whole log, in which others may write meanwhile.
    if (type === "node.enter")
      return after === undefined ? entered(spans, "", String(id)).open.at(-1)?.id : undefined;
    if (type === "node.exit") return leaving(spans, "", String(id))?.id ?? spanFor(spans, "")?.id;
    return spanFor(spans, "", typeof node === "string" ? node : undefined)?.id;
  }

  function move(type: EventType, { id }: Facts, node_id: unknown): void {
    if (type === "node.enter")
      spans = entered(spans, "", String(id), typeof node_id === "string" ? node_id : undefined);
    else if (type === "node.exit") spans = left(spans, leaving(spans, "", String(id)));
  }

  /** The members of a word under our names. */
  function payloadOf(type: string, word: Word, message: Facts): Facts {
    const payload: { [member: string]: unknown } = {};
    for (const [theirs, [ours, kind]] of Object.entries(word.members)) {
      const value = Object.hasOwn(message, theirs) ? message[theirs] : undefined;
      if (value !== undefined && (value !== null || kind === "any")) payload[ours] = value;
    }
    const rest = unmapped(message, Object.keys(word.members));
    return { ...settle(type, payload, message), ...rest };
  }

  /** What is said in other terms here. */
  function settle(type: string, payload: Facts, message: Facts): Facts {
    switch (type) {
      case "message_chunk":
      case "thought_chunk": {
        // The node that speaks is known where it is the open one.
        const { node, ...bare } = payload;
        return spanFor(spans, "")?.name === node ? bare : payload;
      }
      case "usage": {
        const { total_tokens, ...bare } = payload;
        return total_tokens === Number(bare.input_tokens) + Number(bare.output_tokens) ? bare : payload;
      }
      case "tool_call":
      case "tool_approval":
        return { ...payload, input: unwrapped(payload.input) };
      case "tool_end": {
        const { output, ...bare } = payload;
        if (message.is_error === false) return { ...bare, ok: true, output, error: null };
        return { ...bare, ok: false, error: { code: "KAI-RUN-TOOL-0002", message: output } };
      }
      case "tool_approval_response": {
        // Another word beside it is kept as it came, and is no answer of its own.
        const said = isYes(message.decision) ? message.decision : "once";
        return { ...payload, decision: message.approved === true ? said : "deny", outcome: "answered" };
      }
      case "run_error":
        return { ...payload, state: "error" };
      default:
        return payload;
    }
  }

  return { decode, runs: runs.count };
}

function callsIn({ calls, made }: LoomState): CallsBefore {
  const own = Object.entries(calls).filter(([key]) => isKeyOf("", key));
  return { open: own.map(([, call]) => call), made };
}

/**
 * A `run_start` begins a run, and so does an `event_id` that begins again. Once a run has ended, what has no number is of
 * the next, and so is what has one that was before, unless it is the end itself again.
 */
function runCount(): { begins(message: Facts): boolean; count(): number } {
  let count = 0;
  let lastId: number | null = null;
  /** What ended it. */
  let end: string | null = null;

  function isNext(message: Facts, number: number | null): boolean {
    if (number === null || lastId === null) return end !== null;
    if (end === null) return number < lastId && number <= 1;
    return number < lastId || (number === lastId && end !== JSON.stringify(message));
  }

  return {
    begins(message) {
      const { type, event_id } = message;
      const number = isCount(event_id) ? event_id : null;
      const isNew = count === 0 || type === "run_start" || isNext(message, number);
      if (isNew) [count, lastId, end] = [count + 1, null, null];
      lastId = number === null ? lastId : Math.max(lastId ?? 0, number);
      if (typeof type !== "string" || type === "run_error") end ??= JSON.stringify(message);
      return isNew;
    },
    count: () => count,
  };
}

/** Arguments that were no object are in there as text. */
function unwrapped(input: unknown): unknown {
  if (!isObject(input) || Object.keys(input).join() !== "_raw" || typeof input._raw !== "string")
    return input;
  try {
    const value: unknown = JSON.parse(input._raw);
    return isObject(value) || JSON.stringify(value) !== input._raw ? input : value;
  } catch {
    return input;
  }
}

function unmapped(message: Facts, mapped: readonly string[]): { readonly rest?: Facts } {
  const known = new Set<string>([...envelope, ...mapped]);
  const rest = Object.entries(message).filter(([name, value]) => !known.has(name) && value !== null);
  return rest.length === 0 ? {} : { rest: Object.fromEntries(rest) };
}

function foreignType(type: string): EventType {
  if (isName(type)) return `${foreign}${type}` as EventType;
  throw new RunwireError("KAI-STREAM-PROTO-0002", JSON.stringify(type.slice(0, 80)));
}

export function parsed(data: string): Facts {
  let value: unknown;
  try {
    value = JSON.parse(data);
  } catch (cause) {
    throw new RunwireError("KAI-STREAM-PROTO-0001", "not JSON", { cause });
  }
  if (!isObject(value)) throw malformed("a message must be a JSON object");
  return value;
}
