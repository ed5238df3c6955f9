// A feed is a small log without shaping, views or an end, keyed by tenant and topic. It holds no records of its
// own: the run events that change what it shows get one more place in it, in the same commit.

import type { EventType } from "@runwire/protocol";
import type { RunRecord } from "./head.js";

export type Topic = "runs";

const shows: { readonly [T in Topic]: ReadonlySet<EventType> } = {
  runs: new Set<EventType>(["run.lifecycle", "turn.submitted", "title"]),
};

export function feedLog(tenant: string, topic: Topic): string {
  return `feed:${tenant}:${topic}`;
}

/** The feeds that show this event of this run. The run list shows roots; children are listed by their root. */
export function feedsOf(run: RunRecord, type: EventType): readonly string[] {
  if (run.parent_id !== null || !shows.runs.has(type)) return [];
  return [feedLog(run.tenant, "runs")];
}
