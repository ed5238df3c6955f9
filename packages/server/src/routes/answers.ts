// People answer what a run asks. The first answer wins, and that is decided inside the commit; so is what an approval
// stands for beyond its own call.

import { type Draft, type Facts, RunwireError } from "@runwire/protocol";
import { z } from "zod";
import { wrongBody } from "../http/check.js";
import type { Reply } from "../http/route.js";
import { facts, reason } from "../http/shapes.js";
import { nameCharsMax } from "../log/asked.js";
import type { Commit } from "../log/commit.js";
import type { Head } from "../log/head.js";
import { headIn } from "../log/lifecycle.js";
import { answerOf, type Request } from "../log/requests.js";
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
  body: z.output<typeof approvalAnswer>,
): Promise<Reply> {
  const { decision, input } = body;
  const resolved = (id: string, more: Facts): Draft => ({
    type: "approval.resolved",
    payload: { approval_id: id, decision, ...more },
  });
  const approval_id = asked.id;
  if (input != null && decision !== "deny") await checkInput(rooms, asked, input);
  const given: Facts = {
    outcome: "answered",
    reason: body.reason ?? null,
    ...(input == null ? {} : { input }),
  };
  return answer(rooms, asked, "approval", resolved(approval_id, given), (commit, asking, request) => {
    const tool = toolOf(request);
    if (tool === null || decision === "once" || decision === "deny") return;
    const { run_id, root_id, session_id } = asking.run;
    if (decision === "session" && session_id === null) return;
    commit.allow({ tool, session_id: decision === "session" ? session_id : null, run_id, approval_id });
    // What waits for the same word already need not be asked about again.
    for (const [run, id] of waitingFor(commit, root_id, tool))
      commit.write(run, resolved(id, { outcome: "covered", reason: null, covered_by: approval_id }));
  });
}

export async function answerClarification(
  rooms: Rooms,
  asked: Asking,
  { answer: given }: z.output<typeof clarifyAnswer>,
): Promise<Reply> {
  if (given == null) throw wrongBody("`answer` is needed");
  return answer(rooms, asked, "clarify", {
    type: "clarify.resolved",
    payload: { clarify_id: asked.id, answer: given, outcome: "answered" },
  });
}

/** The same again is fine, another is a conflict, one that came too late is gone. */
async function answer(
  rooms: Rooms,
  { run, id }: Asking,
  kind: Request["kind"],
  draft: Draft,
  also: (commit: Commit, asking: Head, request: Request) => void = () => {},
): Promise<Reply> {
  const { run_id } = run;
  await rooms.ingest.change(run, (commit) => {
    const asking = headIn(commit, run_id);
    const request = requestIn(asking, kind, id);
    if (request.status === "closed" || (request.status === "pending" && isLate(commit, request))) {
      throw new RunwireError("KAI-RUN-REQUEST-0003", id);
    }
    if (request.status === "resolved") {
      if (request.answer === answerOf(kind, commit.asWritten(draft).payload as Facts)) return;
      throw new RunwireError("KAI-RUN-REQUEST-0002", `${id}: ${firstAnswer(request)}`);
    }
    commit.write(run_id, draft);
    also(commit, asking, request);
  });
  return { status: 200, body: { run_id, request_id: id, status: "resolved" } };
}

/** What won, without what somebody wrote: an error holds no payload. */
function firstAnswer({ kind, answer: won }: Request): string {
  if (kind === "clarify" || won === null) return "the first answer was another text";
  const [decision, input] = JSON.parse(won) as readonly [string, unknown];
  return `the first answer was \`${decision}\`${input === null ? "" : ", with arguments of its own"}`;
}

function isLate({ nowMs }: Commit, { expires_at }: Request): boolean {
  return expires_at !== null && Date.parse(expires_at) <= nowMs;
}

function requestIn({ requests }: Head, kind: Request["kind"], id: string): Request {
  const request = Object.hasOwn(requests, id) ? requests[id] : undefined;
  if (request?.kind !== kind) throw new RunwireError("KAI-RUN-REQUEST-0001", id);
  return request;
}

/** Arguments that the agent's tool would not take are refused while somebody is there to mend them. */
async function checkInput({ store, agent }: Rooms, { run, id }: Asking, input: Facts): Promise<void> {
  const head = await store.head(run);
  if (head === undefined || head.run.external) return;
  const tool = toolOf(requestIn(head, "approval", id));
  if (tool !== null) await agent?.checkInput(tool, input);
}

/** Null for one that is answered, or whose name is too long to be kept whole. */
function toolOf({ asked }: Request): string | null {
  const tool = asked?.shown.tool;
  return typeof tool === "string" && tool.length < nameCharsMax ? tool : null;
}

/** Requests for this tool that wait in the run or below it; not those whose time is over. */
function waitingFor(commit: Commit, run_id: string, tool: string): readonly (readonly [string, string])[] {
  const { requests, children } = headIn(commit, run_id);
  const own = Object.entries(requests).filter(
    ([, request]) =>
      request.kind === "approval" &&
      request.status === "pending" &&
      !isLate(commit, request) &&
      toolOf(request) === tool,
  );
  return [
    ...own.map(([id]) => [run_id, id] as const),
    ...children.flatMap((child) => waitingFor(commit, child, tool)),
  ];
}
