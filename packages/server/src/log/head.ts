// What a run's log amounts to for the next writer: numbers, state, pending deltas, what is open. A head is a
// fold of the run's records, so it is never stored per commit: a restart folds the records that came after
// the last stored head.

import {
  type EventType,
  type Facts,
  flowOf,
  isCore,
  isFinal,
  isObject,
  type Mine,
  mineOf,
  type RunState,
  type View,
  withMember,
  withoutMember,
} from "@runwire/protocol";
import {
  type Asked,
  nameCharsMax,
  type ShownPlan,
  shownApproval,
  shownPlan,
  shownPrompt,
  shownQuestion,
  textOf,
} from "./asked.js";
import { covered, type Group, isModelText, pended } from "./groups.js";
import type { Place, ProducerMark, Record } from "./record.js";

export interface ViewHead {
  readonly pos: number;
  readonly seq: number;
}

export interface Request {
  readonly kind: "approval" | "clarify";
  readonly status: "pending" | "resolved" | "closed";
  readonly expires_at: string | null;
  readonly call_id: string | null;
  /** The answer as JSON text: the same answer again is not a conflict. */
  readonly answer: string | null;
  /** What is asked, as long as it is open. */
  readonly asked: Asked | null;
}

/** What a client called the request that made a run, and the digest of that request. */
export interface Idempotency {
  readonly key: string;
  readonly digest: string;
}

/** The run, and the point of its default view, whose conversation another run began with. */
export interface ForkedFrom {
  readonly run_id: string;
  readonly pos: number;
  readonly seq: number;
  readonly checkpoint_id?: string;
  /** The checkpoint that its workspace was restored from; absent where that is fresh. */
  readonly workspace_from?: string;
}

/** What a run was created with. */
export interface RunRecord {
  readonly tenant: string;
  readonly run_id: string;
  readonly parent_id: string | null;
  readonly root_id: string;
  readonly depth: number;
  readonly created_at: string;
  readonly session_id: string | null;
  readonly agent: string | null;
  readonly planning_gate: "off" | "preview" | "required";
  /** Whether someone outside writes it, who must renew a lease of this length. */
  readonly external: boolean;
  readonly lease_ms: number;
  readonly metadata: Facts;
  readonly idempotency: Idempotency | null;
  readonly forked_from: ForkedFrom | null;
}

export interface Steer {
  readonly steer_id: string;
  readonly text: string;
}

export interface Head {
  readonly run: RunRecord;
  readonly views: { readonly [V in View]: ViewHead };
  readonly lastId: string;
  /** Null before event 1, and for feeds. */
  readonly state: RunState | null;
  readonly reason: string | null;
  readonly ended_at: string | null;
  /** When text or reasoning, or a tick, last went to the default log. */
  readonly tickMs: number;
  /** Ordered by `first`. */
  readonly groups: readonly Group[];
  /** Tool calls that have started and not ended, with when. */
  readonly calls: { readonly [call_id: string]: string };
  readonly requests: { readonly [id: string]: Request };
  /** How many these are; absent in heads from before they were counted. */
  readonly asked?: RequestCounts;
  /** What people have said to it and it has not taken up. */
  readonly steers: readonly Steer[];
  /** Live children. */
  readonly children: readonly string[];
  readonly producers: { readonly [id: string]: { readonly epoch: number; readonly seq: number } };
  /** Whether there is model text that no `message.settled` has settled. */
  readonly unsettled: boolean;
  /** Default position of the last model text. */
  readonly saidPos: number;
  readonly title: string | null;
  /** The beginning of what was asked, and the model that was asked for; absent in heads from before these were kept. */
  readonly prompt_preview?: string | null;
  readonly model?: string | null;
  readonly plan_id: string | null;
  readonly plan: ShownPlan | null;
  /** Since when its plan waits for a person; null where none does. */
  readonly awaiting: Pick<Asked, "id" | "at"> | null;
  readonly steps: number;
  /** Of the run and its descendants: a root's is its tree's. */
  readonly usage: { readonly [member: string]: number };
  /** The model that a run of the agent has asked last, and whether it owes for that: until the usage is told. */
  readonly payee?: Payee;
  readonly owes?: boolean;
  /** Whether its full view was given a shorter life, which is over. */
  readonly fullGone: boolean;
}

export interface RequestCounts {
  readonly all: number;
  /** Those that wait. */
  readonly open: number;
}

