// The gateway's plain requests, typed. Each throws a RunwireError with the server's code, and none retries by
// itself: whether an order may be given twice is the caller's to know.

import type { Draft, EvidencePack, Facts, Inbox, PlanStep, Review } from "@runwire/protocol";
import type {
  Appended,
  CheckpointsAnswer,
  ChildPage,
  CreatedRun,
  EventsPage,
  ForkedRun,
  MessagesPage,
  NewChild,
  NewFork,
  NewRewind,
  NewRun,
  Ordered,
  ProducerPosition,
  RunPage,
  RunQuery,
  RunRecord,
  SessionAnswer,
  SessionPage,
  SnapshotAnswer,
  SpawnedChild,
  StandingApprovals,
  StepsAnswer,
  Ticket,
  TicketFor,
  Whoami,
} from "./answers.js";
import { askJson, type Call, type Endpoint, type HeaderFields, queryOf, runPath } from "./http.js";

export type Gateway = ReturnType<typeof gateway>;

export function gateway(endpoint: Endpoint) {
  async function request<T>(call: Call): Promise<T> {
    const answer = await askJson(endpoint, call);
    if (!answer.ok) throw answer.error;
    return answer.value as T;
  }

  const get = <T>(path: string) => request<T>({ path });
  const post = <T>(path: string, body: object = {}, headers: HeaderFields = {}) =>
    request<T>({ method: "POST", path, body: JSON.stringify(body), headers });
  const order = <T = Ordered>(run_id: string, name: string, body?: object) =>
    post<T>(runPath(run_id, `/${name}`), body);

  return {
    createRun: (run: NewRun, idempotencyKey?: string) =>
      post<CreatedRun>("/v1/agent/runs", run, keyed(idempotencyKey)),
    /** Another run that begins with this one's conversation; this one stays as it is. */
    fork: (run_id: string, from: NewFork = {}, idempotencyKey?: string) =>
      post<ForkedRun>(runPath(run_id, "/fork?dialect=runwire"), from, keyed(idempotencyKey)),
    /** The same from a checkpoint that is kept, with its workspace; this one ends. */
    rewind: (run_id: string, to: NewRewind, idempotencyKey?: string) =>
      post<ForkedRun>(runPath(run_id, "/rewind"), to, keyed(idempotencyKey)),
    listRuns: (query: RunQuery = {}) => get<RunPage>(`/v1/agent/runs${queryOf({ ...query })}`),
    getRun: (run_id: string) => get<RunRecord>(runPath(run_id)),
    /** Erases the whole tree, for good. */
    eraseRun: (run_id: string) => request<void>({ method: "DELETE", path: runPath(run_id) }),

    listSessions: (query: Pick<RunQuery, "limit" | "cursor"> = {}) =>
      get<SessionPage>(`/v1/agent/sessions${queryOf({ ...query })}`),
    session: (session_id: string) =>
      get<SessionAnswer>(`/v1/agent/sessions/${encodeURIComponent(session_id)}`),
    /** What waits for a person, across runs. */
    inbox: (limit?: number) => get<Inbox>(`/v1/agent/inbox${queryOf({ limit })}`),

    /** A page of stored events; `after` is a number of the dialect asked for. */
    events: (run_id: string, page: EventsQuery = {}) =>
      get<EventsPage>(runPath(run_id, `/events${queryOf({ dialect: "runwire", ...page })}`)),
    /** The same in any dialect: its messages, as they are. */
    messages: (run_id: string, dialect: string, page: Omit<EventsQuery, "dialect"> = {}) =>
      get<MessagesPage>(runPath(run_id, `/events${queryOf({ ...page, dialect })}`)),
    snapshot: (run_id: string, at?: number) =>
      get<SnapshotAnswer>(runPath(run_id, `/snapshot${queryOf({ dialect: "runwire", at })}`)),
    steps: (run_id: string) => get<StepsAnswer>(runPath(run_id, "/steps")),
    evidence: (run_id: string) => get<EvidencePack>(runPath(run_id, "/evidence")),
    review: (run_id: string) => get<Review>(runPath(run_id, "/review")),
    checkpoints: (run_id: string) => get<CheckpointsAnswer>(runPath(run_id, "/checkpoints")),
    children: (run_id: string, query: Pick<RunQuery, "limit" | "cursor"> = {}) =>
      get<ChildPage>(runPath(run_id, `/children${queryOf({ ...query })}`)),

    pause: (run_id: string) => order(run_id, "pause"),
    resume: (run_id: string) => order(run_id, "resume"),
    redirect: (run_id: string, instruction: string) => order(run_id, "redirect", { instruction }),
    steer: (run_id: string, text: string) => order(run_id, "steer", { text }),
    abort: (run_id: string, reason?: string) => order(run_id, "abort", { reason }),
    approvePlan: (run_id: string, answer: PlanAnswer = {}) => order(run_id, "approve_plan", answer),
    answerApproval: (run_id: string, approval_id: string, answer: ApprovalAnswer) =>
      order<Facts>(run_id, `approvals/${encodeURIComponent(approval_id)}`, answer),
    /** Tools that are approved for more than one call: for all runs, and for those of the session if one is named. */
    approvals: (session_id?: string) =>
      get<StandingApprovals>(`/v1/agent/approvals${queryOf({ session_id })}`),
    /** From the tool's next call on it is asked about again. */
    takeBackApproval: (tool: string, session_id?: string) =>
      request<void>({ method: "DELETE", path: `/v1/agent/approvals${queryOf({ tool, session_id })}` }),
    answerClarification: (run_id: string, clarify_id: string, answer: unknown) =>
      order<Facts>(run_id, `clarifications/${encodeURIComponent(clarify_id)}`, { answer }),

    /** All or nothing, once. A producer that may have to retry uses `openProducer`. */
    append: (run_id: string, drafts: readonly Draft[]) => post<Appended>(runPath(run_id, "/events"), drafts),
    /** The same in the words of a dialect. Under a claim, what is stored already is skipped. */
    appendIn: (dialect: string, run_id: string, messages: readonly unknown[], claim?: ProducerClaim) =>
      post<Appended>(runPath(run_id, `/events${queryOf({ dialect })}`), messages, claimed(claim)),
    heartbeat: (run_id: string) => order<Ordered & { readonly lease_ms: number }>(run_id, "heartbeat"),
    spawnChild: (run_id: string, child: NewChild) => post<SpawnedChild>(runPath(run_id, "/children"), child),
    producer: (run_id: string, producer_id: string) =>
      get<ProducerPosition>(runPath(run_id, `/producers/${encodeURIComponent(producer_id)}`)),

    /** Who you are to the server. */
    whoAmI: () => get<Whoami>("/v1/session"),
    /** For wires that cannot send headers; see `webSocketSource`. */
    streamTicket: (resource: TicketFor) => post<Ticket>("/v1/stream-tickets", resource),
  };
}

function keyed(idempotencyKey: string | undefined): HeaderFields {
  return idempotencyKey === undefined ? {} : { "idempotency-key": idempotencyKey };
}

/** Who appends, in which life, and the number of its first event. */
export interface ProducerClaim {
  readonly id: string;
  readonly epoch: number;
  readonly seq: number;
}

function claimed(claim: ProducerClaim | undefined): HeaderFields {
  if (claim === undefined) return {};
  const { id, epoch, seq } = claim;
  return { "producer-id": id, "producer-epoch": String(epoch), "producer-seq": String(seq) };
}

export interface EventsQuery {
  readonly after?: number;
  readonly limit?: number;
  readonly detail?: "full";
  readonly dialect?: "runwire" | "koder";
}

export interface PlanAnswer {
  readonly plan_id?: string;
  /** True unless said otherwise. */
  readonly approved?: boolean;
  /** Approves this plan instead of the proposed one. */
  readonly steps?: readonly PlanStep[];
  readonly reason?: string;
}

export interface ApprovalAnswer {
  readonly decision: "once" | "session" | "always" | "deny";
  readonly reason?: string;
  /** Replaces the arguments of the call. */
  readonly input?: unknown;
}
