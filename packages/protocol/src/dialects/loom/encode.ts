// A log said in Loom. Most events are one message; a run's end is the reply, or an error.

import { type Event, type Facts, is, type NamedType } from "../../events.js";
import { isObject } from "../../parse.js";
import { nodesAfter, nodesBefore, stepSayings } from "./nodes.js";
import { entered, leaving, left, noSpans, over, type Spans, spanFor } from "./spans.js";
import { hasNodeId, isCount, wordOf, words, wrongMembers } from "./words.js";

export interface LoomState {
  /** The last `event_id`. */
  readonly said: number;
  readonly session_id: string | null;
  /** Whether `run_start` was said. */
  readonly begun: boolean;
  readonly spans: Spans;
  /** Producers that have told of their model. */
  readonly models: readonly string[];
  /** Tools by call, and calls by approval, for as long as they are open. */
  readonly tools: { readonly [call_id: string]: string };
  readonly asks: { readonly [approval_id: string]: string };
  /** What the reply will be. */
  readonly settled: Facts | null;
}

export const firstState: LoomState = {
  said: 0,
  session_id: null,
  begun: false,
  spans: noSpans,
  models: [],
  tools: {},
  asks: {},
  settled: null,
};

/** A message without its envelope, and the node it is said in where it is not the usual one. */
interface Saying {
  readonly message: Facts;
  readonly node_id?: string | undefined;
}

type Said = readonly [LoomState, readonly Saying[]];

/** A message, and the envelope that stands before it. */
export interface LoomMessage {
  readonly envelope: { readonly session_id?: string; readonly node_id?: string; readonly event_id: number };
  readonly message: Facts;
}

export function speak(before: LoomState, e: Event): readonly [LoomState, readonly LoomMessage[]] {
  const { session_id, node_id: named } = envelopeOf(e);
  const state = session_id === undefined ? before : { ...before, session_id };
  const [after, sayings] = inNodes(state, e);
  if (sayings.length === 0) return [after, nothing];
  let { said } = after;
  const messages = sayings.map(({ message, node_id }): LoomMessage => {
    said += 1;
    // A child that enters no nodes is one.
    const at = named ?? node_id ?? spanFor(after.spans, by(e), nodeOf(e))?.id ?? e.child_id ?? undefined;
    const envelope = {
      ...(after.session_id === null ? {} : { session_id: after.session_id }),
      ...(at === undefined || !hasNodeId(message.type) ? {} : { node_id: at }),
      event_id: said,
    };
    return { envelope, message };
  });
  return [{ ...after, said }, messages];
}

const nothing: readonly LoomMessage[] = [];

/** With the nodes that follow from what the producer tells of its model. */
function inNodes(state: LoomState, e: Event): Said {
  const [before, begins] = nodesBefore(state, e);
  const [said, sayings] = sayingsOf({ ...state, ...before }, e);
  const [after, ends] = nodesAfter(said, e);
  return [{ ...said, ...after }, [...begins, ...sayings, ...ends]];
}

function sayingsOf(state: LoomState, e: Event): Said {
  const { spans } = state;
  if (is(e, "run.lifecycle")) return lifecycle(state, e);
  if (is(e, "turn.submitted")) {
    const { session_id } = e.payload;
    const known = typeof session_id === "string" && state.session_id === null ? session_id : state.session_id;
    return begin({ ...state, session_id: known }, e, asked(e));
  }
  if (is(e, "turn.started")) return begin(state, e, said("run_start", e.payload));
  if (is(e, "node.enter")) {
    const { id } = e.payload;
    if (typeof id !== "string") return [state, []];
    const inside = { ...state, spans: entered(spans, by(e), id, envelopeOf(e).node_id) };
    return [inside, say(said("node_enter", e.payload))];
  }
  if (is(e, "node.exit")) {
    const message = said("node_exit", e.payload);
    if (message === undefined) return [state, []];
    const span = leaving(spans, by(e), String(e.payload.id));
    return [{ ...state, spans: left(spans, span) }, [{ message, node_id: span?.id }]];
  }
  if (is(e, "step.boundary")) {
    const node = spanFor(spans, by(e))?.name ?? "step";
    const told = stepSayings(e, state.session_id, node).filter(isRight);
    return [state, told.map((message) => ({ message }))];
  }
  if (is(e, "message.settled")) {
    return e.child_id === null ? [{ ...state, settled: e.payload }, []] : [state, []];
  }
  const of = toolSaying(state, e);
  if (of !== undefined) return of;
  return [state, say(plain(state, e))];
}

