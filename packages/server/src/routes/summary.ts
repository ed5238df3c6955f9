import type { Head } from "../log/head.js";

/** A run as lists and status answers show it. */
export function runSummary(head: Head) {
  const { run, state, reason, ended_at, views, children, usage, title, steps, plan_id } = head;
  const { run_id, session_id, agent, parent_id, root_id, created_at, planning_gate, metadata } = run;
  const { forked_from = null } = run;
  return {
    run_id,
    session_id,
    agent,
    state,
    reason,
    title,
    created_at,
    ended_at,
    parent_id,
    root_id,
    planning_gate,
    plan_id,
    forked_from,
    counts: {
      events: views.full.pos,
      core_events: views.full.seq,
      default_events: views.default.pos,
      default_core_events: views.default.seq,
      steps,
      live_children: children.length,
    },
    usage,
    metadata,
    stream_url: `/v1/agent/runs/${run_id}/stream`,
    replay_uri: `/v1/agent/runs/${run_id}/replay.jsonl`,
  };
}
