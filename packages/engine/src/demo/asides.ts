// What the demo is asked for beside its answer.

import type { ModelRequest } from "../model.js";
import { capital, quote } from "./quote.js";
import { knownIn, subjectsIn } from "./subjects.js";

const titleWordsMax = 8;

/** The first words of what was asked. */
export function titleOf([asked]: ModelRequest["messages"]): string {
  const words = asked?.role === "user" ? quote(asked.content, 200).split(" ").slice(0, titleWordsMax) : [];
  return capital(words.join(" "));
}

/** About what the answer names; else about what was asked; else about what the demo knows at all. */
export function suggestionsFor(messages: ModelRequest["messages"]): string {
  const [asked] = messages;
  const answer = messages.find((message) => message.role === "assistant")?.content ?? "";
  const about = asked?.role === "user" ? subjectsIn(quote(asked.content, 1000)).flatMap(knownIn) : [];
  const [first, second] = [...new Set([...knownIn(answer), ...about])];
  if (first === undefined)
    return "Compare three charting libraries\nHelp me choose a database\nCompare two front-end frameworks";
  const other =
    second === undefined ? `What else is there besides ${first}?` : `Compare ${first} and ${second}`;
  return `Tell me more about ${first}\nWhat speaks against ${first}?\n${other}`;
}
