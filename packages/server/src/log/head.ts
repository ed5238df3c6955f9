// What a run's log amounts to for the next writer: numbers, state, pending deltas, what is open. A head is a
// fold of the run's records, so it is never stored per commit: a restart folds the records that came after
// the last stored head.

import {
  addedUsage,
  type Elsewhere,
  type EventType,
  elsewhere,
  type Facts,
  flowOf,
  isCore,
  isFinal,
  type Mine,
  type RunState,
  RunwireError,
  type Usage,
  type View,
  withMember,
  withoutMember,
} from "@runwire/protocol";
import {
  type Asked,
  nameCharsMax,
  type ShownPlan,
  shownPlan,
  shownPrompt,
  textCharsMax,
  textOf,
} from "./asked.js";
import { covered, type Group, isModelText, pended } from "./groups.js";
import type { Place, ProducerMark, Record } from "./record.js";
import { ask, newRequest, type RequestCounts, type Requests, resolve } from "./requests.js";
import type { RunRecord } from "./run-record.js";

export interface ViewHead {
  readonly pos: number;
  readonly seq: number;
}

export interface Steer {
  readonly steer_id: string;
  readonly text: string;
  /** Where the whole text is, of one that lies beside the log. */
  readonly spilled?: { readonly text: Elsewhere };
}

export interface Head {
  readonly run: RunRecord;
  readonly views: { readonly [V in View]: ViewHead };
  readonly lastId: string;
  /** Null before event 1, and for feeds. */
  readonly state: RunState | null;
  /** Its beginning. */
  readonly reason: string | null;
  readonly ended_at: string | null;
  /** When text or reasoning, or a tick, last went to the default log. */
  readonly tickMs: number;
  /** Ordered by `first`. */
  readonly groups: readonly Group[];
  /** Tool calls that have started and not ended, with when. */
  readonly calls: { readonly [call_id: string]: string };
  readonly requests: Requests;
  /** How many these are. */
  readonly asked: RequestCounts;
  /** What people have said to it and it has not taken up. */
  readonly steers: readonly Steer[];
  /** Live children. */
  readonly children: readonly string[];
  readonly producers: { readonly [id: string]: { readonly epoch: number; readonly seq: number } };
  /** Whether there is model text that no `message.settled` has settled. */
  readonly unsettled: boolean;
  /** Default position of the last model text, or of what has settled it since. */
  readonly saidPos: number;
  readonly title: string | null;
  /** The beginning of what was asked, and the model that was asked for. */
  readonly prompt_preview: string | null;
  readonly model: string | null;
  readonly plan_id: string | null;
  readonly plan: ShownPlan | null;
  /** Since when its plan waits for a person; null where none does. */
  readonly awaiting: Omit<Asked, "shown"> | null;
  readonly steps: number;
  /** Of the run and its descendants: a root's is its tree's. */
  readonly usage: Usage;
  /** The model that a run of the agent has asked last, and whether it owes for that: until the usage is told. */
  readonly payee: Payee | null;
  readonly owes: boolean | null;
  /** Whether its full view was given a shorter life, which is over. */
  readonly fullGone: boolean;
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
    asked: { all: 0, open: 0 },
    steers: [],
    children: [],
    producers: {},
    unsettled: false,
    saidPos: 0,
    title: null,
    prompt_preview: null,
    model: null,
    plan_id: null,
    plan: null,
    awaiting: null,
    steps: 0,
    usage: {},
    payee: null,
    owes: null,
    fullGone: false,
  };
}

/** A head from the disk. All have the members of the first, in its order: objects of one shape are copied fastest. */
export function storedHead(run: string, head: string | null): Head {
  const first = firstHead(JSON.parse(run) as RunRecord);
  return head === null ? first : { ...first, ...(JSON.parse(head) as Partial<Head>) };
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
    moved.producers = withProducer(head.producers, producer, mine);
  if (record.by === head.run.run_id) return ownRecord(moved, record, place, payload, mine);
  if (record.type === "usage") return { ...moved, usage: addedUsage(mine, head.usage, payload()) };
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
      head.reason = textOf(p.reason, textCharsMax);
      head.awaiting =
        head.state === "awaiting_approval"
          ? { id: record.id, at: record.ts, prompt_preview: head.prompt_preview }
          : null;
      if (isFinal(head.state)) {
        head.ended_at = record.ts;
        head.plan = null;
      }
      break;
    case "control.requested":
      // What its parent's pause had paused is paused for itself from here on, and no change of the state tells of it.
      if (p.action === "pause" && head.state === "paused") head.reason = textOf(p.reason, textCharsMax);
      break;
    case "turn.submitted":
      // A later one may say only that there is another turn.
      head.prompt_preview = shownPrompt(p) ?? head.prompt_preview;
      head.model = textOf(p.model, nameCharsMax) ?? head.model;
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
      ask(head, p.approval_id as string, newRequest("approval", p, record, head.prompt_preview), mine);
      break;
    case "clarify.requested":
      ask(head, p.clarify_id as string, newRequest("clarify", p, record, head.prompt_preview), mine);
      break;
    case "approval.resolved":
      resolve(head, "approval", p.approval_id as string, p, mine);
      break;
    case "clarify.resolved":
      resolve(head, "clarify", p.clarify_id as string, p, mine);
      break;
    case "steer.accepted":
      if (typeof p.steer_id === "string") head.steers = [...head.steers, steerIn(p.steer_id, p)];
      break;
    case "steer.delivered":
    case "steer.leftover":
      head.steers = head.steers.filter(({ steer_id }) => steer_id !== p.steer_id);
      break;
    case "message.settled":
      head.unsettled = false;
      head.saidPos = place.defaultPos;
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
      head.usage = addedUsage(mine, head.usage, p);
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

function steerIn(steer_id: string, p: Facts): Steer {
  const where = elsewhere(p, "text");
  return { steer_id, text: p.text as string, ...(where === undefined ? {} : { spilled: { text: where } }) };
}

export function withProducer(
  producers: Head["producers"],
  { id, epoch, seq }: ProducerMark,
  mine: Mine,
): Head["producers"] {
  return withMember<Head["producers"][string]>(mine, producers, id, { epoch, seq });
}

/** Throws for a run to which nothing can be added any more. */
export function checkLive(head: Head): void {
  if (isEnded(head)) throw new RunwireError("KAI-RUN-ENDED-0001", `${head.run.run_id} is ${head.state}`);
}

/** Throws for a run that nobody outside writes: its requests and its state are not for whoever may append. */
export function checkExternal({ run }: Head): void {
  if (!run.external) throw new RunwireError("KAI-RUN-AGENT-0002", run.run_id);
}

/** For a run that there was. */
export function wasErased(run_id: string): RunwireError {
  return new RunwireError("KAI-STREAM-CONN-0002", `${run_id} was erased`);
}

/** Whether a run ends between these two; it may be new. */
export function endsBetween(before: Head | undefined, after: Head): boolean {
  return isEnded(after) && (before === undefined || !isEnded(before));
}

export function isEnded(head: Head): boolean {
  return head.state !== null && isFinal(head.state);
}

/** The next number of a record of this type in a view. */
export function nextIn(view: ViewHead, type: EventType): ViewHead {
  return { pos: view.pos + 1, seq: view.seq + (isCore(type) ? 1 : 0) };
}
