// Runs that nothing is above, inside a commit. Those below others begin in children.ts.

import { type Facts, type RunState, RunwireError, type Scope } from "@runwire/protocol";
import type { Commit } from "./commit.js";
import { wasErased } from "./head.js";
import { abort } from "./lifecycle.js";
import type { ForkedFrom, Idempotency, RunRecord } from "./run-record.js";

export interface NewRun {
  /** Where something was put under it before; another one otherwise. */
  readonly run_id?: string;
  readonly messages: readonly Facts[];
  readonly session_id: string | null;
  readonly agent: string | null;
  readonly model: string | null;
  readonly planning_gate: RunRecord["planning_gate"];
  readonly metadata: Facts;
  /** Whether someone outside writes it. */
  readonly external: boolean;
  readonly lease_ms: number;
  /** Further members of `turn.submitted`. */
  readonly asked: Facts;
  readonly forked_from?: ForkedFrom;
  /** The turn of its session whose conversation it goes on with. */
  readonly turnBefore?: string;
  /** The run that it takes the place of: that is aborted in the same commit, if it lives. */
  readonly rewinds?: string;
  /** The turn that its session is called by already. */
  readonly titledBy?: string;
  /** The trace that it is a part of, as whoever asked for it has named it. */
  readonly scope?: Scope;
}

export interface CreatedRun {
  readonly run_id: string;
  readonly session_id: string;
  readonly state: RunState;
  readonly forked_from: ForkedFrom | null;
  /** Where this is the answer to an earlier request under the same key, and nothing was made. */
  readonly replayed?: true;
}

/** Its first event says that it began, its second what was asked. */
export function beginRoot(
  commit: Commit,
  tenant: string,
  run: NewRun,
  of: { readonly idempotency: Idempotency | undefined; readonly liveRunsMax: number },
): CreatedRun {
  const { idempotency = null, liveRunsMax } = of;
  const before = idempotency && rootBegunBefore(commit, idempotency);
  if (before) return before;
  // It was read before this commit, and may have been erased since: then none of its words come back.
  for (const source of [run.forked_from?.run_id, run.turnBefore])
    if (source !== undefined && commit.head(source) === undefined) throw wasErased(source);
  const run_id = run.run_id ?? commit.newId("run", commit.nowMs);
  if (run.rewinds !== undefined) abort(commit, run.rewinds, `rewound, continues as ${run_id}`);
  if (commit.liveRuns() >= liveRunsMax) {
    throw new RunwireError("KAI-LIMIT-RUNS-0001", `${liveRunsMax} may live at once`);
  }
  const session_id = run.session_id ?? commit.newId("sess", commit.nowMs);
  const state = firstState(run.planning_gate);
  const { messages, agent, model, metadata, asked, forked_from = null, scope } = run;
  commit.create({
    tenant,
    run_id,
    parent_id: null,
    root_id: run_id,
    depth: 0,
    created_at: new Date(commit.nowMs).toISOString(),
    session_id,
    agent,
    planning_gate: run.planning_gate,
    external: run.external,
    lease_ms: run.lease_ms,
    metadata,
    idempotency,
    forked_from,
  });
  const turn_id = commit.newId("turn", commit.nowMs);
  const turn = { messages, agent, model, session_id, turn_id, metadata, ...asked };
  commit.write(run_id, { type: "run.lifecycle", payload: { state, reason: null } });
  commit.write(run_id, {
    type: "turn.submitted",
    payload: { ...turn, ...(forked_from && { forked_from }) },
    ...(scope && { scope }),
  });
  // As of this commit: where that turn was erased meanwhile, its title is too.
  const title = run.titledBy === undefined ? null : (commit.head(run.titledBy)?.title ?? null);
  if (title !== null) commit.write(run_id, { type: "title", payload: { title } });
  return { run_id, session_id, state, forked_from };
}

/** What an earlier request under this key was answered. */
export function rootBegunBefore(commit: Commit, idempotency: Idempotency): CreatedRun | undefined {
  const made = createdBefore(commit, null, idempotency);
  if (made === undefined) return undefined;
  const { run_id, session_id, planning_gate, forked_from = null } = made;
  return {
    run_id,
    session_id: session_id ?? "",
    state: firstState(planning_gate),
    forked_from,
    replayed: true,
  };
}

/** The run that an earlier request under this key made, below the same parent; a refusal where that was another. */
export function createdBefore(
  commit: Commit,
  parent_id: string | null,
  { key, digest }: Idempotency,
): RunRecord | undefined {
  const made = commit.createdUnder(key);
  if (made === undefined) return undefined;
  if (made.idempotency?.digest !== digest || made.parent_id !== parent_id) {
    throw new RunwireError("KAI-REQUEST-KEY-0001");
  }
  return made;
}

function firstState(gate: RunRecord["planning_gate"]): RunState {
  return gate === "off" ? "running" : "planning";
}
