// The meaning of a stream, written once: snapshots, status pages, forks, the console and the SDKs all come
// from this fold. It never erases an unresolved request or a failed tool call.

import { elsewhere } from "./elsewhere.js";
import {
  type AnyEvent,
  type Event,
  type Facts,
  flowOf,
  is,
  type TextDelta,
  type ToolError,
} from "./events.js";
import { type Mine, mineOf, namesIn, newFold, withItem, withMember, withoutMember } from "./folding.js";
import { doing, openTasks, type Tasks, tasksDoing, tasksEnded, tasksTold } from "./tasks.js";
import { emptyTranscript, type Part, type ToolCall, type Transcript } from "./transcript.js";
import { addedUsage } from "./usage.js";

export function reduce(t: Transcript, e: Event): Transcript {
  return reduceIn(null, t, [e]);
}

/** The same for many events at once, at a cost that grows with their number and not with its square. */
export function reduceAll(t: Transcript, events: readonly Event[]): Transcript {
  return reduceIn(newFold(), t, events);
}

function reduceIn(mine: Mine | null, t: Transcript, events: readonly Event[]): Transcript {
  let next = t;
  const moved = new Set<string | null>();
  for (const e of events) {
    // Descendants of every level are kept here, side by side, so a spawn is noted here whoever said it.
    const known = is(e, "child.spawn")
      ? spawned(mine, next, e.payload.child_id, e.child_id ?? t.run_id)
      : next;
    next = fold(mine, known, e);
    if (flowOf(e.type) !== "control") continue;
    moved.add(e.child_id);
    const tasks = tasksEnded(mine, tasksTold(mine, next.tasks, e), e);
    if (tasks !== next.tasks) next = { ...next, tasks };
  }
  // What a run does is told of its tasks once: in between nobody sees it.
  for (const child_id of moved) {
    const tasks = tasksNow(mine, next, child_id);
    if (tasks !== next.tasks) next = { ...next, tasks };
  }
  return next;
}

function tasksNow(mine: Mine | null, t: Transcript, child_id: string | null): Tasks {
  const run = child_id === null ? t : t.children[child_id]?.transcript;
  if (run === undefined || openTasks(mine, t.tasks, run.run_id).length === 0) return t.tasks;
  const pending = (requests: Transcript["approvals"] | Transcript["clarifications"]): number =>
    Object.values(requests).filter(({ status }) => status === "pending").length;
  const now = doing(run.state, pending(run.approvals), pending(run.clarifications));
  return tasksDoing(mine, t.tasks, run.run_id, now);
}

function fold(mine: Mine | null, t: Transcript, e: Event): Transcript {
  const { pos, seq } = e;
  if (e.child_id === null) return { ...own(mine, t, e), pos, seq };
  const known = Object.hasOwn(t.children, e.child_id) ? t.children[e.child_id] : undefined;
  const child = known ?? { parent_id: t.run_id, transcript: emptyTranscript(e.child_id) };
  const transcript = { ...own(mine, child.transcript, e), pos, seq };
  return { ...t, pos, seq, children: withMember(mine, t.children, e.child_id, { ...child, transcript }) };
}