export interface Payee {
  readonly model: string;
  readonly provider: string;
  readonly isFree: boolean;
}

export function firstHead(run: RunRecord): Head {
  return {
    run,
    views: { default: { pos: 0, seq: 0 }, full: { pos: 0, seq: 0 } },
    lastId: "",
    state: null,
    reason: null,
    ended_at: null,
    tickMs: 0,
    groups: [],
    calls: {},
    requests: {},
    steers: [],
    children: [],
    producers: {},
    unsettled: false,
    saidPos: 0,
    title: null,
    plan_id: null,
    plan: null,
    awaiting: null,
    steps: 0,
    usage: {},
    fullGone: false,
  };
}

/** The head of a tenant's feed: a log that others' records are placed in, with no life of its own. */
export function feedHead(tenant: string, log: string): Head {
  return firstHead({
    tenant,
    run_id: log,
    parent_id: null,
    root_id: log,
    depth: 0,
    created_at: "",
    session_id: null,
    agent: null,
    planning_gate: "off",
    external: false,
    lease_ms: 0,
    metadata: {},
    idempotency: null,
    forked_from: null,
  });
}

/** The head after one more record. `payload` is the record's payload, parsed; `mine` is the fold that this is a step of. */
export function advance(head: Head, record: Record, place: Place, payload: () => Facts, mine: Mine): Head {
  const views = {
    default: place.defaultPos === 0 ? head.views.default : { pos: place.defaultPos, seq: place.defaultSeq },
    full: place.fullPos === 0 ? head.views.full : { pos: place.fullPos, seq: place.fullSeq },
  };
  const moved: Moved = { ...head, views, lastId: record.id };
  const { producer } = record;
  if (producer !== null && producer.log === head.run.run_id)
    moved.producers = withProducer(head.producers, producer);
  if (record.by === head.run.run_id) return ownRecord(moved, record, place, payload, mine);
  if (record.type === "usage") return { ...moved, usage: summed(mine, head.usage, payload()) };
  if (
    record.type === "run.lifecycle" &&
    head.children.includes(record.by) &&
    isFinal(payload().state as RunState)
  ) {
    return { ...moved, children: head.children.filter((child) => child !== record.by) };
  }
  return moved;
}

type Moved = { -readonly [K in keyof Head]: Head[K] };

function ownRecord(head: Moved, record: Record, place: Place, payload: () => Facts, mine: Mine): Head {
  const flow = flowOf(record.type);
  if (flow !== "control") {
    // A delta is pending from the full log until the default log's record that covers it.
    const p = payload();
    const isSaid = isModelText(record.type, p);
    if (place.fullPos !== 0) {
      head.groups = pended(head.groups, record, place.fullPos, p);
      head.unsettled ||= isSaid;
      // A try after a failed one has no request of its own.
      if (head.owes === false && flow === "core-delta" && p.call_id == null) head.owes = true;
      return head;
    }
    head.groups = covered(head.groups, record, p);
    head.tickMs = Date.parse(record.ts);
    if (isSaid) head.saidPos = place.defaultPos;
    return head;
  }
  const p = payload();
  switch (record.type) {
    case "run.lifecycle":
      head.state = p.state as RunState;
      head.reason = (p.reason as string | null | undefined) ?? null;
      head.awaiting = head.state === "awaiting_approval" ? { id: record.id, at: record.ts } : null;
      if (isFinal(head.state)) {
        head.ended_at = record.ts;
        head.plan = null;
      }
      break;
    case "turn.submitted":
      head.prompt_preview = shownPrompt(p.messages);
      head.model = textOf(p.model, nameCharsMax);
      break;
    case "tool.start":
      head.calls = withMember(mine, head.calls, p.call_id as string, record.ts);
      break;
    case "tool.end":
      head.calls = withoutMember(mine, head.calls, p.call_id as string);
      break;
    case "child.spawn":
      head.children = [...head.children, p.child_id as string];
      break;
    case "approval.requested":
      ask(head, p.approval_id as string, request("approval", p, record), mine);
      break;
    case "clarify.requested":
      ask(head, p.clarify_id as string, request("clarify", p, record), mine);
      break;
    case "approval.resolved":
      resolve(head, "approval", p.approval_id as string, p, mine);
      break;
    case "clarify.resolved":
      resolve(head, "clarify", p.clarify_id as string, p, mine);
      break;
    case "steer.accepted":
      if (typeof p.steer_id === "string")
        head.steers = [...head.steers, { steer_id: p.steer_id, text: p.text as string }];
      break;
    case "steer.delivered":
    case "steer.leftover":
      head.steers = head.steers.filter(({ steer_id }) => steer_id !== p.steer_id);
      break;
    case "message.settled":
      head.unsettled = false;
      break;
    case "plan.proposal":
      head.plan = shownPlan(p.plan);
      head.plan_id = head.plan.plan_id;
      break;
    case "step.boundary":
      head.steps += 1;
      break;
    case "title":
      head.title = p.title as string;
      break;
    case "usage":
      head.usage = summed(mine, head.usage, p);
      head.owes &&= false;
      break;
    case "model.requested":
      // What outside producers pay is theirs to tell.
      if (head.run.external) break;
      head.payee = { model: String(p.model), provider: String(p.provider), isFree: p.free === true };
      head.owes = true;
      break;
    case "model.failed":
      head.owes &&= false;
      break;
    default:
      break;
  }
  return head;
}

