// The inbox: what waits for a person, across the runs of a tenant. What waits is part of each run's head, so the inbox
// is nowhere stored: it is what the heads of live runs say. Its feed tells of the events that change it.

import type { EventType, Facts, InboxChange, InboxItem } from "@runwire/protocol";
import type { Asked } from "./asked.js";
import type { Head } from "./head.js";
import { pendingRequest } from "./requests.js";

export interface Waiting {
  /** The id of the event that asked: items are shown in this order. */
  readonly since: string;
  readonly item: InboxItem;
}

/** Whether an event of this run changes what the inbox shows. `head` is as it was before. */
export function changesInbox(head: Head, type: EventType, payload: Facts): boolean {
  switch (type) {
    case "approval.requested":
    case "clarify.requested":
      return true;
    case "approval.resolved":
      return pendingRequest(head.requests, "approval", payload.approval_id as string) !== undefined;
    case "clarify.resolved":
      return pendingRequest(head.requests, "clarify", payload.clarify_id as string) !== undefined;
    case "run.lifecycle":
      return (head.state === "awaiting_approval") !== (payload.state === "awaiting_approval");
    case "plan.proposal":
      return head.state === "awaiting_approval";
    case "title":
      // Whether anything waits in those below is not looked up: there may be thousands, and for no item it says nothing.
      return head.run.parent_id === null && (isWaiting(head) || head.children.length > 0);
    default:
      return false;
  }
}

/** What such an event did to the inbox. `head` is as it is after it. */
export function inboxChange(
  head: Head,
  type: EventType,
  payload: Facts,
  title: string | null,
): InboxChange | undefined {
  switch (type) {
    case "approval.requested":
    case "approval.resolved":
      return changeOf(head, payload.approval_id as string, title);
    case "clarify.requested":
    case "clarify.resolved":
      return changeOf(head, payload.clarify_id as string, title);
    case "run.lifecycle":
    case "plan.proposal": {
      const plan = planOf(head, title);
      return plan === undefined ? { gone: planItemId(head) } : { item: plan.item };
    }
    case "title":
      return { title: payload.title as string, root_id: head.run.run_id };
    default:
      return undefined;
  }
}

export function isWaiting(head: Head): boolean {
  return head.awaiting !== null || head.asked.open > 0;
}

/** What waits in one run. */
export function waitingIn(head: Head, title: string | null): readonly Waiting[] {
  const plan = planOf(head, title);
  const requests = Object.keys(head.requests).flatMap((id) => requestOf(head, id, title) ?? []);
  return plan === undefined ? requests : [plan, ...requests];
}

function changeOf(head: Head, id: string, title: string | null): InboxChange | undefined {
  const waiting = requestOf(head, id, title);
  if (waiting !== undefined) return { item: waiting.item };
  const known = head.requests[id];
  return known === undefined ? undefined : { gone: requestItemId(head, known.kind, id) };
}

function requestOf(head: Head, id: string, title: string | null): Waiting | undefined {
  const request = head.requests[id];
  if (request?.status !== "pending" || request.asked === null) return undefined;
  const { kind, asked, expires_at } = request;
  const item_id = requestItemId(head, kind, id);
  return {
    since: asked.id,
    item: {
      item_id,
      kind,
      ...ofRun(head, asked),
      request_id: id,
      asked_at: asked.at,
      expires_at,
      title,
      ...asked.shown,
    },
  };
}

function planOf(head: Head, title: string | null): Waiting | undefined {
  const { awaiting, plan } = head;
  if (awaiting === null) return undefined;
  return {
    since: awaiting.id,
    item: {
      item_id: planItemId(head),
      kind: "plan",
      ...ofRun(head, awaiting),
      request_id: head.plan_id,
      asked_at: awaiting.at,
      expires_at: null,
      title,
      steps: plan?.steps ?? [],
      steps_total: plan?.steps_total ?? 0,
    },
  };
}

// What the run is asked later changes nothing of what it has asked: no event of the feed would tell.
function ofRun({ run, prompt_preview: now }: Head, { prompt_preview = now }: Omit<Asked, "shown">) {
  const { run_id, root_id, session_id } = run;
  return { run_id, root_id, session_id, prompt_preview };
}

// No id holds a slash.
function requestItemId({ run }: Head, kind: string, id: string): string {
  return `${run.run_id}/${kind}/${id}`;
}

function planItemId({ run }: Head): string {
  return `${run.run_id}/plan`;
}
