// Where logs are kept. A store is one file or folder that passes the store suite (conformance/src/suites/store.ts);
// the write path and the read path know no more of it than this page.

import { type FinalState, type Inbox, RunwireError, type View } from "@runwire/protocol";
import type { Commit } from "./log/commit.js";
import type { Head } from "./log/head.js";
import type { Allowance, BlobRef } from "./log/record.js";
import type { RunRecord } from "./log/run-record.js";
import type { Stretch } from "./log/stretch.js";

/** Whether a commit waits for the disk. */
export type Durability = "fsync" | "os";

/** A run, or a feed, of a tenant. Ids are a tenant's own: nothing is ever kept or looked up without the tenant. */
export interface RunKey {
  readonly tenant: string;
  readonly run_id: string;
}

/** The disk failed in the middle of a write: a restart may find all of it, or nothing. */
export class InDoubt extends RunwireError {
  constructor(detail: string) {
    super("KAI-SERVER-STORE-0001", detail);
  }
}

/** Trees are erased, and something that goes with them is still there: a blob, or what the agent has kept. */
export class LeftBehind extends RunwireError {
  constructor(cause: unknown) {
    const { code, message, name } = cause as NodeJS.ErrnoException;
    const why = cause instanceof RunwireError ? message : (code ?? name);
    super("KAI-SERVER-STORE-0001", `something of what was erased is left: ${why}`, { cause });
  }
}

export interface Store {
  /**
   * Runs `decide` inside a transaction, with the heads of the run's whole tree held still, and answers what it
   * returned once that is durable. All or nothing: a throw refuses this append alone and stores nothing of it.
   * `decide` is pure but for the commit it writes to, and may be called again when the store must retry.
   * Only where the disk fails in the middle of a write nobody knows: that rejects with `InDoubt`.
   */
  append<T>(key: RunKey, decide: (commit: Commit) => T): Promise<T>;

  /**
   * Events after a position, in order: at least one if there is one, at most about `bytesMax`, and none where the next
   * one is no longer kept. Cuts fall at the same places for readers that began at different ones, so what is made of a
   * cut can be shared.
   */
  read(key: RunKey, view: View, after: number, bytesMax: number): Promise<Stretch>;

  /** The committed head, or undefined where this tenant has no such run. */
  head(key: RunKey): Promise<Head | undefined>;
  /** Whether this tenant had such a run, and it was erased. */
  isErased(key: RunKey): Promise<boolean>;
  /** The position of the event with this `seq`; the head's where there is none yet. */
  posOfSeq(key: RunKey, view: View, seq: number): Promise<number>;
  listRuns(tenant: string, query: RunQuery): Promise<RunPage>;
  /** A session with the last of its turns; undefined where none is kept. */
  session(tenant: string, session_id: string, limit: number): Promise<Session | undefined>;
  /** Sessions by their last turns, newest first. */
  listSessions(tenant: string, query: Pick<RunQuery, "limit" | "cursor">): Promise<SessionPage>;
  /** Runs that have not ended, of all tenants. */
  liveRuns(): Promise<readonly RunRecord[]>;
  /** What waits for a person, oldest first, and the position of the inbox's feed at that moment. */
  inbox(tenant: string, limit: number): Promise<Inbox>;
  /** The ids of a run's children, ended ones too, in their order. */
  children(key: RunKey, query: Pick<RunQuery, "limit" | "cursor">): Promise<ChildPage>;
  /** Removes the tree's logs for good and leaves tombstones. */
  eraseTree(root: RunKey): Promise<void>;
  /** Many at once, for the price of one. One that cannot be erased keeps no other, and is told when those are gone. */
  eraseTrees(roots: readonly RunKey[]): Promise<void>;
  /** Removes the full view of trees that have ended; the default view still answers. */
  dropFullViews(roots: readonly RunKey[]): Promise<void>;

  /** Trees that have ended, the oldest first. Ages are counted by the store's own clock, which no jump makes run. */
  endedTrees(tenant: string, query: TreeQuery): Promise<TreePage>;
  /** How long ago a run has ended, by the same clock: null while it lives, undefined where there is none. */
  endedMs(key: RunKey): Promise<number | null | undefined>;
  /** Tenants that have runs, in order, after a name. */
  tenants(after: string, limit: number): Promise<readonly string[]>;
  /** What was set for a tenant; undefined where nothing was. */
  tenantSettings(tenant: string): Promise<TenantSettings | undefined>;
  /** Null takes back what was set. */
  setTenantSettings(tenant: string, settings: TenantSettings | null): Promise<void>;

  /** Tools that are approved for every run of the tenant, and for those of the session where one is named; oldest first. */
  allowances(tenant: string, session_id: string | null): Promise<readonly Allowance[]>;
  /** Takes back; whether there was anything to take back. */
  disallow(tenant: string, tool: string, session_id: string | null): Promise<boolean>;

  /** A blob that a run of this tenant refers to; undefined where none does. */
  blob(tenant: string, ref: string): Promise<BlobRef | undefined>;

  /** Transcripts kept so that a fold need not begin at the first event: none before one that is kept already. */
  keepSnapshot(key: RunKey, view: View, pos: number, transcriptText: string): Promise<void>;
  snapshotBefore(key: RunKey, view: View, pos: number): Promise<KeptSnapshot | undefined>;

  /** What credentials were turned into. */
  readonly grants: Grants;

