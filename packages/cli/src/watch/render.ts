// A run as lines to read: (timeline, followed item) → (timeline, lines). It knows nothing of terminals, clocks and
// streams, so what a person sees is a function of the log alone.

import type { Followed } from "@runwire/client";
import { type AnyEvent, addedUsage, type Event, type Facts, isFinal, isObject } from "@runwire/protocol";
import { asking, askingPlan, hint } from "./asks.js";
import { governanceLines } from "./governance.js";
import { harmless, oneLine } from "./harmless.js";
import type { Line } from "./line.js";
import {
  askedIn,
  askedLines,
  blockOf,
  cutLine,
  endLine,
  planLines,
  ruleOf,
  type Said,
  stateLine,
  toolLine,
} from "./lines.js";
import { flush, say, streamed, think } from "./speech.js";
import { candidatesIn, strategyLines } from "./strategies.js";
import {
  firstTimeline,
  firstVoice,
  type Manner,
  noTool,
  type Rendered,
  type Timeline,
  type Voice,
  withTool,
  withVoice,
} from "./timeline.js";
import { durationWords, inputIn, inputWords } from "./words.js";

export function render(timeline: Timeline, item: Followed, manner: Manner): Rendered {
  switch (item.kind) {
    case "event":
      return renderEvent(timeline, item.event, manner);
    case "reset": {
      const lines = [ruleOf("the server has another log of this run now; from its start")];
      return { timeline: firstTimeline(item.run_id), lines };
    }
    case "gap": {
      const count = item.to - item.from + 1;
      const lines = [
        cutLine("", { text: `! ${count} events are missing here and could not be had`, style: "yellow" }),
      ];
      return { timeline, lines };
    }
    // Not asked for, and not known to this version.
    case "snapshot":
    case "unknown":
      return { timeline, lines: [] };
  }
}

function renderEvent(timeline: Timeline, event: Event, manner: Manner): Rendered {
  const run_id = event.child_id ?? timeline.run_id;
  const known = timeline.voices.get(run_id) ?? orphan(timeline, run_id);
  const isHidden = manner.children === "hide" && known.label !== "";
  // Nothing is kept that a later line would have to finish.
  if (isHidden && (event.type === "text.delta" || event.type === "reasoning.delta"))
    return { timeline, lines: [] };
  const told = tell(withVoice(timeline, known), known, event as AnyEvent, manner);
  return isHidden && !isForPeople(event.type) ? { ...told, lines: [] } : told;
}

function isForPeople(type: string): boolean {
  return type.startsWith("approval.") || type.startsWith("clarify.");
}

/** A child whose spawn was not seen. */
function orphan(timeline: Timeline, run_id: string): Voice {
  return firstVoice(run_id, `${timeline.voices.size}`, null);
}

