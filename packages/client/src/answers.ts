// The bodies of the gateway's plain requests and answers. Answers may gain members; those named here stay.

import type { Event, Facts, RunState, Step, Transcript, Usage } from "@runwire/protocol";

export interface NewRun {
  readonly prompt?: string;
  readonly messages?: readonly unknown[];
  readonly agent?: string;
  readonly got_adaptive?: boolean;
  readonly model?: string;
  /** Models that go on where that is given up on. */
  readonly fallback_models?: readonly string[];
  /** What the run and all below it may cost. */
  readonly budget_usd?: number;
  readonly session_id?: string;
  readonly planning_gate?: "off" | "preview" | "required";
  readonly tools?: readonly unknown[];
  readonly approvals?: "never" | "destructive" | "always";
  readonly metadata?: Facts;
  /** A run that someone else writes: see `openProducer`. */
  readonly producer?: "external";
  readonly lease_ms?: number;
}

export interface StandingApprovals {
  readonly approvals: readonly StandingApproval[];
}

/** A tool that somebody has approved for more than one call, and the answer that said so. */
export interface StandingApproval extends Facts {
  readonly tool: string;
  readonly decision: "session" | "always";
  /** Null for `always`. */
  readonly session_id: string | null;
  readonly run_id: string;
  readonly approval_id: string;
  readonly answered_at: string;
}

export interface CreatedRun extends Facts {
  readonly run_id: string;
  readonly session_id: string;
  readonly state: RunState;
  readonly stream_url: string;
}

export interface NewFork {
  /** A number of the dialect `runwire`: a `pos` of the default view. The whole run where nothing is said. */
  readonly at?: number;
  /** Or the step that has this checkpoint. */
  readonly checkpoint_id?: string;
  readonly prompt?: string;
}

/** Ends the run, if it lives: the new one takes its place. */
export interface NewRewind {
  readonly checkpoint_id: string;
  readonly prompt?: string;
}

export interface ForkedFrom extends Facts {
  readonly run_id: string;
  readonly pos: number;
  readonly seq: number;
  readonly checkpoint_id?: string;
  /** The checkpoint that the workspace was restored from; absent where that is fresh. */
  readonly workspace_from?: string;
}

export interface ForkedRun extends CreatedRun {
  readonly forked_from: ForkedFrom;
  readonly workspace: "restored" | "fresh";
}

export interface RunRecord extends Facts {
  readonly run_id: string;
  readonly session_id: string;
  readonly agent: string | null;
  readonly state: RunState;
  readonly reason: string | null;
  readonly title: string | null;
  /** The beginning of what was asked. */
  readonly prompt_preview: string | null;
  /** The one that was asked for. */
  readonly model: string | null;
  readonly created_at: string;
  readonly ended_at: string | null;
  readonly parent_id: string | null;
  readonly forked_from: ForkedFrom | null;
  /** Events by view: `events` are those of the full one. */
  readonly counts: {
    readonly events: number;
    readonly core_events: number;
    readonly default_events: number;
    readonly default_core_events: number;
    readonly steps: number;
    readonly live_children: number;
  };
  /** Of the run and its descendants. */
  readonly usage: Usage;
  /** `known` is false where something was used that has no price; `usd` is then what is known of it, or null. */
  readonly cost: { readonly usd: number | null; readonly known: boolean };
  readonly stream_url: string;
  readonly replay_uri: string;
}

/** The state that an order brought about. */
export interface Ordered extends Facts {
  readonly run_id: string;
  readonly state: RunState;
}

export interface RunQuery {
  readonly state?: RunState;
  readonly session_id?: string;
  readonly agent?: string;
  readonly limit?: number;
  readonly cursor?: string;
}

export interface RunPage {
  readonly runs: readonly RunRecord[];
  /** The cursor of the next page, or null after the last. */
  readonly next: string | null;
}

export interface ChildPage {
  /** In the order of their ids. */
  readonly children: readonly RunRecord[];
  readonly next: string | null;
}

export interface SessionAnswer extends Facts {
  readonly session_id: string;
  readonly title: string | null;
  /** The last turn's. */
  readonly state: RunState;
  readonly turns_total: number;
  /** The last of them, oldest first. */
  readonly turns: readonly RunRecord[];
}

export interface SessionPage {
  readonly sessions: readonly (Omit<SessionAnswer, "turns"> & { readonly last_turn: RunRecord })[];
  readonly next: string | null;
}

export interface EventsPage {
  readonly events: readonly Event[];
  /** The `after` of the next page, or null after the last. */
  readonly next: number | null;
}

export interface MessagesPage {
  readonly events: readonly unknown[];
  readonly next: number | null;
}

export interface SnapshotAnswer {
  readonly pos: number;
  readonly seq: number;
  readonly transcript: Transcript;
}

export interface StepsAnswer {
  readonly steps: readonly Step[];
}

export interface CheckpointsAnswer {
  readonly checkpoints: readonly Checkpoint[];
}

export interface Checkpoint extends Step {
  readonly checkpoint_id: string;
  /** What it takes on disk; null where it is not kept. */
  readonly bytes: number | null;
  /** Whether a run can begin with its workspace. */
  readonly kept: boolean;
}

export interface NewChild {
  readonly prompt: string;
  readonly tools_allowed?: readonly string[];
}

export interface SpawnedChild extends Facts {
  readonly run_id: string;
  readonly parent_id: string;
  readonly state: RunState;
  readonly stream_url: string;
}

/** Places in the full log. */
export interface Appended {
  /** Null where everything was stored before. */
  readonly first_pos: number | null;
  readonly last_pos: number;
}

export interface ProducerPosition {
  readonly producer_id: string;
  readonly epoch: number;
  /** 0 before the first. */
  readonly last_producer_seq: number;
}

export interface TicketFor {
  readonly run_id?: string;
  readonly runs?: readonly string[];
  readonly run_list?: true;
  readonly inbox?: true;
  readonly session_id?: string;
  readonly ttl_s?: number;
}

export interface Ticket extends Facts {
  /** For `?ticket=`. */
  readonly ticket: string;
  readonly first_use_before: string;
  readonly expires_at: string;
}

export interface Whoami extends Facts {
  readonly tenant: string;
  readonly scopes: readonly string[];
}