function request(kind: Request["kind"], p: Facts, { id, ts }: Record): Request {
  const expires_at = typeof p.expires_at === "string" ? p.expires_at : null;
  const call_id = typeof p.call_id === "string" ? p.call_id : null;
  const shown = kind === "approval" ? shownApproval(p) : shownQuestion(p);
  return { kind, status: "pending", expires_at, call_id, answer: null, asked: { id, at: ts, shown } };
}

function ask(head: Moved, id: string, asked: Request, mine: Mine): void {
  const { all, open } = requestCounts(head);
  const known = Object.hasOwn(head.requests, id) ? head.requests[id] : undefined;
  head.asked = {
    all: known === undefined ? all + 1 : all,
    open: known?.status === "pending" ? open : open + 1,
  };
  head.requests = withMember(mine, head.requests, id, asked);
}

function resolve(head: Moved, kind: Request["kind"], id: string, p: Facts, mine: Mine): void {
  const known = pendingRequest(head.requests, kind, id);
  if (known === undefined) return;
  const { all, open } = requestCounts(head);
  head.asked = { all, open: open - 1 };
  const closed = p.outcome === "expired" || p.outcome === "closed";
  const status = closed ? "closed" : "resolved";
  const answered: Request = { ...known, status, answer: answerOf(known.kind, p), asked: null };
  head.requests = withMember(mine, head.requests, id, answered);
}

export function requestCounts({ asked, requests }: Head): RequestCounts {
  if (asked !== undefined) return asked;
  const all = Object.values(requests);
  return { all: all.length, open: all.filter(({ status }) => status === "pending").length };
}

/** The open request of this kind and id. An approval under a question's id resolves nothing. */
export function pendingRequest(
  requests: Head["requests"],
  kind: Request["kind"],
  id: string,
): Request | undefined {
  const known = Object.hasOwn(requests, id) ? requests[id] : undefined;
  return known?.kind === kind && known.status === "pending" ? known : undefined;
}

/** An answer as it is compared with the next one: the payload's, or what stands for it where it was spilled. */
export function answerOf(kind: Request["kind"], p: Facts): string {
  const member = kind === "approval" ? "input" : "answer";
  const { spilled } = p;
  const given = isObject(spilled) && Object.hasOwn(spilled, member) ? spilled[member] : (p[member] ?? null);
  return JSON.stringify(kind === "approval" ? [p.decision, given] : given);
}

export function withProducer(producers: Head["producers"], mark: ProducerMark): Head["producers"] {
  return { ...producers, [mark.id]: { epoch: mark.epoch, seq: mark.seq } };
}

function summed(mine: Mine, usage: Head["usage"], more: Facts): Head["usage"] {
  const sum = mineOf<{ [member: string]: number }>(mine, usage);
  for (const [member, value] of Object.entries(more)) {
    if (typeof value === "number")
      sum[member] = (Object.hasOwn(sum, member) ? (sum[member] ?? 0) : 0) + value;
  }
  return sum;
}

export function isEnded(head: Head): boolean {
  return head.state !== null && isFinal(head.state);
}

/** The next number of a record of this type in a view. */
export function nextIn(view: ViewHead, type: EventType): ViewHead {
  return { pos: view.pos + 1, seq: view.seq + (isCore(type) ? 1 : 0) };
}
