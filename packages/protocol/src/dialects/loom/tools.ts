// Calls of tools, from their first argument to their end, and what people are asked about them.

import { elsewhere } from "../../elsewhere.js";
import { type Event, type Facts, is } from "../../events.js";
import { remembering } from "../../folding.js";
import { limits } from "../../limits.js";
import { isObject } from "../../parse.js";
import { nameIn } from "./calls.js";
import { callIdOf, type LoomState, restOf, type Said, said, say } from "./state.js";

/** Of a run and those below it. Nobody need ever end a call that was only told of. */
const callsMax = limits.openCallsMax;

/** What is said of tools, with what is remembered of the open ones. */
export function toolSaying(state: LoomState, e: Event): Said | undefined {
  const { tools, asks } = state;
  const named = (payload: Facts): Facts => {
    const call_id = String(payload.call_id);
    const isKnown = payload.tool === undefined && Object.hasOwn(tools, call_id);
    return isKnown ? { ...payload, tool: tools[call_id] } : payload;
  };
  const remember = (payload: Facts): LoomState =>
    typeof payload.tool === "string"
      ? { ...state, tools: remembering(tools, String(payload.call_id), payload.tool, callsMax) }
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
    // The answer names the call as the question does.
    const name = nameIn(callIdOf(call_id, e.payload)) ?? call_id;
    const asking = { ...remember(e.payload), asks: remembering(asks, approval_id, name, callsMax) };
    return [asking, say(said("tool_approval", withObject(named(e.payload))))];
  }
  if (is(e, "approval.resolved")) {
    const { approval_id, decision, reason } = e.payload;
    const { [approval_id]: call_id, ...open } = asks;
    if (!Object.hasOwn(asks, approval_id)) return [state, []];
    const approved = decision !== "deny";
    const message: Facts = {
      type: "tool_approval_response",
      call_id: callIdOf(call_id, e.payload) ?? call_id,
      approved,
      ...(typeof reason === "string" ? { reason } : {}),
      ...(approved && decision !== "once" ? { decision } : {}),
      ...restOf(e.payload, ["call_id", "approved", "reason"]),
    };
    return [{ ...state, asks: open }, say(message)];
  }
  return undefined;
}

/** A result is a text, and so is an error. */
function ended(payload: Facts): Facts | undefined {
  const { ok, output, error, preview, tool = "", blob_ref, rest } = payload;
  const failure = isObject(error) ? (error.message ?? error.code) : error;
  // Where the result lies elsewhere, it is shown by how it begins.
  const result = ok === false ? failure : (output ?? preview ?? elsewhere(payload, "output")?.preview);
  return said("tool_end", {
    ...payload,
    tool,
    output: typeof result === "string" ? result : result == null ? "" : JSON.stringify(result),
    ok: ok === false,
    rest: { ...(blob_ref === undefined ? {} : { blob_ref }), ...(isObject(rest) ? rest : {}) },
  });
}

/** Arguments are an object; what is none is kept as its text, and what lies elsewhere is shown by how that begins. */
function withObject(payload: Facts): Facts {
  const { input } = payload;
  const where = elsewhere(payload, "input");
  if (where !== undefined) return { ...payload, input: { _raw: where.preview } };
  if (isObject(input)) return payload;
  return { ...payload, input: input === undefined ? {} : { _raw: JSON.stringify(input) } };
}
