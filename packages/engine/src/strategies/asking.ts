// What a strategy asks its model for. The answer is not shown as it comes: it is read first, and what it means is told
// with it, in one append. After a crash there is all of that or nothing, and nothing is asked for twice.

import type { Draft, Facts } from "@runwire/protocol";
import { ask, completed } from "../answer.js";
import { limits } from "../limits.js";
import type { Loop } from "../loop.js";
import type { ChatMessage, Purpose } from "../model.js";
import { shortened } from "../shortened.js";
import type { Work } from "../work.js";
import { purposeFacts } from "./purposes.js";

export interface Wish {
  readonly purpose: Purpose;
  readonly system: string;
  readonly wish: string;
  /** Further members of `model.completed`. */
  readonly facts?: Facts;
  /** What an answer means: what is told as thinking, and the events; null where it is unusable. */
  read(text: string): Promise<Reading | null> | Reading | null;
}

export interface Reading {
  readonly thought: string;
  readonly events: readonly Draft[];
  /** What follows when the asking is over. */
  readonly after?: readonly Draft[];
}

export async function askFor(loop: Loop, work: Work, wish: Wish): Promise<void> {
  const { purpose, system, facts = {} } = wish;
  const plan = work.plan?.steps.map(({ title }) => `- ${title}`).join("\n") ?? "";
  const said = await ask(loop, {
    system: plan === "" ? system : `${system}\n\nThere is a plan, to be kept to:\n${plan}`,
    messages: [...plainly(work.messages), { role: "user", content: wish.wish }],
    tools: [],
    partial: "",
    purpose,
  });
  if (said === undefined) return;
  const reading = await wish.read(said.text);
  const { node } = purposeFacts({ purpose });
  const thought = reading?.thought ?? "";
  await loop.log.write(
    ...(thought === ""
      ? []
      : [{ type: "reasoning.delta", payload: { text: `\n${thought}`, node } } as Draft]),
    ...(reading?.events ?? []),
    ...completed(loop, said.finished, {
      ...purposeFacts({ purpose }),
      ...facts,
      ...(reading === null ? { unusable: true } : {}),
    }),
    ...(reading?.after ?? []),
  );
}

/** Without calls: providers refuse those of tools that are not offered. */
function plainly(messages: readonly ChatMessage[]): readonly ChatMessage[] {
  return messages.flatMap((message): readonly ChatMessage[] => {
    if (message.role === "user") return [message];
    if (message.role === "assistant")
      return message.content === "" ? [] : [{ role: "assistant", content: message.content, calls: [] }];
    const output = typeof message.output === "string" ? message.output : JSON.stringify(message.output);
    const told = shortened(output ?? "", limits.afterthoughtCharsMax);
    return [{ role: "user", content: `What ${message.tool} gave: ${told}` }];
  });
}
