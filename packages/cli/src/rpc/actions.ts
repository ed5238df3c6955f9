// What a run waits for is one kind of thing to whoever reads a runtime event stream: an action. Here it is one of three,
// in the run itself or in one below it, and its transcript tells which.

import type { ApprovalAnswer, Gateway } from "@runwire/client";
import type { Transcript } from "@runwire/protocol";
import { wrongParams } from "./message.js";

export interface Response {
  /** As the action offers them. */
  readonly decision?: string;
  readonly reason?: string;
  /** Replaces the arguments of the call. */
  readonly input?: unknown;
  /** To a question. */
  readonly answer?: unknown;
}

export async function respond(
  server: Gateway,
  run_id: string,
  action_id: string,
  response: Response,
): Promise<unknown> {
  const { answer, decision, reason } = response;
  const isAnswer = Object.hasOwn(response, "answer");
  if (isAnswer === (decision !== undefined)) throw wrongParams("give `decision` or `answer`");
  const { transcript } = await server.snapshot(run_id);
  const runs = [transcript, ...Object.values(transcript.children).map((child) => child.transcript)];
  const asking = askingIn(runs, run_id, action_id);
  const of = asking?.run_id ?? run_id;
  const kind = asking === undefined ? undefined : kindIn(asking, action_id);
  if (kind === "plan") {
    if (decision !== "approve" && decision !== "deny")
      throw wrongParams("a plan's `decision` is approve or deny");
    const approved = decision === "approve";
    return server.approvePlan(of, {
      plan_id: action_id,
      approved,
      ...(reason === undefined ? {} : { reason }),
    });
  }
  // One that nobody asked is refused by the server, by its code.
  if (isAnswer) return server.answerClarification(of, action_id, answer);
  const { answer: _, ...approval } = response;
  return server.answerApproval(of, action_id, approval as ApprovalAnswer);
}

/** The run that was named where it asks under this id itself. An id is a run's own: below it, several may have it. */
function askingIn(runs: readonly Transcript[], run_id: string, action_id: string): Transcript | undefined {
  const having = runs.filter((run) => kindIn(run, action_id) !== undefined);
  const own = having.find((run) => run.run_id === run_id);
  if (own !== undefined || having.length <= 1) return own ?? having[0];
  // Not the one that still waits: the same answer, sent twice, would be another's.
  const names = having.map((run) => run.run_id).join(", ");
  throw wrongParams(`${action_id} is asked by several runs; name one of them as \`run_id\`: ${names}`);
}

function kindIn(run: Transcript, action_id: string): "approval" | "question" | "plan" | undefined {
  if (Object.hasOwn(run.approvals, action_id)) return "approval";
  if (Object.hasOwn(run.clarifications, action_id)) return "question";
  return run.plan?.id === action_id ? "plan" : undefined;
}
