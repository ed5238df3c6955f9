// What the model is asked for beside its answer: a title for a session that has none, and what a person might ask next.
// Both are asked for at once, each has two seconds, and whatever goes wrong with one leaves it out and harms nobody.

import type { Draft } from "@runwire/protocol";
import { aborter } from "./aborter.js";
import { isUsedUp } from "./budget.js";
import { systemClock } from "./clock.js";
import { limits } from "./limits.js";
import type { Loop } from "./loop.js";
import { ModelFailure, type ModelPart, type ModelRequest, type ModelUsage } from "./model.js";
import { shortened } from "./shortened.js";
import { used, usedInPart } from "./usage.js";
import type { Work } from "./work.js";

export interface Afterthoughts {
  readonly told: readonly Draft[];
  readonly used: readonly Draft[];
}

export async function afterthoughts(loop: Loop, work: Work): Promise<Afterthoughts> {
  // A child reports to its parent, who has a title and is asked no questions by it.
  if (work.asked.parent_id !== undefined || (await isUsedUp(loop))) return { told: [], used: [] };
  const [title, suggestions] = await Promise.all([
    work.title === null ? aside(loop, titleRequest(work)) : unasked,
    work.suggested ? unasked : aside(loop, suggestionsRequest(work)),
  ]);
  const named = titleIn(title.text);
  const next = suggestionsIn(suggestions.text);
  return {
    told: [
      ...(named === "" ? [] : [{ type: "title", payload: { title: named } } satisfies Draft]),
      ...(next.length === 0 ? [] : [{ type: "suggestions", payload: { suggestions: next } } satisfies Draft]),
    ],
    used: [...title.used, ...suggestions.used],
  };
}

interface Aside {
  /** "" where there is none, or none in time. */
  readonly text: string;
  readonly used: readonly Draft[];
}

const unasked: Aside = { text: "", used: [] };

async function aside({ model, talking }: Loop, request: ModelRequest): Promise<Aside> {
  const hurry = aborter();
  const stop = (): void => hurry.abort();
  const talk = talking();
  if (talk.aborted) return unasked;
  talk.addEventListener("abort", stop, { once: true });
  const cancel = systemClock.after(limits.afterthoughtMsMax, stop);
  let text = "";
  let finished: Extract<ModelPart, { kind: "finished" }> | undefined;
  let usage: ModelUsage | undefined;
  let hasBegun = false;
  try {
    for await (const part of model.stream(request, hurry.signal)) {
      hasBegun = true;
      if (part.kind === "text") text += part.text;
      else if (part.kind === "used") ({ usage } = part);
      else if (part.kind === "finished") finished = part;
    }
  } catch (error) {
    // It is left out, whatever happened; what it used up is counted all the same.
    if (error instanceof ModelFailure) usage ??= error.usage;
  } finally {
    cancel();
    talk.removeEventListener("abort", stop);
  }
  if (finished !== undefined)
    return { text: finished.reason === "stop" ? text : "", used: [used(model, finished.usage)] };
  const isPaid = hasBegun || usage !== undefined;
  return { text: "", used: isPaid ? [usedInPart(model, usage)] : [] };
}

function titleRequest({ messages }: Work): ModelRequest {
  // A run that was redirected is about what it was redirected to.
  const told = messages.filter((message) => message.role === "user");
  const asked = told.findLast(({ direction }) => direction === "redirect") ?? told[0];
  return request("title", asked?.content ?? "", messages, {
    system: "You name conversations.",
    wish: "Name this conversation in at most eight words, in its own language. Write the name and nothing else.",
  });
}

function suggestionsRequest({ messages }: Work): ModelRequest {
  const asked = messages.findLast((message) => message.role === "user")?.content ?? "";
  return request("suggestions", asked, messages, {
    system: "You suggest what a person might ask next.",
    wish:
      `Write ${limits.suggestionsMax} short messages that I might send next, in the language of this conversation, ` +
      "one a line, and nothing else.",
  });
}

/** Only the question and the answer: calls would need their tools, and all of it would cost as much as the answer did. */
function request(
  aside: NonNullable<ModelRequest["aside"]>,
  asked: string,
  messages: Work["messages"],
  { system, wish }: { readonly system: string; readonly wish: string },
): ModelRequest {
  const answer = messages.findLast((message) => message.role === "assistant")?.content ?? "";
  return {
    system,
    messages: [
      { role: "user", content: excerpt(asked) },
      ...(answer === "" ? [] : [{ role: "assistant" as const, content: excerpt(answer), calls: [] }]),
      { role: "user", content: wish },
    ],
    tools: [],
    partial: "",
    aside,
  };
}

function excerpt(text: string): string {
  return shortened(text, limits.afterthoughtCharsMax);
}

/** Models like to put a name in quotes, or to make a heading of it. */
function titleIn(text: string): string {
  const [line = ""] = linesOf(text);
  const bare = line.replace(/^(?:#+\s*|title:\s*)/i, "").replace(/^["'“‘«*_`]+|["'”’»*_`.]+$/g, "");
  return shortened(bare.trim(), limits.titleCharsMax);
}

function suggestionsIn(text: string): readonly string[] {
  const bare = linesOf(text).map((line) =>
    line.replace(/^(?:[-*•]|\d+[.)])\s+/, "").replace(/^"(.*)"$/, "$1"),
  );
  const said = bare.filter((line) => line !== "").map((line) => shortened(line, limits.suggestionCharsMax));
  return [...new Set(said)].slice(0, limits.suggestionsMax);
}

function linesOf(text: string): readonly string[] {
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
}
