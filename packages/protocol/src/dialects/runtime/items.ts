// Items: what a run says and does, as a list that grows. They follow from its events: what the model thinks and says is an
// item from its first word to the end of its answer, a call from its start to its end, a plan and a failure are one each.

import { type Event, type Facts, is } from "../../events.js";
import { isFinal } from "../../state.js";
import type { Around, Derived } from "./derive.js";
import { statusWords } from "./rows.js";
import { begins, closes, itemIdOf, kindOf, type Speaking } from "./speaking.js";
import { isAgain, type RunContext } from "./state.js";

const none: Around = { before: [], after: [] };

/** What is said of items around an event's own message. */
export function itemsAround(context: RunContext, e: Event): Around {
  const { speaking, calls, plan } = context;
  const member = begins(speaking, e);
  if (member !== null) {
    const itemType = member === "message" ? "agent_message" : "reasoning";
    return { before: [started(itemIdOf(e, member), itemType)], after: [] };
  }
  const closed = closes(e) ? spoken(speaking, statusAt(e)) : [];
  if (is(e, "tool.call") || is(e, "tool.start")) {
    const { call_id, tool } = e.payload;
    if (isAgain(context, e)) return around(closed, []);
    return around(closed, [call(call_id, "started", kindOf(tool), "running", { toolName: tool })]);
  }
  if (is(e, "tool.end")) {
    const { call_id, ok } = e.payload;
    const kind = Object.hasOwn(calls, call_id) ? calls[call_id] : undefined;
    if (kind === undefined) return none;
    return around([], [call(call_id, "completed", kind, ok ? "completed" : "failed")]);
  }
  if (is(e, "message.settled") && e.payload.message_id != null)
    return around([...closed, started(e.payload.message_id, "agent_message")], []);
  if (is(e, "plan.proposal"))
    return around(e.payload.plan.id === plan ? closed : [...closed, started(e.payload.plan.id, "todo")], []);
  if (!is(e, "run.lifecycle") || !isFinal(e.payload.state)) return around(closed, []);
  const todo = plan === null ? [] : [completed(plan, "todo", statusAt(e))];
  return around([...closed, ...todo, ...failure(e)], []);
}

function failure(e: Event<"run.lifecycle">): readonly Derived[] {
  const { state, reason } = e.payload;
  if (state !== "error") return [];
  const id = `${e.id}:error`;
  const message = reason == null ? {} : { message: reason };
  return [started(id, "error"), completed(id, "error", "failed", message)];
}

function statusAt(e: Event): string {
  if (!is(e, "run.lifecycle")) return "completed";
  return e.payload.state === "redirecting" ? "cancelled" : statusWords[e.payload.state].status;
}

function spoken({ reasoning, message }: Speaking, status: string): readonly Derived[] {
  return [
    ...(reasoning === null ? [] : [completed(reasoning, "reasoning", status)]),
    ...(message === null ? [] : [completed(message, "agent_message", status)]),
  ];
}

function around(before: readonly Derived[], after: readonly Derived[]): Around {
  return before.length === 0 && after.length === 0 ? none : { before, after };
}

function started(itemId: string, itemType: string): Derived {
  return { type: "item.started", scope: {}, payload: { itemId, itemType, status: "running" } };
}

function completed(itemId: string, itemType: string, status: string, more: Facts = {}): Derived {
  return { type: "item.completed", scope: {}, payload: { itemId, itemType, status, ...more } };
}

/** A call's item has the call's id. */
function call(
  call_id: string,
  name: "started" | "completed",
  itemType: string,
  status: string,
  more: Facts = {},
): Derived {
  const payload = { itemId: call_id, itemType, status, ...more };
  return { type: `item.${name}`, scope: { tool_call_id: call_id }, payload };
}
