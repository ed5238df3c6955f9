// What the model is saying, as far as items need to know of it: which ones an answer has begun, and what ends them.

import { type Event, is } from "../../events.js";
import { isFinal } from "../../state.js";

/** What the agent's own tools do, where the standard has a word for it. */
const kinds: { readonly [tool: string]: string } = {
  shell: "command",
  "file.write": "file_change",
  "web.fetch": "web_search",
  "web.search": "web_search",
};

export function kindOf(tool: string): string {
  return (Object.hasOwn(kinds, tool) ? kinds[tool] : undefined) ?? "tool_call";
}

/** What is being said: the items that an answer has begun. */
export interface Speaking {
  readonly reasoning: string | null;
  readonly message: string | null;
}

export const silent: Speaking = { reasoning: null, message: null };

/** What an event makes of it; the same object where it changes nothing, as almost every delta. */
export function spokenAfter(speaking: Speaking, e: Event): Speaking {
  const member = begins(speaking, e);
  if (member !== null) return { ...speaking, [member]: itemIdOf(e, member) };
  return closes(e) ? silent : speaking;
}

export function begins(speaking: Speaking, e: Event): keyof Speaking | null {
  const isText = is(e, "text.delta");
  if (!isText && !is(e, "reasoning.delta")) return null;
  const member = isText ? "message" : "reasoning";
  return speaking[member] === null && e.payload.call_id == null && e.payload.text !== "" ? member : null;
}

/** Text goes on after a pause, and when a server takes the answer up again: a request to the model ends nothing. */
export function closes(e: Event): boolean {
  if (is(e, "run.lifecycle")) return isFinal(e.payload.state) || e.payload.state === "redirecting";
  return closers.has(e.type);
}

const closers: ReadonlySet<string> = new Set([
  "model.completed",
  "tool.call",
  "tool.start",
  "step.boundary",
  "plan.proposal",
  "message.settled",
]);

export function itemIdOf({ id }: Event, member: keyof Speaking): string {
  return `${id}:${member}`;
}