function begin(state: LoomState, e: Event, message: Facts | undefined): Said {
  // What a child was asked is in the call that spawned it.
  if (state.begun || e.child_id !== null) return [state, []];
  return [{ ...state, begun: true }, say(message)];
}

function asked({ run_id, payload }: Event<"turn.submitted">): Facts {
  const { messages, agent } = payload;
  const last = Array.isArray(messages)
    ? messages.findLast((one) => isObject(one) && one.role === "user")
    : null;
  const message: unknown = isObject(last) ? last.content : null;
  return {
    type: "run_start",
    run_id,
    ...(typeof message === "string" ? { message } : {}),
    ...(typeof agent === "string" ? { agent } : {}),
  };
}

function lifecycle(state: LoomState, e: Event<"run.lifecycle">): Said {
  const { state: now, reason } = e.payload;
  if (now !== "done" && now !== "aborted" && now !== "error") return [state, []];
  if (e.child_id !== null) {
    const models = state.models.filter((one) => one !== e.child_id);
    return [{ ...state, models, spans: over(state.spans, e.child_id) }, []];
  }
  if (now === "error") {
    const { run_id = e.run_id } = e.payload;
    const error = typeof reason === "string" ? reason : "";
    return [state, say({ type: "run_error", error, run_id, ...restOf(e.payload) })];
  }
  const { text, ...settled } = state.settled ?? {};
  const reply: Facts = {
    reply: typeof text === "string" ? text : "",
    ...(now === "aborted" ? { stop_reason: "cancelled" } : {}),
    ...("spilled" in settled ? { spilled: settled.spilled } : {}),
    ...restOf(settled),
    ...restOf(e.payload),
  };
  return [{ ...state, settled: null }, say(reply)];
}

/** What is said of tools, with what is remembered of the open ones. */
function toolSaying(state: LoomState, e: Event): Said | undefined {
  const { tools, asks } = state;
  const named = (payload: Facts): Facts => {
    const call_id = String(payload.call_id);
    const isKnown = payload.tool === undefined && Object.hasOwn(tools, call_id);
    return isKnown ? { ...payload, tool: tools[call_id] } : payload;
  };
  const remember = (payload: Facts): LoomState =>
    typeof payload.tool === "string"
      ? { ...state, tools: { ...tools, [String(payload.call_id)]: payload.tool } }
      : state;

  if (is(e, "tool.args.delta")) return [remember(e.payload), say(said("tool_call_chunk", e.payload))];
  if (is(e, "tool.call")) return [remember(e.payload), say(said("tool_call", withObject(e.payload)))];
  if (is(e, "tool.start")) {
    const { payload } = e;
    // Who never said what was called says it now.
    const isNew = !Object.hasOwn(tools, payload.call_id) && payload.input !== undefined;
    const { rest: _, ...bare } = payload;
    const called = isNew ? say(said("tool_call", withObject(bare))) : [];
    return [remember(payload), [...called, ...say(said("tool_start", payload))]];
  }
  // What a tool says is stored once, as its text.
  if (is(e, "tool.output") || (is(e, "text.delta") && e.payload.call_id != null))
    return [state, say(said("tool_output", named(e.payload)))];
  if (is(e, "tool.end")) {
    const { [e.payload.call_id]: _, ...open } = tools;
    return [{ ...state, tools: open }, say(ended(named(e.payload)))];
  }
  if (is(e, "approval.requested")) {
    const { approval_id, call_id } = e.payload;
    if (call_id == null) return [state, []];
    const asking = { ...remember(e.payload), asks: { ...asks, [approval_id]: call_id } };
    return [asking, say(said("tool_approval", withObject(named(e.payload))))];
  }
  if (is(e, "approval.resolved")) {
    const { approval_id, decision, reason } = e.payload;
    const { [approval_id]: call_id, ...open } = asks;
    if (!Object.hasOwn(asks, approval_id)) return [state, []];
    const approved = decision !== "deny";
    const message: Facts = {
      type: "tool_approval_response",
      call_id,
      approved,
      ...(typeof reason === "string" ? { reason } : {}),
      ...(approved && decision !== "once" ? { decision } : {}),
      ...restOf(e.payload),
    };
    return [{ ...state, asks: open }, say(message)];
  }
  return undefined;
}

