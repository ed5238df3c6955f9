// A model for those who have none: it needs no key and no network, and says the same to the same conversation, so what
// it was cut off in it continues word for word. It plans, looks things up, gives parts of the work to helpers and
// puts their reports together. It is behind the same interface as any other model.

import { systemClock, wait } from "../clock.js";
import type { Model, ModelPart, ModelRequest } from "../model.js";
import { type Speech, speechFor } from "./speech.js";

export interface DemoOptions {
  /** Between two words, so that people can watch it. */
  readonly wordMs: number;
}

/** However much it has to say, nobody waits longer than this for all of it. */
const speechMsMax = 2000;

export function demoModel({ wordMs }: DemoOptions): Model {
  return {
    name: "demo",
    provider: "runwire",
    takesPrefill: true,
    async *stream(request, signal) {
      const speech = speechFor(request);
      // What was said before a cut is not said again; nor is what was thought before it.
      const isNew = request.partial === "";
      const text = speech.text.startsWith(request.partial)
        ? speech.text.slice(request.partial.length)
        : speech.text;
      const thoughts = isNew ? wordsOf(speech.reasoning) : [];
      const words = wordsOf(text);
      // Nobody watches what is said aside.
      const paceMs =
        request.aside === undefined
          ? Math.min(wordMs, speechMsMax / (thoughts.length + words.length + 1))
          : 0;
      for (const word of thoughts) {
        if (!(await pause(paceMs, signal))) return;
        yield { kind: "reasoning", text: word };
      }
      // What is asked for a purpose is not shown as it comes.
      const spokenMs = request.purpose === undefined ? paceMs : 0;
      for (const word of words) {
        if (!(await pause(spokenMs, signal))) return;
        yield { kind: "text", text: word };
      }
      for (const [i, { tool, input }] of speech.calls.entries()) {
        if (!(await pause(paceMs, signal))) return;
        yield { kind: "args", call_id: `demo-${i}`, tool, text: JSON.stringify(input) };
        yield { kind: "call", call_id: `demo-${i}`, tool, input };
      }
      yield ended(request, speech);
    },
  };
}

function ended({ messages }: ModelRequest, { reasoning, text, calls }: Speech): ModelPart {
  const heard = messages.reduce((sum, message) => sum + countOf(JSON.stringify(message)), 0);
  return {
    kind: "finished",
    reason: calls.length > 0 ? "calls" : "stop",
    usage: {
      input_tokens: heard,
      output_tokens: wordsOf(text).length + calls.length,
      reasoning_tokens: wordsOf(reasoning).length,
      cached_tokens: 0,
    },
    refs: {},
  };
}

function countOf(text: string): number {
  return text.split(/\s+/).length;
}

/** With their spaces, so that they join to what they came from. */
function wordsOf(text: string): readonly string[] {
  return text.match(/\s*\S+\s*$|\s*\S+|\s+/g) ?? [];
}

/** False where it was cut short. */
function pause(ms: number, signal: AbortSignal): Promise<boolean> {
  return wait(systemClock, ms, signal).then(
    () => true,
    () => false,
  );
}
