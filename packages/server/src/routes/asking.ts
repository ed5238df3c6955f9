// What a run of the built-in agent must ask. Whoever writes a run from outside knows what it is about; the agent has
// only this, and would make something up.

import type { Facts } from "@runwire/protocol";
import { wrongBody } from "../http/check.js";

const roles = ["user", "assistant", "tool", "system"];
const asks = ["user", "tool"];
const need =
  "a run of the agent needs a `prompt` that is not blank, or `messages` of which the last is the user's or a tool's";

interface Asking {
  readonly prompt?: string | null | undefined;
  readonly messages?: readonly Facts[] | null | undefined;
  readonly model?: string | null | undefined;
}

export function checkAsking({ prompt, messages, model }: Asking): void {
  if (messages == null && isBlank(prompt)) throw wrongBody(need);
  if (messages != null) checkMessages(messages);
  if (model != null && isBlank(model))
    throw wrongBody("`model` must not be blank; leave it out for the server's own choice");
}

function checkMessages(messages: readonly Facts[]): void {
  const called = new Set<unknown>();
  for (const [i, message] of messages.entries()) {
    const at = `messages.${i}`;
    if (!roles.includes(message.role as string))
      throw wrongBody(`\`${at}.role\` must be one of ${roles.join(", ")}`);
    const calls = callsIn(message);
    if (message.role === "tool") {
      if (!called.has(message.call_id))
        throw wrongBody(`\`${at}.call_id\` must be that of a call which an assistant's message before has`);
    } else if (isBlank(message.content) && calls.length === 0)
      throw wrongBody(`\`${at}.content\` must not be blank`);
    for (const { call_id } of calls) if (typeof call_id === "string") called.add(call_id);
  }
  if (!asks.includes(messages.at(-1)?.role as string)) throw wrongBody(need);
}

function callsIn({ role, calls }: Facts): readonly Facts[] {
  return role === "assistant" && Array.isArray(calls) ? calls : [];
}

/** Content may be parts as well, of any kind. */
function isBlank(content: unknown): boolean {
  if (typeof content === "string") return content.trim() === "";
  return content == null || (Array.isArray(content) && content.length === 0);
}
