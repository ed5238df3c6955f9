// A feed is a small log without shaping, views or an end, keyed by tenant and topic. It holds no records of its
// own: the run events that change what it shows get one more place in it, in the same commit.

import type { EventType, Facts } from "@runwire/protocol";
import type { Head } from "./head.js";
import { changesInbox, inboxChange } from "./inbox.js";

export type Topic = "runs" | "inbox";

const shownInRuns: ReadonlySet<EventType> = new Set<EventType>(["run.lifecycle", "turn.submitted", "title"]);

export function feedLog(tenant: string, topic: Topic): string {
  return `feed:${tenant}:${topic}`;
}

/** The feeds that show this event of a run, whose head is as it was before the event. */
export function feedsOf(head: Head, type: EventType, payload: Facts): readonly string[] {
  const { tenant, parent_id } = head.run;
  const feeds: string[] = [];
  // The run list shows roots; children are listed by their root. What children ask waits like anything else.
  if (parent_id === null && shownInRuns.has(type)) feeds.push(feedLog(tenant, "runs"));
  if (changesInbox(head, type, payload)) feeds.push(feedLog(tenant, "inbox"));
  return feeds;
}

/** What a feed shows of the event, where that is not its payload. The head is as it is after the event. */
export function shownIn(
  feed: string,
  head: Head,
  type: EventType,
  payload: Facts,
  headOf: (run_id: string) => Head | undefined,
): string | undefined {
  const { tenant, root_id } = head.run;
  if (feed !== feedLog(tenant, "inbox")) return undefined;
  return JSON.stringify(inboxChange(head, type, payload, headOf(root_id)?.title ?? null) ?? {});
}
