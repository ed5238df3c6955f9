import type { Head } from "../log/head.js";

/** A run as lists and status answers show it. */
export function runSummary(head: Head) {
  const { run, state, reason, ended_at, views, children, usage, title, steps, plan_id } = head;
  const { prompt_preview, model } = head;
  const { run_id, session_id, agent, parent_id, root_id, created_at, planning_gate, metadata } = run;
  const { forked_from = null } = run;
  return {
    run_id,
    session_id,
    agent,
    state,
    reason,
    title,
    prompt_preview,
    model,
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
    cost: costIn(usage),
    metadata,
    stream_url: `/v1/agent/runs/${run_id}/stream`,
    replay_uri: `/v1/agent/runs/${run_id}/replay.jsonl`,
  };
}

/** What is known of the cost; all of it, where every request that was counted has a price. */
function costIn({ cost_usd, unpriced_requests = 0 }: Head["usage"]) {
  return { usd: cost_usd ?? null, known: cost_usd !== undefined && unpriced_requests === 0 };
}
