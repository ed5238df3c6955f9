// What a run asks of people: its approvals and questions, and how each was answered.

import { createHash } from "node:crypto";
import { type Facts, isObject, type Mine, withMember } from "@runwire/protocol";
import { type Asked, shownApproval, shownQuestion } from "./asked.js";
import type { Record } from "./record.js";

export interface Request {
  readonly kind: "approval" | "clarify";
  readonly status: "pending" | "resolved" | "closed";
  readonly expires_at: string | null;
  /** The answer as JSON text, or what stands for it: the same answer again is not a conflict. */
  readonly answer: string | null;
  /** What is asked, as long as it is open. */
  readonly asked: Asked | null;
}

export interface Requests {
  readonly [id: string]: Request;
}

export function newRequest(
  kind: Request["kind"],
  p: Facts,
  { id, ts }: Record,
  prompt_preview: string | null,
): Request {
  const expires_at = typeof p.expires_at === "string" ? p.expires_at : null;
  const shown = kind === "approval" ? shownApproval(p) : shownQuestion(p);
  const asked = { id, at: ts, shown, prompt_preview };
  return { kind, status: "pending", expires_at, answer: null, asked };
}

export interface RequestCounts {
  readonly all: number;
  /** Those that wait. */
  readonly open: number;
}

/** What a head holds of them. */
interface Asking {
  requests: Requests;
  asked: RequestCounts;
}

export function ask(head: Asking, id: string, request: Request, mine: Mine): void {
  const { all, open } = head.asked;
  const known = Object.hasOwn(head.requests, id) ? head.requests[id] : undefined;
  head.asked = {
    all: known === undefined ? all + 1 : all,
    open: known?.status === "pending" ? open : open + 1,
  };
  head.requests = withMember(mine, head.requests, id, request);
}

/** An answer that nobody asked for changes nothing. */
export function resolve(head: Asking, kind: Request["kind"], id: string, p: Facts, mine: Mine): void {
  const known = pendingRequest(head.requests, kind, id);
  if (known === undefined) return;
  const { all, open } = head.asked;
  head.asked = { all, open: open - 1 };
  const closed = p.outcome === "expired" || p.outcome === "closed";
  const status = closed ? "closed" : "resolved";
  const answered: Request = { ...known, status, answer: answerOf(known.kind, p), asked: null };
  head.requests = withMember(mine, head.requests, id, answered);
}

/** The open request of this kind and id. An approval under a question's id resolves nothing. */
export function pendingRequest(requests: Requests, kind: Request["kind"], id: string): Request | undefined {
  const known = Object.hasOwn(requests, id) ? requests[id] : undefined;
  return known?.kind === kind && known.status === "pending" ? known : undefined;
}

/** An answer as it is compared with the next one: the payload's, or what stands for it where it was spilled. */
export function answerOf(kind: Request["kind"], p: Facts): string {
  const member = kind === "approval" ? "input" : "answer";
  const { spilled } = p;
  const given = isObject(spilled) && Object.hasOwn(spilled, member) ? spilled[member] : (p[member] ?? null);
  return JSON.stringify(kind === "approval" ? [brief(p.decision), brief(given)] : brief(given));
}

const answerCharsMax = 200;

/** A run's answers are all kept with its head, so of a long one its hash is. */
function brief(given: unknown): unknown {
  const text = JSON.stringify(given) ?? "";
  return text.length > answerCharsMax ? `sha256:${createHash("sha256").update(text).digest("hex")}` : given;
}