function tell(timeline: Timeline, voice: Voice, e: AnyEvent, manner: Manner): Rendered {
  const nowMs = Date.parse(e.ts);
  /** After what it was saying, these lines; and the voice as it is then. */
  const then = (next: Timeline, lines: readonly Line[], change: Partial<Voice> = {}): Rendered => {
    const flushed = flush(voice, nowMs, manner);
    return {
      timeline: withVoice(next, { ...flushed.voice, ...change }),
      lines: [...flushed.lines, ...lines],
    };
  };
  const spoken = ({ voice: next, lines }: Said): Rendered => ({ timeline: withVoice(timeline, next), lines });
  const { label } = voice;
  switch (e.type) {
    case "reasoning.delta":
      return spoken(
        e.payload.call_id == null
          ? think(voice, e.payload.text, nowMs, manner)
          : streamed(voice, e.payload.call_id, e.payload.text),
      );
    case "text.delta":
      return spoken(
        e.payload.call_id == null
          ? say(voice, e.payload.text, nowMs, manner)
          : streamed(voice, e.payload.call_id, e.payload.text),
      );
    case "tool.output":
    case "process.output":
      return spoken(streamed(voice, e.payload.call_id, e.payload.text));
    case "model.requested":
      // After a crash a model goes on with its text, but begins its thoughts again.
      return voice.thinking === null ? { timeline, lines: [] } : then(timeline, []);
    case "model.completed":
      return then(timeline, []);
    case "model.failed": {
      const why = oneLine(String(e.payload.message ?? e.payload.error ?? e.payload.reason ?? ""));
      return then(timeline, [
        cutLine(
          label,
          { text: "! the model failed", style: "yellow" },
          // What may be long comes last.
          { text: nextTry(e.payload.wait_ms), style: "dim" },
          { text: why === "" ? "" : `: ${why}`, style: "yellow" },
        ),
      ]);
    }
    case "tool.call": {
      const { call_id, tool } = e.payload;
      return then(timeline, [], { tools: withTool(voice, call_id, { tool, input: inputIn(e.payload) }) });
    }
    case "tool.start": {
      const { call_id, tool } = e.payload;
      // Some say it once, in the call.
      const input = inputIn(e.payload) ?? voice.tools.get(call_id)?.input;
      const tools = withTool(voice, call_id, { tool, sinceMs: nowMs, input });
      const line = cutLine(
        label,
        { text: "· ", style: "dim" },
        { text: oneLine(tool), style: "bold" },
        { text: ` ${inputWords(input)}` },
      );
      return then(timeline, manner.live ? [] : [line], { tools });
    }
    case "tool.end": {
      const { call_id } = e.payload;
      const tool = voice.tools.get(call_id) ?? noTool;
      const tools = new Map(voice.tools);
      tools.delete(call_id);
      const child = tool.child === null ? undefined : timeline.voices.get(tool.child);
      return then(timeline, toolLine(label, tool, child?.label ?? null, e.payload, nowMs, manner), { tools });
    }
    case "child.spawn": {
      const { child_id, prompt } = e.payload;
      const call_id = typeof e.payload.call_id === "string" ? e.payload.call_id : null;
      const childCount = voice.childCount + 1;
      const child = firstVoice(child_id, label === "" ? `${childCount}` : `${label}.${childCount}`, call_id);
      const known = timeline.voices.has(child_id);
      const tools = call_id === null ? voice.tools : withTool(voice, call_id, { child: child_id });
      const line = cutLine(
        label,
        { text: `▸ ${child.label} `, style: "cyan" },
        // What it is told besides stands below.
        { text: oneLine((prompt ?? "").split("\n\n", 1).join()), style: "bold" },
        { text: `  ${oneLine(child_id)}`, style: "dim" },
      );
      return then(known ? timeline : withVoice(timeline, child), [line], { childCount, tools });
    }
    case "plan.proposal": {
      const { plan } = e.payload;
      const change = { plan_id: plan.id };
      const lines = planLines(label, plan, manner);
      // In the place of one that waits: what is asked about is what was shown last.
      const isAsked = timeline.asks.some((ask) => ask.kind === "plan" && ask.run_id === voice.run_id);
      return then(isAsked ? askingPlan(timeline, voice, e, plan.id) : timeline, lines, change);
    }
    case "step.boundary": {
      const { step_index, step_kind, plan_steps } = e.payload;
      const planned = plan_steps == null ? "" : ` · of the plan: ${plan_steps.join(", ")}`;
      // The steps of children would be more lines than what they do.
      return then(
        timeline,
        label === "" ? [ruleOf(oneLine(`step ${step_index} · ${step_kind}${planned}`))] : [],
      );
    }
    case "run.lifecycle":
      return moved(timeline, voice, e, then, manner);
    case "turn.submitted":
      return then(
        label === "" ? { ...timeline, asked: true } : timeline,
        label === "" ? askedLines(askedIn(e.payload), manner) : [],
      );
    case "turn.started": {
      // Where it tells what was asked, and nobody did before.
      const { message } = e.payload;
      if (label !== "" || timeline.asked || typeof message !== "string") return { timeline, lines: [] };
      return then({ ...timeline, asked: true }, askedLines(message, manner));
    }
    case "message.settled":
      // What was streamed is there already.
      return then(timeline, voice.said ? [] : blockOf(label, harmless(e.payload.text), {}), { said: false });
    case "message.interim":
      return then(timeline, blockOf(label, harmless(e.payload.text), { style: "dim" }));
    case "title":
      return {
        timeline: label === "" ? { ...timeline, title: oneLine(e.payload.title) } : timeline,
        lines: [],
      };
    case "suggestions":
      return then(
        timeline,
        e.payload.suggestions.map((text) => cutLine(label, { text: `→ ${oneLine(text)}`, style: "dim" })),
      );
    case "approval.requested":
    case "clarify.requested":
    case "approval.resolved":
    case "clarify.resolved": {
      const told = asking(timeline, voice, e, manner);
      return then(told.timeline, told.lines);
    }
    case "steer.accepted":
      return then(timeline, blockOf(label, harmless(e.payload.text), { mark: "» ", style: "cyan" }));
    case "steer.delivered":
      return then(timeline, [cutLine(label, { text: `» heard: ${oneLine(e.payload.text)}`, style: "dim" })]);
    case "steer.leftover":
      return then(timeline, [
        cutLine(label, { text: `» came too late: ${oneLine(e.payload.text)}`, style: "yellow" }),
      ]);
    case "control.requested": {
      const { action, instruction } = e.payload;
      if (action !== "redirect" || typeof instruction !== "string") return { timeline, lines: [] };
      return then(timeline, blockOf(label, harmless(instruction), { mark: "↪ ", style: "cyan" }));
    }
    case "usage":
      return { timeline: { ...timeline, usage: addedUsage(null, timeline.usage, e.payload) }, lines: [] };
    default: {
      const governed = governanceLines(label, e);
      if (governed.length > 0) return then(timeline, governed);
      const notice = noticeIn(e);
      if (notice === undefined) return strategised(timeline, voice, e, manner);
      return then(timeline, [cutLine(label, { text: `! ${oneLine(notice)}`, style: "yellow" })]);
    }
  }
}

