// People answer what a run asks. Which answer wins is decided inside the commit (log/answers.ts).

import type { Facts } from "@runwire/protocol";
import { z } from "zod";
import { wrongBody } from "../http/check.js";
import type { Reply } from "../http/route.js";
import { facts, reason } from "../http/shapes.js";
import { requestIn, resolveApproval, resolveClarification, toolOf } from "../log/answers.js";
import type { Rooms } from "../rooms.js";
import type { RunKey } from "../store.js";

export const approvalAnswer = z.strictObject({
  decision: z
    .enum(["once", "session", "always", "deny"])
    .describe("for this call, for the tool in this session, for the tool from now on, or not"),
  reason,
  input: facts.nullish().describe("replaces the arguments of the call"),
});
export const clarifyAnswer = z.strictObject({ answer: z.unknown() });

/** What is asked, by its run and id. */
export interface Asking {
  readonly run: RunKey;
  readonly id: string;
}

export async function answerApproval(
  rooms: Rooms,
  asked: Asking,
  { decision, reason, input }: z.output<typeof approvalAnswer>,
): Promise<Reply> {
  if (input != null && decision !== "deny") await checkInput(rooms, asked, input);
  const { run, id } = asked;
  const given = { decision, reason: reason ?? null, ...(input == null ? {} : { input }) };
  await rooms.ingest.change(run, (commit) => resolveApproval(commit, run.run_id, id, given));
  return answered(asked);
}

export async function answerClarification(
  rooms: Rooms,
  asked: Asking,
  { answer }: z.output<typeof clarifyAnswer>,
): Promise<Reply> {
  if (answer == null) throw wrongBody("`answer` is needed");
  const { run, id } = asked;
  await rooms.ingest.change(run, (commit) => resolveClarification(commit, run.run_id, id, answer));
  return answered(asked);
}

function answered({ run: { run_id }, id }: Asking): Reply {
  return { status: 200, body: { run_id, request_id: id, status: "resolved" } };
}

/** Arguments that the agent's tool would not take are refused while somebody is there to mend them. */
async function checkInput({ store, agent }: Rooms, { run, id }: Asking, input: Facts): Promise<void> {
  const head = await store.head(run);
  if (head === undefined || head.run.external) return;
  const tool = toolOf(requestIn(head, "approval", id));
  if (tool !== null) await agent?.checkInput(tool, input);
}
