// The end of a run that has said all it wanted: the message is settled, what belongs to it follows, and then the end.

import type { Draft } from "@runwire/protocol";
import type { Loop } from "./loop.js";
import { boundary } from "./steps.js";
import type { Work } from "./work.js";

export async function finish(loop: Loop, work: Work): Promise<void> {
  const { log, newId } = loop;
  const text = work.messages.findLast((message) => message.role === "assistant")?.content ?? "";
  const leftovers = work.steers.map(
    ({ steer_id, text: said }): Draft => ({ type: "steer.leftover", payload: { steer_id, text: said } }),
  );
  const title = work.title === null ? titleOf(work) : null;
  await log.write(
    await boundary(loop, "done"),
    { type: "message.settled", payload: { text, message_id: newId("msg") } },
    ...(title === null ? [] : [{ type: "title", payload: { title } } satisfies Draft]),
    ...leftovers,
    { type: "run.lifecycle", payload: { state: "done", reason: null } },
  );
}

const titleWordsMax = 8;

/** The first words of what was asked. */
function titleOf({ messages }: Work): string | null {
  const asked = messages.find(({ role }) => role === "user");
  const words = asked?.role === "user" ? asked.content.trim().split(/\s+/).slice(0, titleWordsMax) : [];
  const title = words.join(" ");
  return title === "" ? null : title[0]?.toUpperCase() + title.slice(1);
}
