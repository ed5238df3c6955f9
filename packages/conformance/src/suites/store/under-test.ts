// What a store and the write path on top of it must offer to be tested. The server's `Store` and `Ingest` fit
// this; it is written out here because a suite knows no server.

import type { Draft, EventType, Facts, IdPrefix, RunState, StoredEvent, View } from "@runwire/protocol";

export interface Key {
  readonly tenant: string;
  readonly run_id: string;
}

export interface Clock {
  now(): number;
  monotonic(): number;
  awake?(): number;
}

export interface RunUnderTest {
  readonly tenant: string;
  readonly run_id: string;
  readonly parent_id: string | null;
  readonly root_id: string;
  readonly depth: number;
}

export interface RunRecordUnderTest extends RunUnderTest {
  readonly created_at: string;
  readonly session_id: string | null;
  readonly agent: string | null;
  readonly planning_gate: "off" | "preview" | "required";
  readonly external: boolean;
  readonly lease_ms: number;
  readonly metadata: Facts;
  readonly idempotency: Idempotency | null;
}

export interface Idempotency {
  readonly key: string;
  readonly digest: string;
}

export interface HeadUnderTest {
  readonly run: RunUnderTest;
  readonly views: { readonly [V in View]: { readonly pos: number; readonly seq: number } };
  readonly state: RunState | null;
  readonly reason: string | null;
  /** Deltas that the full log holds and the default log does not yet. */
  readonly groups: readonly Pending[];
  readonly producers: { readonly [id: string]: { readonly epoch: number; readonly seq: number } };
  /** Whether its full view has been dropped. */
  readonly fullGone: boolean;
}

export interface Pending {
  readonly type: EventType;
  readonly payload: Facts;
  readonly text: string;
  readonly chunks: readonly string[] | null;
}

export interface CommitUnderTest {
  readonly nowMs: number;
  head(run_id: string): HeadUnderTest | undefined;
  newId(prefix: IdPrefix, nowMs: number): string;
  create(run: RunRecordUnderTest): void;
  createdUnder(key: string): RunRecordUnderTest | undefined;
  liveRuns(): number;
  write(run_id: string, draft: Draft): void;
  tick(run_id: string): void;
}

export interface StretchUnderTest {
  readonly events: readonly StoredEvent[];
}

export interface RunQueryUnderTest {
  readonly state?: string;
  readonly session_id?: string;
  readonly agent?: string;
  readonly limit: number;
  readonly cursor?: string;
}

export interface RunPageUnderTest {
  readonly heads: readonly HeadUnderTest[];
  readonly next: string | null;
}

export interface SessionUnderTest {
  readonly session_id: string;
  readonly title: string | null;
  readonly turns: readonly HeadUnderTest[];
  readonly turns_total: number;
}

export interface StoreUnderTest {
  append<T>(key: Key, decide: (commit: CommitUnderTest) => T): Promise<T>;
  read(key: Key, view: View, after: number, bytesMax: number): Promise<StretchUnderTest>;
  head(key: Key): Promise<HeadUnderTest | undefined>;
  isErased(key: Key): Promise<boolean>;
  posOfSeq(key: Key, view: View, seq: number): Promise<number>;
  listRuns(tenant: string, query: RunQueryUnderTest): Promise<RunPageUnderTest>;
  session(tenant: string, session_id: string, limit: number): Promise<SessionUnderTest | undefined>;
  listSessions(
    tenant: string,
    query: Pick<RunQueryUnderTest, "limit" | "cursor">,
  ): Promise<{ readonly sessions: readonly SessionUnderTest[]; readonly next: string | null }>;
  children(
    key: Key,
    query: Pick<RunQueryUnderTest, "limit" | "cursor">,
  ): Promise<{ readonly children: readonly string[]; readonly next: string | null }>;
  eraseTree(root: Key): Promise<void>;
  eraseTrees(roots: readonly Key[]): Promise<void>;
  dropFullViews(roots: readonly Key[]): Promise<void>;
  endedMs(key: Key): Promise<number | null | undefined>;
  onErased(heard: (roots: readonly Key[]) => Promise<void>): void;
  keepSnapshot(key: Key, view: View, pos: number, transcriptText: string): Promise<void>;
  snapshotBefore(
    key: Key,
    view: View,
    pos: number,
  ): Promise<{ readonly pos: number; readonly transcriptText: string } | undefined>;
  readonly grants: GrantsUnderTest;
  prune(): Promise<void>;
  renew(key: Key): void;
  due(): Promise<readonly { readonly why: string; readonly key: Key }[]>;
  close(): Promise<void>;
}

export interface GrantUnderTest {
  readonly hash: string;
  readonly kind: "ticket" | "session";
  readonly tenant: string;
  readonly scopes: readonly string[];
  readonly credential: string;
  readonly resource: unknown;
  readonly madeMs: number;
  readonly usedMs: number | null;
  readonly endsMs: number;
  readonly csrf: string | null;
}

export interface GrantsUnderTest {
  put(grant: GrantUnderTest): Promise<void>;
  get(hash: string): Promise<GrantUnderTest | undefined>;
  count(tenant: string): Promise<number>;
  use(hash: string, atMs: number): Promise<void>;
  drop(hash: string): Promise<void>;
}

export interface Claim {
  readonly id: string;
  readonly epoch: number;
  readonly seq: number;
}

export interface AppendedUnderTest {
  readonly first_pos: number | null;
  readonly last_pos: number;
  readonly last_producer_seq?: number;
}

export interface NewRun {
  readonly messages: readonly Facts[];
  readonly session_id: string | null;
  readonly agent: string | null;
  readonly model: string | null;
  readonly planning_gate: "off";
  readonly metadata: Facts;
  readonly lease_ms: number;
  readonly asked: Facts;
  readonly external: boolean;
}

export interface IngestUnderTest {
  create(
    tenant: string,
    run: NewRun,
    idempotency?: Idempotency,
  ): Promise<{ readonly run_id: string; readonly replayed?: true }>;
  append(key: Key, drafts: readonly Draft[], claim?: Claim): Promise<AppendedUnderTest>;
  spawn(
    key: Key,
    child: { readonly child_id?: string; readonly prompt: string },
    idempotency?: Idempotency,
  ): Promise<{ readonly child_id: string; readonly replayed?: true }>;
  change<T>(key: Key, decide: (commit: CommitUnderTest) => T): Promise<T>;
  sweep(): Promise<unknown>;
  /** Stops its timers; the store stays open. */
  close(): void;
}

export interface Opened {
  readonly store: StoreUnderTest;
  readonly ingest: IngestUnderTest;
}

export interface OpenOptions {
  readonly liveRunsMax?: number;
  readonly after?: (delayMs: number, ring: () => void) => () => void;
}

/** Opens what the folder holds, or an empty store where it holds nothing. */
export type Open = (folder: string, clock: Clock, options?: OpenOptions) => Opened;
