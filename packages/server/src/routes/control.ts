// People steer runs. The server changes the state at once; whoever writes the run learns of it from the events
// on that run.

import { type Draft, type Facts, type RunState, RunwireError } from "@runwire/protocol";
import { readObject } from "../http/body.js";
import {
  booleanMember,
  choiceMember,
  idMember,
  objectMember,
  objectsMember,
  onlyMembers,
  requiredString,
  stringMember,
  wrong,
} from "../http/members.js";
import type { Call, Reply, Route } from "../http/route.js";
import type { Commit } from "../log/commit.js";
import { answerOf, type Head, isEnded, type Request } from "../log/head.js";
import { forbidden, headIn, move } from "../log/lifecycle.js";
import type { Rooms } from "../rooms.js";

export function controlRoutes(rooms: Rooms): readonly Route[] {
  const post = (name: string, does: string, handle: (rooms: Rooms, call: Call) => Promise<Reply>): Route => ({
    method: "POST",
    path: `/v1/agent/runs/:id/${name}`,
    does,
    handle: (call) => handle(rooms, call),
  });
  return [
    post("approve_plan", "approve, edit or reject a proposed plan", approvePlan),
    post("pause", "pause a run", pause),
    post("resume", "resume a paused run", resume),
    post("redirect", "give a run another direction", redirect),
    post("steer", "say something to a running run", steer),
    post("abort", "end a run", abort),
    post("approvals/:request", "answer an approval request", answerApproval),
    post("clarifications/:request", "answer a question", answerClarification),
  ];
}

