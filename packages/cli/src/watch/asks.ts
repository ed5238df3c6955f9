// What a run asks of people and what they said to it, as lines; and which of it still waits.

import type { AnyEvent, Event, Facts } from "@runwire/protocol";
import { harmless, oneLine } from "./harmless.js";
import type { Line, Span } from "./line.js";
import { blockOf, cutLine } from "./lines.js";
import { type Ask, askKey, type Manner, type Rendered, type Timeline, type Voice } from "./timeline.js";
import { inputIn, inputWords } from "./words.js";

type Asking = Extract<
  AnyEvent,
  { type: "approval.requested" | "clarify.requested" | "approval.resolved" | "clarify.resolved" }
>;

const approvalCharsMax = 2000;

export function asking(timeline: Timeline, voice: Voice, e: Asking, manner: Manner): Rendered {
  const { label } = voice;
  switch (e.type) {
    case "approval.requested": {
      const { approval_id, call_id } = e.payload;
      const call = call_id == null ? undefined : voice.tools.get(call_id);
      const tool = oneLine(String(e.payload.tool ?? call?.tool ?? "a tool"));
      const about = `${tool} ${inputWords(inputIn(e.payload) ?? call?.input, approvalCharsMax)}`.trim();
      const effect = typeof e.payload.effect === "string" ? ` (${oneLine(e.payload.effect)})` : "";
      const asks = [
        ...timeline.asks,
        { kind: "approval", run_id: voice.run_id, label, id: approval_id, about },
      ] as const;
      return {
        timeline: { ...timeline, asks },
        lines: [
          // Nobody should allow what they were shown only the beginning of.
          {
            ...cutLine(
              label,
              { text: "? may it run ", style: "yellow" },
              { text: about, style: "bold" },
              { text: effect },
            ),
            fit: "wrap",
            hang: 2,
          },
          ...hint(manner, label, `runwire approve ${voice.run_id} ${approval_id}`),
        ],
      };
    }
    case "clarify.requested": {
      const { clarify_id, question } = e.payload;
      const given = Array.isArray(e.payload.choices) ? e.payload.choices : [];
      const choices = given.filter((choice) => typeof choice === "string");
      const about = oneLine(question);
      const asks = [
        ...timeline.asks,
        { kind: "question", run_id: voice.run_id, label, id: clarify_id, about, choices },
      ] as const;
      return {
        timeline: { ...timeline, asks },
        lines: [
          ...blockOf(label, harmless(question), { mark: "? ", style: "yellow" }),
          ...choices.map((choice, i) => cutLine(label, { text: `  ${i + 1}. ${oneLine(choice)}` })),
          ...hint(manner, label, `runwire answer ${voice.run_id} ${clarify_id} TEXT`),
        ],
      };
    }
    case "approval.resolved": {
      const ask = timeline.asks.find(isOf(voice, e.payload.approval_id));
      const about = ask?.kind === "approval" ? ask.about : "";
      return {
        timeline: without(timeline, voice, e.payload.approval_id),
        lines: [verdictLine(label, about, e.payload)],
      };
    }
    case "clarify.resolved": {
      const { answer, outcome } = e.payload;
      const isLate = outcome === "expired" || outcome === "closed";
      const text = isLate ? "✗ unanswered" : `✓ answered: ${inputWords(answer)}`;
      return {
        timeline: without(timeline, voice, e.payload.clarify_id),
        lines: [cutLine(label, { text, style: isLate ? "yellow" : "green" })],
      };
    }
  }
}

/** A run may plan again, and that is another ask. */
export function askingPlan(timeline: Timeline, voice: Voice, e: Event, plan_id: Voice["plan_id"]): Timeline {
  const { run_id, label } = voice;
  const others = timeline.asks.filter((ask) => ask.kind !== "plan" || ask.run_id !== run_id);
  return { ...timeline, asks: [...others, { kind: "plan", run_id, label, id: `plan at ${e.id}`, plan_id }] };
}

function without(timeline: Timeline, voice: Voice, id: string): Timeline {
  const isIt = isOf(voice, id);
  return { ...timeline, asks: timeline.asks.filter((ask) => !isIt(ask)) };
}

function isOf({ run_id }: Voice, id: string): (ask: Ask) => boolean {
  const key = askKey({ run_id, id });
  return (ask) => askKey(ask) === key;
}

/** The command that answers, for who is not asked here. */
export function hint(manner: Manner, label: string, command: string): readonly Line[] {
  return manner.prompts ? [] : [cutLine(label, { text: `  answer with: ${oneLine(command)}`, style: "dim" })];
}

const verdicts: ReadonlyMap<unknown, Span> = new Map([
  ["once", { text: "✓ allowed this once", style: "green" }],
  ["session", { text: "✓ allowed for the session", style: "green" }],
  ["always", { text: "✓ allowed always", style: "green" }],
  ["approve", { text: "✓ allowed", style: "green" }],
  ["deny", { text: "✗ denied", style: "red" }],
]);

/** Several may wait at once, so it says again what it is about. */
function verdictLine(label: string, about: string, { decision, outcome, reason }: Facts): Line {
  const told: Span = { text: `  ${about}` };
  const why: Span = {
    text: typeof reason === "string" && reason !== "" ? `  ${oneLine(reason)}` : "",
    style: "dim",
  };
  if (outcome === "expired" || outcome === "closed") {
    return cutLine(label, { text: "✗ unanswered", style: "yellow" }, told);
  }
  // A word of somebody else's may be a no.
  const other: Span = { text: `· answered ${oneLine(String(decision))}`, style: "yellow" };
  return cutLine(label, verdicts.get(decision) ?? other, told, why);
}