/** An event that the transcript's run itself produced. */
function own(mine: Mine | null, t: Transcript, event: Event): Transcript {
  const e = event as AnyEvent;
  const part = (item: Part): Transcript["parts"] => withItem(mine, t.parts, item);
  switch (e.type) {
    case "text.delta":
      if (e.payload.call_id != null) return stream(mine, t, e.payload, "text");
      return { ...say(mine, t, "text", e.payload.text), message: t.message + e.payload.text };
    case "reasoning.delta":
      return e.payload.call_id != null
        ? stream(mine, t, e.payload, "reasoning")
        : say(mine, t, "reasoning", e.payload.text);
    case "tool.args.delta":
      return stream(mine, t, e.payload, "arguments");
    case "model.requested":
    case "model.failed":
      return withoutUnfinished(mine, t);
    case "tool.output":
      return stream(mine, t, e.payload, "streamed");
    case "tool.call": {
      const { call_id, tool: name } = e.payload;
      return card(mine, t, call_id, (call) => ({
        tool: name,
        status: call.status === "writing" ? "called" : call.status,
      }));
    }
    case "tool.start": {
      const { call_id, tool: name, input, skill_id } = e.payload;
      return card(mine, t, call_id, (call) => ({
        tool: name,
        status: call.status === "failed" ? "failed" : "running",
        started_at: e.ts,
        ...(input === undefined ? {} : { input, ...spilledIn(call, e.payload, "input") }),
        ...(skill_id == null ? {} : { skill_id }),
      }));
    }
    case "tool.end": {
      const { call_id, ok, output, error, duration_ms, blob_ref } = e.payload;
      return card(mine, t, call_id, (call) => ({
        status: ok && call.status !== "failed" ? "ok" : "failed",
        ended_at: e.ts,
        ...(output === undefined ? {} : { output }),
        ...(error == null
          ? {}
          : { error: typeof error === "string" ? ({ code: error } as ToolError) : error }),
        ...(duration_ms == null ? {} : { duration_ms }),
        ...(blob_ref == null ? {} : { blob_ref }),
        ...spilledIn(call, e.payload, "output"),
      }));
    }
    case "step.boundary": {
      const { step_index, step_kind, checkpoint_id, plan_steps } = e.payload;
      const step = {
        ...{ step_index, step_kind, pos: e.pos, seq: e.seq, ts: e.ts },
        ...(checkpoint_id == null ? {} : { checkpoint_id }),
        ...(plan_steps == null ? {} : { plan_steps }),
      };
      return { ...t, steps: withItem(mine, t.steps, step), parts: part({ kind: "step", step_index }) };
    }
    case "child.spawn": {
      return { ...t, parts: part({ kind: "child", child_id: e.payload.child_id }) };
    }
    case "plan.proposal": {
      const { plan } = e.payload;
      return { ...t, plan, parts: part({ kind: "plan", plan_id: plan.id }) };
    }
    case "run.lifecycle":
      return { ...t, state: e.payload.state, reason: e.payload.reason ?? null };
    case "control.requested":
      // A pause for its own sake, of what its parent's had paused: no change of the state tells of it.
      if (e.payload.action !== "pause" || t.state !== "paused") return t;
      return { ...t, reason: typeof e.payload.reason === "string" ? e.payload.reason : null };
    case "message.settled":
      return { ...t, message: "", settled: withItem(mine, t.settled, e.payload) };
    case "title":
      return { ...t, title: e.payload.title };
    case "suggestions":
      return { ...t, suggestions: e.payload.suggestions };
    case "approval.requested": {
      const { approval_id } = e.payload;
      // One that is asked again is the same: its answer stands.
      if (Object.hasOwn(t.approvals, approval_id)) return t;
      const asked = { asked: e.payload, status: "pending" as const };
      const approvals = withMember<Transcript["approvals"][string]>(mine, t.approvals, approval_id, asked);
      return { ...t, approvals, parts: part({ kind: "approval", approval_id }) };
    }
    case "approval.resolved": {
      const { approval_id } = e.payload;
      return { ...t, approvals: answered(mine, t.approvals, approval_id, e.payload) };
    }
    case "clarify.requested": {
      const { clarify_id } = e.payload;
      if (Object.hasOwn(t.clarifications, clarify_id)) return t;
      const asked = { asked: e.payload, status: "pending" as const };
      const clarifications = withMember<Transcript["clarifications"][string]>(
        mine,
        t.clarifications,
        clarify_id,
        asked,
      );
      return { ...t, clarifications, parts: part({ kind: "clarify", clarify_id }) };
    }
    case "clarify.resolved": {
      const { clarify_id } = e.payload;
      return { ...t, clarifications: answered(mine, t.clarifications, clarify_id, e.payload) };
    }
    case "steer.accepted":
      return { ...t, steers: withItem(mine, t.steers, { text: e.payload.text, status: "accepted" }) };
    case "steer.delivered":
      return { ...t, steers: withItem(mine, t.steers, { text: e.payload.text, status: "delivered" }) };
    case "steer.leftover":
      return { ...t, steers: withItem(mine, t.steers, { text: e.payload.text, status: "leftover" }) };
    case "usage":
      return { ...t, usage: addedUsage(mine, t.usage, e.payload) };
    case "state.values":
      return { ...t, values: e.payload };
    case "turn.submitted":
      return { ...t, asked: t.asked ?? e.payload };
    default:
      // Facts of other protocols change no transcript; dialects read them from the log.
      return t;
  }
}

