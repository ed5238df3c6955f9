// What people ask of a run, for the producer that writes it: it follows its own run and acts on these.

import type { Event, NamedType } from "@runwire/protocol";
import { type FollowOptions, follow } from "./follow.js";
import type { Source } from "./sources/source.js";

const askedTypes = [
  "control.requested",
  "run.lifecycle",
  "steer.accepted",
  "approval.resolved",
  "clarify.resolved",
] as const satisfies readonly NamedType[];

export type Asked = { [T in (typeof askedTypes)[number]]: Event<T> }[(typeof askedTypes)[number]];

/** Pauses, redirects, steers, answers, aborts; also the run's own lifecycle, which tells what came of them. */
export async function* followAsked(source: Source, options: FollowOptions = {}): AsyncGenerator<Asked, void> {
  for await (const item of follow(source, options)) {
    if (item.kind === "event" && isAsked(item.event)) yield item.event;
  }
}

function isAsked(event: Event): event is Asked {
  return (askedTypes as readonly string[]).includes(event.type);
}