/** What people should know of a run's course while it goes on. */
function noticeIn({ type, payload }: Event): string | undefined {
  const { to, spent_usd, budget_usd } = payload as Facts;
  if (type === "routing.fallback.applied" && isObject(to)) return `${String(to.model)} goes on instead`;
  if (type === "quota.low")
    return `the budget runs low: $${String(spent_usd)} of $${String(budget_usd)} spent`;
  return undefined;
}

/** What was thought is told by the event that it came to; who wants all of it gets both. */
function strategised(timeline: Timeline, voice: Voice, e: AnyEvent, manner: Manner): Rendered {
  const lines = strategyLines(voice.label, e, voice.candidates);
  if (lines === null) return { timeline, lines: [] };
  const said = flush(manner.full ? voice : { ...voice, thinking: null }, Date.parse(e.ts), manner);
  const candidates = e.type === "tot.expand" ? candidatesIn(e.payload) : voice.candidates;
  return {
    timeline: withVoice(timeline, { ...said.voice, candidates }),
    lines: [...said.lines, ...lines],
  };
}

function nextTry(waitMs: unknown): string {
  return typeof waitMs === "number" ? ` (again in ${durationWords(waitMs)})` : "";
}

type Then = (next: Timeline, lines: readonly Line[], change?: Partial<Voice>) => Rendered;

function moved(
  timeline: Timeline,
  voice: Voice,
  e: Event<"run.lifecycle">,
  then: Then,
  manner: Manner,
): Rendered {
  const { state, reason } = e.payload;
  const { label, run_id } = voice;
  const nowMs = Date.parse(e.ts);
  const beganMs = timeline.beganMs ?? nowMs;
  const isEnd = isFinal(state);
  const change: Partial<Voice> = { state, ...(isEnd ? { tools: new Map() } : {}) };
  // Whatever this run had asked of a person about its plan is answered by any change of its state.
  const asks = timeline.asks.filter((ask) => ask.run_id !== run_id || (ask.kind !== "plan" && !isEnd));
  const next: Timeline = { ...timeline, asks, beganMs };
  if (label !== "") {
    // A call that waits for the child tells its end.
    const isTold = voice.state === null || (state === "done" && voice.call_id !== null);
    return then(next, isTold ? [] : [stateLine(label, state, reason)], change);
  }
  if (isEnd) {
    return then({ ...next, end: state }, endLine(next, state, reason, nowMs - beganMs), change);
  }
  if (voice.state === null) {
    return then(
      next,
      [cutLine("", { text: `● ${state} `, style: "cyan" }, { text: oneLine(run_id), style: "dim" })],
      change,
    );
  }
  if (state !== "awaiting_approval") return then(next, [stateLine(label, state, reason)], change);
  return then(
    askingPlan(next, voice, e, voice.plan_id),
    [stateLine(label, state, reason), ...hint(manner, label, `runwire approve ${run_id}`)],
    change,
  );
}