  /** The oldest event that is still kept: 1 for a run, later for a feed that has been pruned. */
  oldest(key: RunKey): Promise<number>;
  /** Forgets what feeds need not keep, and grants that are over. */
  prune(): Promise<void>;

  /** Starts a run's lease anew. Leases are counted by the store's own clock. */
  renew(key: RunKey): void;
  /** Runs that need somebody: pending deltas that are due, leases that have run out, requests past their time. */
  due(): Promise<readonly DueRun[]>;

  /** Hears of every log that has moved, after the commit: what a bus between processes would carry. */
  onMoved(heard: (log: RunKey) => void): void;
  /** Hears of blobs that erased trees no longer refer to; the erasing waits for it. Fails with `LeftBehind`. */
  onUnreferred(heard: (tenant: string, refs: readonly string[]) => Promise<void>): void;
  /** Hears of trees that were erased; the erasing waits for it. Fails with `LeftBehind`. */
  onErased(heard: (roots: readonly RunKey[]) => Promise<void>): void;
  /** Hears of trees that have lost their full view. */
  onFullDropped(heard: (roots: readonly RunKey[]) => void): void;
  levels(): StoreLevels;
  close(): Promise<void>;
}

/** What may be set for one tenant. */
export interface TenantSettings {
  readonly retention: RetentionDays;
}

/** How long after its root's end a tree is kept, by how that ended; null for ever. */
export interface RetentionDays {
  readonly done_days: number | null;
  readonly aborted_days: number | null;
  readonly error_days: number | null;
  /** The same for its full view alone. */
  readonly full_days: number | null;
}

export interface TreeQuery {
  readonly state: FinalState;
  /** How long ago its root has ended, at least, and less than. */
  readonly ageMsMin: number;
  readonly ageMsMax?: number;
  /** Only those that still have their full view; sizes are that view's. */
  readonly full: boolean;
  readonly limit: number;
  /** The `next` of the page before. */
  readonly cursor?: TreeCursor;
}

export interface TreeCursor {
  readonly endedMs: number;
  readonly run_id: string;
}

export interface TreePage {
  readonly trees: readonly EndedTree[];
  readonly next: TreeCursor | null;
}

export interface EndedTree {
  readonly tenant: string;
  readonly run_id: string;
  readonly state: TreeQuery["state"];
  readonly ended_at: string;
  readonly runs: number;
  /** About what it takes in the store. */
  readonly bytes: number;
}

/** A stream ticket or a console's session: derived from a credential, good for less, and kept across restarts. */
export interface Grant {
  /** SHA-256 of the secret, in hex. The secret itself is kept nowhere. */
  readonly hash: string;
  readonly kind: "ticket" | "session";
  readonly tenant: string;
  readonly scopes: readonly string[];
  /** What it was made with, as `Caller` names it; `console:<hash>` for a ticket of a session. */
  readonly credential: string;
  /** What it is good for, as JSON. */
  readonly resource: unknown;
  readonly madeMs: number;
  /** When it was first used; null before. */
  readonly usedMs: number | null;
  readonly endsMs: number;
  readonly csrf: string | null;
}

export interface Grants {
  /** Resolves once it is durable. */
  put(grant: Grant): Promise<void>;
  /** Undefined where there is none, or it is over by the wall clock. */
  get(hash: string): Promise<Grant | undefined>;
  /** How many a tenant has that are not over. */
  count(tenant: string): Promise<number>;
  /** Stores the first use; later ones change nothing. */
  use(hash: string, atMs: number): Promise<void>;
  drop(hash: string): Promise<void>;
}

export interface RunQuery {
  readonly state?: string;
  readonly session_id?: string;
  readonly agent?: string;
  readonly limit: number;
  /** The last run id of the page before. */
  readonly cursor?: string;
}

export interface RunPage {
  readonly heads: readonly Head[];
  readonly next: string | null;
}

export interface ChildPage {
  readonly children: readonly string[];
  readonly next: string | null;
}

/** A session has turns; each is a root run. */
export interface Session {
  readonly session_id: string;
  /** The first that any of its turns was given, and that turn. */
  readonly title: string | null;
  readonly titledBy: string | null;
  /** Oldest first. */
  readonly turns: readonly Head[];
  /** With those before them. */
  readonly turns_total: number;
}

export interface SessionPage {
  /** Each with its last turn. */
  readonly sessions: readonly Session[];
  readonly next: string | null;
}

export interface KeptSnapshot {
  readonly pos: number;
  readonly transcriptText: string;
}

export type DueRun =
  | { readonly why: "deltas"; readonly key: RunKey }
  | { readonly why: "lease"; readonly key: RunKey }
  | { readonly why: "request"; readonly key: RunKey; readonly request_id: string };

/** What an operator looks at. */
export interface StoreLevels {
  /** Whether events can be stored: not on a full disk, nor after a failed flush until a restart. */
  readonly writing: "ok" | "full" | "broken";
  readonly runsLive: number;
  readonly appendsWaiting: number;
  readonly hotEvents: number;
  readonly hotBytes: number;
  readonly databaseBytes: number;
  readonly walBytes: number;
  readonly diskFreeBytes: number;
}

/** What a store tells of its work: once a commit, never per event. */
export interface StoreObserver {
  committed(commit: Committed): void;
  commitFailed(error: unknown): void;
  compactionFailed(error: unknown): void;
  readFailed(error: unknown): void;
}

export interface Committed {
  readonly appends: number;
  readonly events: number;
  /** How long the append that waited longest had waited when its commit began. */
  readonly waitedMs: number;
  readonly writeMs: number;
}