async function approvePlan(rooms: Rooms, { req, run: { run_id }, ...call }: Call): Promise<Reply> {
  const body = await readObject(req);
  onlyMembers(body, ["plan_id", "approved", "steps", "reason"]);
  const plan_id = idMember(body, "plan_id");
  const approved = booleanMember(body, "approved") ?? true;
  const steps = objectsMember(body, "steps");
  const reason = stringMember(body, "reason") ?? null;
  return changed(rooms, call.tenant, run_id, (commit) => {
    const head = live(commit, run_id);
    if (head.state !== "awaiting_approval") throw forbidden(head, "has no plan that waits for an answer");
    if (plan_id !== undefined && plan_id !== head.plan_id) {
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

async function pause(rooms: Rooms, call: Call): Promise<Reply> {
  const reason = await onlyReason(call);
  return changed(rooms, call.tenant, call.run.run_id, (commit) =>
    to(commit, call.run.run_id, "paused", { action: "pause", reason }, "paused"),
  );
}

async function resume(rooms: Rooms, call: Call): Promise<Reply> {
  const reason = await onlyReason(call);
  const { run_id } = call.run;
  return changed(rooms, call.tenant, run_id, (commit) => {
    const head = live(commit, run_id);
    // Not from every state that may become running: a plan that waits is approved, not resumed.
    if (head.state !== "paused" && head.state !== "running")
      throw forbidden(head, "can be resumed only while it is paused");
    to(commit, run_id, "running", { action: "resume", reason }, "resumed");
  });
}

async function redirect(rooms: Rooms, { req, tenant, run: { run_id } }: Call): Promise<Reply> {
  const body = await readObject(req);
  onlyMembers(body, ["instruction"]);
  const instruction = requiredString(body, "instruction");
  return changed(rooms, tenant, run_id, (commit) =>
    to(commit, run_id, "redirecting", { action: "redirect", instruction }, "redirected"),
  );
}

async function steer(rooms: Rooms, { req, tenant, run: { run_id } }: Call): Promise<Reply> {
  const body = await readObject(req);
  onlyMembers(body, ["text"]);
  const text = requiredString(body, "text");
  let steer_id = "";
  const reply = await changed(rooms, tenant, run_id, (commit) => {
    live(commit, run_id);
    steer_id = commit.newId("steer", commit.nowMs);
    commit.write(run_id, { type: "steer.accepted", payload: { steer_id, text } });
  });
  return { ...reply, body: { ...(reply.body as object), steer_id } };
}

async function abort(rooms: Rooms, call: Call): Promise<Reply> {
  const reason = await onlyReason(call);
  const { run_id } = call.run;
  return changed(rooms, call.tenant, run_id, (commit) => {
    const head = headIn(commit, run_id);
    if (head.state === "aborted") return;
    live(commit, run_id);
    ask(commit, run_id, { action: "abort", reason });
    move(commit, run_id, { state: "aborted", reason: reason ?? "aborted" });
  });
}

async function answerApproval(rooms: Rooms, call: Call): Promise<Reply> {
  const body = await readObject(call.req);
  onlyMembers(body, ["decision", "reason", "input"]);
  const decision = choiceMember(body, "decision", ["once", "session", "always", "deny"]);
  if (decision === undefined) throw wrong("`decision` is needed: once, session, always or deny");
  const reason = stringMember(body, "reason") ?? null;
  const input = objectMember(body, "input");
  return answer(rooms, call, "approval", (approval_id) => ({
    type: "approval.resolved",
    payload: {
      approval_id,
      decision,
      outcome: "answered",
      reason,
      ...(input === undefined ? {} : { input }),
    },
  }));
}

async function answerClarification(rooms: Rooms, call: Call): Promise<Reply> {
  const body = await readObject(call.req);
  onlyMembers(body, ["answer"]);
  const { answer: given } = body;
  if (given == null) throw wrong("`answer` is needed");
  return answer(rooms, call, "clarify", (clarify_id) => ({
    type: "clarify.resolved",
    payload: { clarify_id, answer: given, outcome: "answered" },
  }));
}

/** First answer wins: the same again is fine, another is a conflict, one that came too late is gone. */
async function answer(
  rooms: Rooms,
  call: Call,
  kind: Request["kind"],
  draftOf: (id: string) => { type: "approval.resolved" | "clarify.resolved"; payload: Facts },
): Promise<Reply> {
  const { run_id } = call.run;
  const id = call.param("request");
  await rooms.ingest.change(call.run, (commit) => {
    const { requests } = headIn(commit, run_id);
    const request = Object.hasOwn(requests, id) ? requests[id] : undefined;
    if (request?.kind !== kind) throw new RunwireError("KAI-RUN-REQUEST-0001", id);
    const late = request.expires_at !== null && Date.parse(request.expires_at) <= commit.nowMs;
    if (request.status === "closed" || (request.status === "pending" && late)) {
      throw new RunwireError("KAI-RUN-REQUEST-0003", id);
    }
    const draft = draftOf(id) as Draft;
    if (request.status === "resolved") {
      if (request.answer === answerOf(kind, commit.asWritten(draft).payload as Facts)) return;
      throw new RunwireError("KAI-RUN-REQUEST-0002", `${id} was answered first by someone else`);
    }
    commit.write(run_id, draft);
  });
  return { status: 200, body: { run_id, request_id: id, status: "resolved" } };
}

async function onlyReason({ req }: Call): Promise<string | null> {
  const body = await readObject(req);
  onlyMembers(body, ["reason"]);
  return stringMember(body, "reason") ?? null;
}

/** Asks the producer and changes the state, where that is a change at all. */
function to(
  commit: Commit,
  run_id: string,
  state: RunState,
  asked: Facts & { action: string },
  because: string,
): void {
  if (live(commit, run_id).state === state) return;
  ask(commit, run_id, asked);
  const reason = (asked.reason as string | null | undefined) ?? because;
  move(commit, run_id, { state, reason });
}

function ask(commit: Commit, run_id: string, payload: Facts & { action: string }): void {
  commit.write(run_id, { type: "control.requested", payload });
}

function live(commit: Commit, run_id: string): Head {
  const head = headIn(commit, run_id);
  if (isEnded(head)) throw new RunwireError("KAI-RUN-ENDED-0001", `${run_id} is ${head.state}`);
  return head;
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
