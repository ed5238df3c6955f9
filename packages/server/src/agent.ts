// The built-in agent's place in the server. It writes through the same writer as any producer and learns of people's
// wishes from the log, as any producer does; the gateway only hands it the runs that are its own to write.

import type { Facts, StoredEvent, View } from "@runwire/protocol";
import type { Clock } from "./clock.js";
import type { Ingest } from "./ingest.js";
import type { Head } from "./log/head.js";
import type { RunRecord } from "./log/run-record.js";
import type { Report } from "./report.js";
import type { Durability, RunKey, Store } from "./store.js";

export interface Agent {
  /** Whether its runs show a plan first, where nobody says otherwise. */
  planningGate(agent: string | null): RunRecord["planning_gate"];
  /** A run that was just created, or that was live when the server started. It is the agent's from here on. */
  take(run: RunKey): void;
  readonly checkpoints: Checkpoints;
  /** Removes what it has kept of trees that are erased. */
  forget(roots: readonly RunKey[]): Promise<void>;
  /** To be called every now and then; lets go what it need not keep. */
  sweep(): Promise<void>;
  /** Refuses, with a RunwireError, a run that it could not write: no such agent, no such model, no such tools. */
  check(asked: AgentAsked): Promise<void>;
  /** Refuses arguments that this tool of its would not take. */
  checkInput(tool: string, input: Facts): Promise<void>;
  /** Stops writing. What is not finished goes on after the next start. */
  close(): Promise<void>;
}

/** What a run asks of the agent that it may have to refuse. */
export interface AgentAsked {
  readonly agent: string | null;
  readonly model: string | null;
  readonly fallback_models?: readonly string[];
  readonly budget_usd?: number;
  readonly tools?: readonly string[];
}

/** The agent's runs have workspaces; a checkpoint is one as it was at the end of a step. */
export interface Checkpoints {
  /** Those of a run that are kept, with their sizes in bytes. */
  kept(run: RunRecord): Promise<ReadonlyMap<string, number>>;
  /**
   * Makes a workspace as it was at a checkpoint, for a run that is not there yet; undefined where that is no longer
   * kept. Throws, with nothing left behind, where it cannot be made.
   */
  restore(run: RunRecord, checkpoint_id: string): Promise<Restored | undefined>;
}

export interface Restored {
  /** Under which the run is to be created. */
  readonly run_id: string;
  /**
   * The workspace of a run that was refused goes. To be called unless a restart may find what the store does not show
   * now (`InDoubt`): until then it stays.
   */
  settle(outcome: "created" | "refused" | "unknown"): Promise<void>;
}

/** How much of checkpoints is kept. */
export interface CheckpointLimits {
  /** The most recent ones of each run. */
  readonly perRunMax: number;
  /** How long after the end of their tree. */
  readonly endedMsMax: number;
  /** Of all runs of a tenant; the oldest go first. */
  readonly tenantBytesMax: number;
}

export type MakeAgent = (host: AgentHost) => Agent;

export interface AgentHost {
  readonly clock: Clock;
  readonly writer: Pick<Ingest, "append" | "spawn" | "change">;
  head(run: RunKey): Promise<Head | undefined>;
  /** Root runs of a tenant, newest first. */
  runs: Store["listRuns"];
  readonly endedMs: Store["endedMs"];
  /** Everything after a position, and then whatever follows, until the signal aborts. */
  follow(run: RunKey, view: View, after: number, signal: AbortSignal): AsyncIterable<readonly StoredEvent[]>;
  /** What was spilled from an event of this tenant. */
  blob(tenant: string, ref: string): Promise<Buffer | undefined>;
  /** Tools that people have approved for more than one call. */
  readonly allowances: Store["allowances"];
  /** A folder of the server's own, for workspaces and checkpoints. */
  readonly dataFolder: string;
  readonly durability: Durability;
  readonly checkpointLimits: CheckpointLimits;
  /** Whether there are members that are not stored. */
  readonly redacts: boolean;
  readonly report: Report;
}