/** A result is a text, and so is an error. */
function ended(payload: Facts): Facts | undefined {
  const { ok, output, error, tool = "", blob_ref } = payload;
  const failure = isObject(error) ? (error.message ?? error.code) : error;
  const result = ok === false ? failure : output;
  return said("tool_end", {
    ...payload,
    tool,
    output: typeof result === "string" ? result : result == null ? "" : JSON.stringify(result),
    ok: ok === false,
    rest: { ...(blob_ref === undefined ? {} : { blob_ref }), ...restOf(payload) },
  });
}

/** Arguments are an object; what is none is kept as its text. */
function withObject(payload: Facts): Facts {
  const { input } = payload;
  if (isObject(input)) return payload;
  return { ...payload, input: input === undefined ? {} : { _raw: JSON.stringify(input) } };
}

/** People are asked through `custom`, as there is no word for it. */
const inCustom: ReadonlySet<string> = new Set(["clarify.requested", "clarify.resolved", "plan.proposal"]);

const wordsByType = new Map<NamedType, string>(
  Object.entries(words).map(([type, { means }]) => [means, type]),
);

function plain(state: LoomState, e: Event): Facts | undefined {
  const { type, payload } = e;
  if (type === "text.delta" || type === "reasoning.delta") {
    const node = nodeOf(e) ?? spanFor(state.spans, by(e))?.name ?? "think";
    return said(type === "text.delta" ? "message_chunk" : "thought_chunk", { ...payload, node });
  }
  if (type === "usage") {
    const { input_tokens, output_tokens, total_tokens } = payload as Facts;
    const [input, output] = [input_tokens, output_tokens].map((count) => (isCount(count) ? count : 0)) as [
      number,
      number,
    ];
    const total = isCount(total_tokens) ? total_tokens : input + output;
    return said("usage", { ...payload, input_tokens: input, output_tokens: output, total_tokens: total });
  }
  if (inCustom.has(type)) return { type: "custom", value: { ...payload, type } };
  if (type.startsWith(foreign)) {
    const { message } = payload as Facts;
    return { type: type.slice(foreign.length), ...(isObject(message) ? message : {}), ...restOf(payload) };
  }
  const word = wordsByType.get(type as NamedType);
  return word === undefined ? undefined : said(word, payload);
}

/** Types that Loom may have and this table has not. */
export const foreign = "x.loom.";

/** The word for a payload; undefined where the payload lacks what the word needs. */
function said(type: string, payload: Facts): Facts | undefined {
  const word = words[type];
  if (word === undefined) return undefined;
  const members: { [member: string]: unknown } = {};
  for (const [theirs, [ours]] of Object.entries(word.members)) {
    const value = Object.hasOwn(payload, ours) ? payload[ours] : undefined;
    if (value !== undefined) members[theirs] = value;
  }
  if (payload.spilled !== undefined) members.spilled = payload.spilled;
  const message: Facts = { type, ...members, ...restOf(payload) };
  return isRight(message) ? message : undefined;
}

function isRight(message: Facts): boolean {
  const word = wordOf(message.type);
  return word !== undefined && wrongMembers(word, message).length === 0;
}

/** Members that came from Loom without being ours. */
function restOf({ rest }: Facts): Facts {
  return isObject(rest) ? rest : {};
}

function say(message: Facts | undefined): readonly Saying[] {
  return message === undefined ? [] : [{ message }];
}

/** What the sender of a message put before it, as far as it does not follow from what it sent before. */
function envelopeOf({ scope, payload }: Event): { session_id?: string; node_id?: string } {
  const { envelope } = payload as Facts;
  const strings = isObject(envelope)
    ? Object.fromEntries(Object.entries(envelope).filter(([, value]) => typeof value === "string"))
    : {};
  return { ...strings, ...scope };
}

function by({ child_id }: Event): string {
  return child_id ?? "";
}

function nodeOf({ payload }: Event): string | undefined {
  const { node } = payload as Facts;
  return typeof node === "string" ? node : undefined;
}
