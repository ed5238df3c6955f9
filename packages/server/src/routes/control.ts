// People steer runs. The server changes the state at once; whoever writes the run learns of it from the events
// on that run.

import { limits, planIntents, RunwireError } from "@runwire/protocol";
import { z } from "zod";
import type { Scope } from "../auth/caller.js";
import { wrongBody } from "../http/check.js";
import { type Call, type Reply, type Route, route } from "../http/route.js";
import { id, json, listOf, members, ordered, reason as reasonShape, words } from "../http/shapes.js";
import type { Commit } from "../log/commit.js";
import { ask, live, pause, resume } from "../log/controls.js";
import { abort, forbidden, headIn, move } from "../log/lifecycle.js";
import type { Rooms } from "../rooms.js";
import {
  type Asking,
  answerApproval,
  answerClarification,
  approvalAnswer,
  clarifyAnswer,
} from "./answers.js";

const onlyReason = z.strictObject({ reason: reasonShape });
const planStep = members({
  id: id.nullish(),
  title: z.string().trim().min(1),
  intent: z.enum(planIntents).nullish(),
  est_tools: listOf(z.string()).nullish(),
});
const planAnswer = z.strictObject({
  plan_id: id.nullish().describe("the plan that is meant; the one that waits by default"),
  approved: z.boolean().nullish().describe("true by default"),
  steps: z
    .array(planStep)
    .min(1)
    .max(100)
    .nullish()
    .describe("approves these steps instead of the proposed ones"),
  reason: reasonShape,
});
const newDirection = z.strictObject({ instruction: words });
const saying = z.strictObject({ text: words });
const answered = members({ run_id: id, request_id: id, status: z.string() });

export function controlRoutes(rooms: Rooms): readonly Route[] {
  const post = <B extends z.ZodType>(
    name: string,
    scope: Scope,
    does: string,
    body: B,
    handle: (rooms: Rooms, call: Call<unknown, z.output<B>>) => Promise<Reply>,
  ): Route =>
    route({
      method: "POST",
      path: `/v1/agent/runs/:id/${name}`,
      does,
      scope,
      body,
      answers: name.includes("/")
        ? { 200: { does: "it is answered", content: json(answered) } }
        : { 202: { does: "the run, as it is now", content: json(ordered) } },
      handle: (call) => handle(rooms, call as Call<unknown, z.output<B>>),
    });
  return [
    post("approve_plan", "approve", "approve, edit or reject a proposed plan", planAnswer, approvePlan),
    post("pause", "control", "pause a run", onlyReason, because(pause)),
    post("resume", "control", "resume a paused run", onlyReason, because(resume)),
    post("redirect", "control", "give a run another direction", newDirection, redirect),
    post("steer", "control", "say something to a running run", saying, steer),
    post("abort", "control", "end a run", onlyReason, because(abortAsked)),
    post("approvals/:request", "approve", "answer an approval request", approvalAnswer, (_, call) =>
      answerApproval(rooms, askedIn(call), call.body),
    ),
    post("clarifications/:request", "approve", "answer a question", clarifyAnswer, (_, call) =>
      answerClarification(rooms, askedIn(call), call.body),
    ),
  ];
}

type Said<B extends z.ZodType> = Call<unknown, z.output<B>>;

/** Handles what takes a reason and nothing else. */
function because(does: (commit: Commit, run_id: string, reason: string | null) => void) {
  return (rooms: Rooms, { body, tenant, run: { run_id } }: Said<typeof onlyReason>): Promise<Reply> =>
    changed(rooms, tenant, run_id, (commit) => does(commit, run_id, body.reason ?? null));
}

/** Again is fine; what has ended otherwise cannot be aborted. */
function abortAsked(commit: Commit, run_id: string, reason: string | null): void {
  if (headIn(commit, run_id).state !== "aborted") live(commit, run_id);
  abort(commit, run_id, reason);
}

async function approvePlan(
  rooms: Rooms,
  { body, tenant, run: { run_id } }: Said<typeof planAnswer>,
): Promise<Reply> {
  const { plan_id, steps } = body;
  const twice =
    steps?.findIndex(({ id }, i) => id != null && steps.findIndex((one) => one.id === id) < i) ?? -1;
  if (twice >= 0)
    throw wrongBody(`\`steps.${twice}.id\` is that of a step before; each has its own, or none`);
  const approved = body.approved ?? true;
  const reason = body.reason ?? null;
  return changed(rooms, tenant, run_id, (commit) => {
    const head = live(commit, run_id);
    if (head.state !== "awaiting_approval") throw forbidden(head, "has no plan that waits for an answer");
    if (plan_id != null && plan_id !== head.plan_id) {
      throw forbidden(head, `waits for an answer to ${head.plan_id}, not to ${plan_id}`);
    }
    ask(commit, run_id, {
      action: "approve_plan",
      plan_id: head.plan_id,
      approved,
      reason,
      ...(steps ? { steps } : {}),
    });
    if (approved) move(commit, run_id, { state: "running", reason: reason ?? "plan approved" });
    else move(commit, run_id, { state: "aborted", reason: reason ?? "plan rejected" });
  });
}

async function redirect(
  rooms: Rooms,
  { body: { instruction }, tenant, run: { run_id } }: Said<typeof newDirection>,
): Promise<Reply> {
  return changed(rooms, tenant, run_id, (commit) => {
    // Also while an earlier one is not taken up: that says something else.
    ask(commit, run_id, { action: "redirect", instruction });
    move(commit, run_id, { state: "redirecting", reason: "redirected" });
  });
}

async function steer(
  rooms: Rooms,
  { body: { text }, tenant, run: { run_id } }: Said<typeof saying>,
): Promise<Reply> {
  let steer_id = "";
  const reply = await changed(rooms, tenant, run_id, (commit) => {
    const { steers } = live(commit, run_id);
    if (steers.length >= limits.steersWaitingMax)
      throw new RunwireError(
        "KAI-RUN-STATE-0001",
        `${run_id} has ${steers.length} messages that it has not taken up yet`,
      );
    steer_id = commit.newId("steer", commit.nowMs);
    commit.write(run_id, { type: "steer.accepted", payload: { steer_id, text } });
  });
  return { ...reply, body: { ...(reply.body as object), steer_id } };
}

function askedIn({ run, param }: Call): Asking {
  return { run, id: param("request") };
}

async function changed(
  { ingest }: Rooms,
  tenant: string,
  run_id: string,
  decide: (commit: Commit) => void,
): Promise<Reply> {
  const body = await ingest.change({ tenant, run_id }, (commit) => {
    decide(commit);
    return { run_id, state: headIn(commit, run_id).state };
  });
  return { status: 202, body };
}
