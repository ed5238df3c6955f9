// A log said in Loom. Most events are one message; a run's end is the reply, or an error.

import { broughtBy } from "../../conversation.js";
import { type Event, type Facts, is, type NamedType } from "../../events.js";
import { nodeTexts } from "../../nodes.js";
import { isCount, isObject } from "../../parse.js";
import { nodesAfter, nodesBefore, stepSayings } from "./nodes.js";
import { entered, leaving, left, over, spanFor } from "./spans.js";
import { isKeyOf, isRight, type LoomState, restOf, type Said, type Saying, said, say } from "./state.js";
import { toolSaying } from "./tools.js";
import { hasNodeId, isName, withoutEnvelope, wordOf, words } from "./words.js";

/** A message, and the envelope that stands before it. */
export interface LoomMessage {
  readonly envelope: { readonly session_id?: string; readonly node_id?: string; readonly event_id: number };
  readonly message: Facts;
  /** What a type that is not known says, where no envelope stands beside it. */
  readonly members?: Facts;
}

export function speak(before: LoomState, e: Event): readonly [LoomState, readonly LoomMessage[]] {
  const turns = (e.payload as Facts).nodes === undefined ? [] : turnsOf(e);
  if (turns.length < 2) return speakOne(before, e);
  let state = before;
  const messages = turns.flatMap((turn) => {
    const [after, said] = speakOne(state, turn);
    state = after;
    return said;
  });
  return [state, messages];
}

/** What several nodes said in turns, as one event each. */
function turnsOf(e: Event): readonly Event[] {
  if (!is(e, "text.delta") && !is(e, "reasoning.delta")) return [];
  const { id, ts, type, run_id, child_id, pos, seq } = e;
  const { nodes: _, node: _first, text, envelope: given, ...payload } = e.payload;
  const { node_id: _id, ...scope } = e.scope ?? {};
  const { node_id: _odd, ...envelope } = isObject(given) ? given : {};
  let from = 0;
  return nodeTexts(e.payload, e.scope).map(({ node, node_id, chars }) => {
    const said = text.slice(from, from + chars);
    from += chars;
    return {
      ...{ id, ts, type, run_id, child_id, pos, seq },
      payload: { ...payload, envelope, text: said, ...(node === undefined ? {} : { node }) },
      scope: { ...scope, ...(node_id === undefined ? {} : { node_id }) },
    };
  });
}

function speakOne(before: LoomState, e: Event): readonly [LoomState, readonly LoomMessage[]] {
  const { session_id, node_id: named } = envelopeOf(e);
  // A stream has one session, whatever is said in its events.
  const state = before.session_id !== null || session_id === undefined ? before : { ...before, session_id };
  const [after, sayings] = inNodes(state, e);
  if (sayings.length === 0) return [after, nothing];
  let { said } = after;
  const messages = sayings.map(({ message, node_id, members }): LoomMessage => {
    said += 1;
    // A child that enters no nodes is one.
    const at = named ?? node_id ?? spanFor(after.spans, by(e), nodeOf(e))?.id ?? e.child_id ?? undefined;
    const envelope = {
      ...(after.session_id === null ? {} : { session_id: after.session_id }),
      ...(at === undefined || !hasNodeId(message.type) ? {} : { node_id: at }),
      event_id: said,
    };
    return { envelope, message, ...(members === undefined ? {} : { members }) };
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
  if (e.type.startsWith(foreign)) return [state, unknownWord(e)];
  const of = toolSaying(state, e, envelopeOf(e).node_id ?? spanFor(spans, by(e))?.id ?? null);
  if (of !== undefined) return of;
  return [state, say(plain(state, e))];
}

function begin(state: LoomState, e: Event, message: Facts | undefined): Said {
  // What a child was asked is in the call that spawned it.
  if (state.begun || e.child_id !== null) return [state, []];
  return [{ ...state, begun: true }, say(message)];
}

function asked({ run_id, payload }: Event<"turn.submitted">): Facts {
  const { agent } = payload;
  const message = broughtBy(payload).findLast(({ role }) => role === "user")?.content;
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
    const { child_id } = e;
    const models = state.models.filter((one) => one !== child_id);
    const calls = withoutRun(state.calls, child_id);
    const asks = withoutRun(state.asks, child_id);
    return [{ ...state, models, calls, asks, spans: over(state.spans, child_id) }, []];
  }
  if (now === "error") {
    const run_id = typeof e.payload.run_id === "string" ? e.payload.run_id : e.run_id;
    const error = typeof reason === "string" ? reason : "";
    const rest = restOf(e.payload, ["error", "run_id"]);
    return [state, say({ type: "run_error", error, run_id, ...rest })];
  }
  const { text, ...settled } = state.settled ?? {};
  const cancelled = now === "aborted" ? { stop_reason: "cancelled" } : {};
  const says = ["reply", ...Object.keys(cancelled)];
  const reply: Facts = {
    reply: typeof text === "string" ? text : "",
    ...cancelled,
    ...("spilled" in settled ? { spilled: settled.spilled } : {}),
    ...restOf(settled, says),
    ...restOf(e.payload, says),
  };
  return [{ ...state, settled: null }, say(reply)];
}

function withoutRun<T extends object>(all: T, by: string): T {
  return Object.fromEntries(Object.entries(all).filter(([key]) => !isKeyOf(by, key))) as T;
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
  const word = wordsByType.get(type as NamedType);
  return word === undefined ? undefined : said(word, payload);
}

/** Types that Loom may have and this table has not. */
export const foreign = "x.loom.";

/** A word that is known has an event of its own, by which alone a run begins or ends. */
function unknownWord({ type: stored, payload }: Event): readonly Saying[] {
  const type = stored.slice(foreign.length);
  if (!isName(type) || wordOf(type) !== undefined) return [];
  const { message, spilled } = payload as Facts;
  // Of one that lies beside the log nothing is left but where that is.
  const members = { ...(isObject(message) ? message : {}), ...(spilled === undefined ? {} : { spilled }) };
  return [{ message: { type, ...withoutEnvelope(members) }, members }];
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
