// What is kept, with a run's head, of what waits for a person: enough to show it in a list, whatever its size.

import { beginningOf, broughtBy, elsewhere, type Facts, isObject } from "@runwire/protocol";

/** What an open request, or a plan that waits, asks. */
export interface Asked {
  /** The event that asked, and when. */
  readonly id: string;
  readonly at: string;
  readonly shown: Facts;
  /** The beginning of what its run was asked, as of then; a head that an older program has stored does not know. */
  readonly prompt_preview?: string | null;
}

/** What is shown of a plan. */
export interface ShownPlan {
  readonly plan_id: string;
  readonly steps: readonly Facts[];
  readonly steps_total: number;
}

export const textCharsMax = 1024;
export const nameCharsMax = 200;
const promptCharsMax = 100;
const choicesMax = 20;
const stepsMax = 50;

export function shownApproval(p: Facts): Facts {
  return {
    call_id: typeof p.call_id === "string" ? p.call_id : null,
    tool: textOf(p.tool, nameCharsMax),
    // What lies beside the log is shown by how it begins.
    input_preview:
      p.input === undefined ? null : previewOf(elsewhere(p, "input")?.preview ?? p.input, textCharsMax),
    effect: textOf(p.effect, nameCharsMax),
    description: textOf(p.description, textCharsMax),
  };
}

export function shownQuestion(p: Facts): Facts {
  return {
    call_id: typeof p.call_id === "string" ? p.call_id : null,
    question: textOf(p.question, textCharsMax),
    choices: Array.isArray(p.choices)
      ? p.choices.slice(0, choicesMax).map((choice) => previewOf(choice, nameCharsMax))
      : [],
  };
}

export function shownPlan(plan: unknown): ShownPlan {
  const { id, steps } = plan as { id: string; steps: readonly unknown[] };
  return {
    plan_id: id,
    steps: steps.slice(0, stepsMax).map((step) => {
      const of = isObject(step) ? step : {};
      return { id: textOf(of.id, nameCharsMax), title: textOf(of.title, nameCharsMax) };
    }),
    steps_total: steps.length,
  };
}

/**
 * The beginning of what a person said last, as a turn was submitted; null where nobody did, or where it was too large to be
 * kept in the log.
 */
export function shownPrompt(submitted: Facts): string | null {
  const last = broughtBy(submitted).findLast(({ role }) => role === "user");
  if (last?.content == null) return null;
  return previewOf(last.content, promptCharsMax);
}

export function textOf(value: unknown, charsMax: number): string | null {
  return typeof value === "string" ? beginningOf(value, charsMax) : null;
}

function previewOf(value: unknown, charsMax: number): string {
  return beginningOf(typeof value === "string" ? value : JSON.stringify(value), charsMax);
}
