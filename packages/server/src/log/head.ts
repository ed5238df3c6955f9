// What a run's log amounts to for the next writer: numbers, state, pending deltas, what is open. A head is a
// fold of the run's records (advance.ts), so it is never stored per commit: a restart folds the records that came
// after the last stored head.

import {
  type Elsewhere,
  type EventType,
  isCore,
  isFinal,
  type RunState,
  RunwireError,
  type Usage,
  type View,
} from "@runwire/protocol";
import type { Asked, ShownPlan } from "./asked.js";
import type { Group } from "./groups.js";
import type { RequestCounts, Requests } from "./requests.js";
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
