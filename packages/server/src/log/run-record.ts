import type { Facts } from "@runwire/protocol";

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
  /** Of a child: whether its parent's pause reached it as it began. */
  readonly beganPaused?: boolean;
}
