// The end of a run that has said all it wanted. The message is settled at once, so that nobody waits for what follows it:
// a title and suggestions, where the model makes them in time. These and the end are one append: a crash before it leaves
// nothing of them, and none is written twice.

import { RunwireError } from "@runwire/protocol";
import { afterthoughts } from "./afterthoughts.js";
import { evidenceOf } from "./course.js";
import { givenMessages } from "./given-messages.js";
import type { Loop } from "./loop.js";
import { boundary } from "./steps.js";
import { countUsed } from "./usage.js";
import type { Work } from "./work.js";

export async function finish(loop: Loop, work: Work): Promise<void> {
  const { log, newId } = loop;
  if (!work.settled) {
    // What it was given is not what it has said.
    const own = work.messages.slice(givenMessages(work.asked.messages).length);
    const text = own.findLast((message) => message.role === "assistant")?.content ?? "";
    await log.write(await boundary(loop, "done"), {
      type: "message.settled",
      payload: { text, message_id: newId("msg") },
    });
    return;
  }
  const thoughts = await afterthoughts(loop, work);
  if (loop.talking().aborted) return countUsed(log, thoughts.used);
  try {
    await log.write(...thoughts.told, ...thoughts.used, evidenceOf(loop.run.run_id), {
      type: "run.lifecycle",
      payload: { state: "done", reason: reasons[work.finishReason] ?? null },
    });
  } catch (error) {
    // Somebody paused or redirected it at the last moment: the next round sees to that.
    if (!(error instanceof RunwireError) || error.code !== "KAI-RUN-STATE-0001") throw error;
    // It may be running again by then.
    await log.catchUp();
    await countUsed(log, thoughts.used);
  }
}

/** An answer that is not all that the model had to say is an answer still, but nobody should take it for whole. */
const reasons: { readonly [finishReason: string]: string } = {
  length: "the answer was cut off at the model's length limit",
  filtered: "the provider withheld some of the answer",
  other: "the provider ended the answer for a reason of its own",
};
