// Calls of tools, from their first argument to their end, and what people are asked about them.

import { elsewhere } from "../../elsewhere.js";
import { type Event, type Facts, is } from "../../events.js";
import { remembering } from "../../folding.js";
import { limits } from "../../limits.js";
import { isObject } from "../../parse.js";
import { type IdentifiedCall, nameIn, numberIn, stages } from "./calls.js";
import { callIdOf, keyOf, type LoomState, restOf, type Said, said, say } from "./state.js";

/** Of a run and those below it. Nobody need ever end a call that was only told of. */
const callsMax = limits.openCallsMax;

/** What is said of tools, with what is remembered of the open ones. `node` is where it is said. */
export function toolSaying(state: LoomState, e: Event, node: string | null): Said | undefined {
  const { calls, asks } = state;
  const by = e.child_id ?? "";
  const known = (call_id: unknown): IdentifiedCall | undefined => calls[keyOf(by, String(call_id))];
  const named = (payload: Facts): Facts => {
    const tool = payload.tool === undefined ? known(payload.call_id)?.tool : undefined;
    return tool == null ? payload : { ...payload, tool };
  };
  const following = (type: string, payload: Facts): LoomState => {
    const { call_id: id } = payload;
    if (typeof id !== "string") return state;
    const before = known(id);
    const told = typeof payload.tool === "string" ? payload.tool : null;
    // What is said of a call after its end does not open it again.
    if (before === undefined && told === null && type !== "tool_call_chunk") return state;
    const call: IdentifiedCall = {
      id,
      named: before?.named ?? nameIn(callIdOf(id, payload)),
      tool: told ?? before?.tool ?? null,
      node,
      stage: Math.max(stages[type] ?? 0, before?.stage ?? 0),
    };
    // Almost every delta.
    if (before?.stage === call.stage && before.node === node && before.tool === call.tool) return state;
    const made = Math.max(state.made, numberIn(id));
    return { ...state, made, calls: remembering(calls, keyOf(by, id), call, callsMax) };
  };

  if (is(e, "tool.args.delta"))
    return [following("tool_call_chunk", e.payload), say(said("tool_call_chunk", e.payload))];
  if (is(e, "tool.call"))
    return [following("tool_call", e.payload), say(said("tool_call", withObject(e.payload)))];
  if (is(e, "tool.start")) {
    const { payload } = e;
    // Who never said what was called says it now.
    const isNew = known(payload.call_id)?.tool == null && payload.input !== undefined;
    const { rest: _, ...bare } = payload;
    const called = isNew ? say(said("tool_call", withObject(bare))) : [];
    return [following("tool_start", payload), [...called, ...say(said("tool_start", payload))]];
  }
  // What a tool says is stored once, as its text.
  if (is(e, "tool.output") || (is(e, "text.delta") && e.payload.call_id != null))
    return [following("tool_output", e.payload), say(said("tool_output", named(e.payload)))];
  if (is(e, "tool.end")) {
    const { [keyOf(by, e.payload.call_id)]: _, ...open } = calls;
    const made = Math.max(state.made, numberIn(e.payload.call_id));
    return [{ ...state, made, calls: open }, say(ended(named(e.payload)))];
  }
  if (is(e, "approval.requested")) {
    const { approval_id, call_id } = e.payload;
    if (call_id == null) return [state, []];
    // The answer names the call as the question does.
    const name = nameIn(callIdOf(call_id, e.payload)) ?? call_id;
    const asking = remembering(asks, keyOf(by, approval_id), { call_id, name }, callsMax);
    const after = { ...following("tool_approval", e.payload), asks: asking };
    return [after, say(said("tool_approval", withObject(named(e.payload))))];
  }
  if (is(e, "approval.resolved")) {
    const { approval_id, decision, reason } = e.payload;
    const { [keyOf(by, approval_id)]: ask, ...open } = asks;
    if (ask === undefined) return [state, []];
    const approved = isYes(decision);
    const message: Facts = {
      type: "tool_approval_response",
      call_id: callIdOf(ask.name, e.payload) ?? ask.name,
      approved,
      ...(typeof reason === "string" ? { reason } : {}),
      ...(decision === (approved ? "once" : "deny") ? {} : { decision }),
      ...restOf(e.payload, ["call_id", "approved", "reason"]),
    };
    const { call_id } = ask;
    return [{ ...following("tool_approval_response", { call_id }), asks: open }, say(message)];
  }
  return undefined;
}

/** Other protocols have words of their own for an answer. Whatever is not a yes is a no. */
export function isYes(decision: unknown): boolean {
  return decision === "once" || decision === "session" || decision === "always" || decision === "approve";
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
