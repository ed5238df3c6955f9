// How a request is answered, inside a commit: the first answer wins, and one that stands for more than its own call
// answers what waits for the same tool.

import { type Draft, type Facts, RunwireError } from "@runwire/protocol";
import { nameCharsMax } from "./asked.js";
import type { Commit } from "./commit.js";
import type { Head } from "./head.js";
import { headIn } from "./lifecycle.js";
import { answerOf, type Request } from "./requests.js";

export interface ApprovalAnswer {
  readonly decision: "once" | "session" | "always" | "deny";
  readonly reason: string | null;
  /** Replaces the arguments of the call. */
  readonly input?: Facts;
}

export function resolveApproval(
  commit: Commit,
  run_id: string,
  approval_id: string,
  { decision, ...given }: ApprovalAnswer,
): void {
  const resolved = (id: string, more: Facts): Draft => ({
    type: "approval.resolved",
    payload: { approval_id: id, decision, ...more },
  });
  const draft = resolved(approval_id, { outcome: "answered", ...given });
  const asking = headIn(commit, run_id);
  const request = requestIn(asking, "approval", approval_id);
  if (!isFirst(commit, approval_id, request, draft)) return;
  commit.write(run_id, draft);
  const tool = toolOf(request);
  if (tool === null || decision === "once" || decision === "deny") return;
  const { root_id, session_id } = asking.run;
  if (decision === "session" && session_id === null) return;
  commit.allow({ tool, session_id: decision === "session" ? session_id : null, run_id, approval_id });
  // What waits for the same word already need not be asked about again.
  for (const [run, id] of waitingFor(commit, root_id, tool))
    commit.write(run, resolved(id, { outcome: "covered", reason: null, covered_by: approval_id }));
}

export function resolveClarification(
  commit: Commit,
  run_id: string,
  clarify_id: string,
  answer: unknown,
): void {
  const draft: Draft = { type: "clarify.resolved", payload: { clarify_id, answer, outcome: "answered" } };
  const request = requestIn(headIn(commit, run_id), "clarify", clarify_id);
  if (isFirst(commit, clarify_id, request, draft)) commit.write(run_id, draft);
}

/** The same again is fine, another is a conflict, one that came too late is gone. */
function isFirst(commit: Commit, id: string, request: Request, draft: Draft): boolean {
  const { kind, status } = request;
  if (status === "closed" || (status === "pending" && isLate(commit, request))) {
    throw new RunwireError("KAI-RUN-REQUEST-0003", id);
  }
  if (status === "pending") return true;
  if (request.answer === answerOf(kind, commit.asWritten(draft).payload as Facts)) return false;
  throw new RunwireError("KAI-RUN-REQUEST-0002", `${id}: ${firstAnswer(request)}`);
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

export function requestIn({ requests }: Head, kind: Request["kind"], id: string): Request {
  const request = Object.hasOwn(requests, id) ? requests[id] : undefined;
  if (request?.kind !== kind) throw new RunwireError("KAI-RUN-REQUEST-0001", id);
  return request;
}

/** Null for one that is answered, or whose name is too long to be kept whole. */
export function toolOf({ asked }: Request): string | null {
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
