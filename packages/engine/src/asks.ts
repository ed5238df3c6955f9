// What the agent asks people. A request is an event; its answer is another, whoever gives it, however much later, and
// whatever happened to the server in between.

import type { Facts } from "@runwire/protocol";
import type { Ask, CallWork } from "./call-work.js";
import { limits } from "./limits.js";
import type { Loop } from "./loop.js";
import type { Work } from "./work.js";

/** Asks unless it was asked before, and waits for as long as the answer matters. */
export async function answerTo(
  { log, newId, host }: Loop,
  { call_id }: CallWork,
  kind: "approval" | "question",
  signal: AbortSignal,
  request: (id: string, expires_at: string) => Promise<void>,
): Promise<Facts> {
  const askOf = (work: Work): Ask | null =>
    work.calls.find((call) => call.call_id === call_id)?.[kind] ?? null;
  if (askOf(log.work) === null) {
    const waitMs = kind === "approval" ? limits.approvalMs : limits.questionMs;
    const expires_at = new Date(host.clock.now() + waitMs).toISOString();
    await request(newId(kind === "approval" ? "appr" : "clar"), expires_at);
  }
  const work = await log.until((now) => signal.aborted || askOf(now)?.resolved != null);
  return askOf(work)?.resolved ?? { outcome: "closed", decision: "deny" };
}