function say(mine: Mine | null, t: Transcript, kind: "text" | "reasoning", text: string): Transcript {
  if (text === "") return t;
  const last = t.parts.at(-1);
  if (last?.kind === "block") {
    const parts = mineOf<Part[]>(mine, t.parts as Part[]) as Part[];
    parts[parts.length - 1] = { ...last, [kind]: last[kind] + text };
    return { ...t, parts };
  }
  const block = { kind: "block" as const, reasoning: "", text: "", [kind]: text };
  return { ...t, parts: withItem(mine, t.parts, block) };
}

/**
 * A delta of a call. It adds no part, because shaping may move it against other deltas, and each type has
 * a member of its own for the same reason.
 */
function stream(
  mine: Mine | null,
  t: Transcript,
  { call_id, text }: TextDelta,
  member: "text" | "reasoning" | "arguments" | "streamed",
): Transcript {
  // A chunk that names no call belongs to none; the log still has it.
  if (call_id == null || text === "") return t;
  return tool(mine, t, call_id, (call) => ({ [member]: (call[member] ?? "") + text }));
}

function tool(
  mine: Mine | null,
  t: Transcript,
  call_id: string,
  change: (call: ToolCall) => Partial<ToolCall>,
): Transcript {
  const call = callOf(t, call_id) ?? { call_id, tool: "", status: "writing", arguments: "", streamed: "" };
  return { ...t, tools: withMember(mine, t.tools, call_id, { ...call, ...change(call) }, unfinished) };
}

/** What lies beside the log of a call, where a member of it does or did so before. */
function spilledIn(
  { spilled }: ToolCall,
  payload: Facts,
  member: "input" | "output",
): Pick<ToolCall, "spilled"> {
  const where = elsewhere(payload, member);
  if (where !== undefined) return { spilled: { ...spilled, [member]: where } };
  if (spilled === undefined || payload[member] === undefined) return {};
  const { [member]: _, ...others } = spilled;
  return { spilled: others };
}

/** An answer that was cut off in the arguments of a call is asked for again, and they are written anew. */
function withoutUnfinished(mine: Mine | null, t: Transcript): Transcript {
  const names = namesIn(mine, t.tools, unfinished, "unfinished");
  if (names.length === 0) return t;
  return {
    ...t,
    tools: names.reduce((tools, name) => withoutMember(mine, tools, name, unfinished), t.tools),
  };
}

function unfinished({ status, streamed, text, reasoning }: ToolCall): "unfinished" | null {
  const isCut = status === "writing" && streamed === "" && text === undefined && reasoning === undefined;
  return isCut ? "unfinished" : null;
}

/** A control event of a call: the first one gives it its place among the parts. */
function card(
  mine: Mine | null,
  t: Transcript,
  call_id: string,
  change: (call: ToolCall) => Partial<ToolCall>,
): Transcript {
  const status = callOf(t, call_id)?.status ?? "writing";
  const changed = tool(mine, t, call_id, change);
  if (status !== "writing") return changed;
  return { ...changed, parts: withItem<Part>(mine, changed.parts, { kind: "tool", call_id }) };
}

function callOf(t: Transcript, call_id: string): ToolCall | undefined {
  return Object.hasOwn(t.tools, call_id) ? t.tools[call_id] : undefined;
}

function spawned(mine: Mine | null, t: Transcript, child_id: string, parent_id: string): Transcript {
  if (Object.hasOwn(t.children, child_id)) return t;
  const child = { parent_id, transcript: emptyTranscript(child_id) };
  return { ...t, children: withMember(mine, t.children, child_id, child) };
}

interface Answerable<P> {
  readonly asked: P;
  readonly status: "pending" | "resolved";
  readonly answer?: Facts;
}

function answered<P extends Facts>(
  mine: Mine | null,
  requests: { readonly [id: string]: Answerable<P> },
  id: string,
  answer: Facts,
): { readonly [id: string]: Answerable<P> } {
  const request = Object.hasOwn(requests, id) ? requests[id] : undefined;
  // The first answer stands.
  if (request === undefined || request.status === "resolved") return requests;
  return withMember<Answerable<P>>(mine, requests, id, { asked: request.asked, status: "resolved", answer });
}
