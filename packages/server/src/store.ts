// Where logs are kept. A store is one file or folder that passes the store suite (conformance/suites/store.ts);
// the write path and the read path know no more of it than this page.

import type { StoredEvent, View } from "@runwire/protocol";
import type { Commit } from "./log/commit.js";
import type { Head, RunRecord } from "./log/head.js";
import type { BlobRef } from "./log/record.js";

/** A run, or a feed, of a tenant. Ids are a tenant's own: nothing is ever kept or looked up without the tenant. */
export interface RunKey {
  readonly tenant: string;
  readonly run_id: string;
}

export interface Store {
  /**
   * Runs `decide` inside a transaction, with the heads of the run's whole tree held still, and answers what it
   * returned once that is durable. All or nothing: a throw refuses this append alone and stores nothing of it.
   * `decide` is pure but for the commit it writes to, and may be called again when the store must retry.
   */
  append<T>(key: RunKey, decide: (commit: Commit) => T): Promise<T>;

  /**
   * Events after a position, in order: at least one if there is one, at most about `bytesMax`. Cuts fall at the
   * same places for readers that began at different ones, so what is made of a cut can be shared.
   */
  read(key: RunKey, view: View, after: number, bytesMax: number): Promise<readonly StoredEvent[]>;

  /** The committed head, or undefined where this tenant has no such run. */
  head(key: RunKey): Promise<Head | undefined>;
  /** Whether this tenant had such a run, and it was erased. */
  isErased(key: RunKey): Promise<boolean>;
  /** The position of the event with this `seq`; the head's where there is none yet. */
  posOfSeq(key: RunKey, view: View, seq: number): Promise<number>;
  listRuns(tenant: string, query: RunQuery): Promise<RunPage>;
  /** Every run of a tree, root first. */
  tree(key: RunKey): Promise<readonly RunRecord[]>;
  /** Removes the tree's logs for good and leaves tombstones. */
  eraseTree(root: RunKey): Promise<void>;

  /** A blob that a run of this tenant refers to; undefined where none does. */
  blob(tenant: string, ref: string): Promise<BlobRef | undefined>;

  /** Transcripts kept so that a fold need not begin at the first event. */
  keepSnapshot(key: RunKey, view: View, pos: number, transcriptText: string): Promise<void>;
  snapshotBefore(key: RunKey, view: View, pos: number): Promise<KeptSnapshot | undefined>;

  /** The oldest event that is still kept: 1 for a run, later for a feed that has been pruned. */
  oldest(key: RunKey): Promise<number>;
  /** Forgets what feeds need not keep. */
  prune(): Promise<void>;

  /** Starts a run's lease anew. Leases are counted by the store's own clock. */
  renew(key: RunKey): void;
  /** Runs that need somebody: pending deltas that are due, leases that have run out, requests past their time. */
  due(): Promise<readonly DueRun[]>;

  /** Hears of every log that has moved, after the commit: what a bus between processes would carry. */
  onMoved(heard: (log: RunKey) => void): void;
  /** Hears of blobs that an erased tree no longer refers to; the erasing waits for it. */
  onUnreferred(heard: (tenant: string, refs: readonly string[]) => Promise<void>): void;
  close(): Promise<void>;
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

export interface KeptSnapshot {
  readonly pos: number;
  readonly transcriptText: string;
}

export type DueRun =
  | { readonly why: "deltas"; readonly key: RunKey }
  | { readonly why: "lease"; readonly key: RunKey }
  | { readonly why: "request"; readonly key: RunKey; readonly request_id: string };
