// Runs below runs, inside a commit.

import { type Facts, isRunId, limits, parentPaused, RunwireError, type Scope } from "@runwire/protocol";
import type { Commit } from "./commit.js";
import { checkLive, isEnded } from "./head.js";
import { headIn, move } from "./lifecycle.js";
import type { Idempotency } from "./run-record.js";

/** A live descendant that a draft names, or a refusal. */
export function descendant(commit: Commit, run_id: string, child_id: string): string {
  const child = commit.head(child_id);
  if (child === undefined || isEnded(child) || !isBelow(commit, child_id, run_id)) {
    throw new RunwireError("KAI-RUN-CHILD-0001", `${child_id} below ${run_id}`);
  }
  return child_id;
}

function isBelow(commit: Commit, child_id: string, run_id: string): boolean {
  for (
    let at = commit.head(child_id)?.run.parent_id ?? null;
    at !== null;
    at = commit.head(at)?.run.parent_id ?? null
  ) {
    if (at === run_id) return true;
  }
  return false;
}

/** Creates a child: the parent says so first, then the child begins like any run. Answers its id. */
export function spawn(
  commit: Commit,
  parent_id: string,
  payload: Facts & { child_id?: string; prompt?: string },
  of: {
    readonly scope?: Scope | undefined;
    readonly idempotency?: Idempotency | undefined;
    readonly agent?: string | undefined;
  } = {},
): string {
  const parent = headIn(commit, parent_id);
  checkLive(parent);
  const { run } = parent;
  const { agent = run.agent } = of;
  if (run.depth >= limits.childDepthMax) {
    throw new RunwireError(
      "KAI-RUN-CHILD-0003",
      `${parent_id} is ${run.depth} levels deep, which is the most`,
    );
  }
  if (parent.children.length >= limits.liveChildrenMax) {
    throw new RunwireError("KAI-RUN-CHILD-0003", `${parent_id} has ${parent.children.length} live children`);
  }
  const child_id = payload.child_id ?? commit.newId("run", commit.nowMs);
  if (!isRunId(child_id)) {
    throw new RunwireError("KAI-STREAM-PROTO-0001", "child.spawn: `child_id` must begin with `run_`");
  }
  // A pause reaches what the agent was about to spawn; whoever writes from outside knows what it does.
  const beganPaused = parent.state === "paused" && !run.external;
  commit.create({
    ...run,
    run_id: child_id,
    parent_id,
    agent,
    depth: run.depth + 1,
    planning_gate: "off",
    created_at: new Date(commit.nowMs).toISOString(),
    metadata: {},
    idempotency: of.idempotency ?? null,
    forked_from: null,
    beganPaused,
  });
  const spawn = { type: "child.spawn" as const, payload: { ...payload, child_id } };
  commit.write(parent_id, of.scope === undefined ? spawn : { ...spawn, scope: of.scope });
  commit.write(child_id, { type: "run.lifecycle", payload: { state: "running", reason: null } });
  const messages = [{ role: "user", content: payload.prompt ?? "" }];
  const { session_id } = run;
  const { tools_allowed, approvals } = payload;
  const asked = {
    ...(tools_allowed === undefined ? {} : { tools: tools_allowed }),
    ...(approvals === undefined ? {} : { approvals }),
  };
  commit.write(child_id, {
    type: "turn.submitted",
    payload: { messages, agent, session_id, parent_id, ...asked },
  });
  if (beganPaused) move(commit, child_id, { state: "paused", reason: parentPaused });
  return child_id;
}
