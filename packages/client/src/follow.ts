// A run as it happens: every event once and in order, over any number of connections.
//
//   for await (const item of follow(sseSource({ base, run_id }))) …

import { type Followed, reader } from "./reader.js";
import { type ReconnectOptions, reconnecting } from "./reconnect.js";
import type { Cursors, Source } from "./sources/source.js";

export interface FollowOptions extends ReconnectOptions {
  /** Begin after this number of the source's dialect; per run where the source has several. */
  readonly after?: number | Cursors;
  /** Fetch what a stream left out from the stored events (the default), or only report the gap. */
  readonly repair?: boolean;
}

/**
 * Ends when the terminal event of every run was delivered, or the source has no more. Otherwise it throws: a
 * RunwireError that no retry mends, or the signal's reason.
 */
export async function* follow(source: Source, options: FollowOptions = {}): AsyncGenerator<Followed, void> {
  for await (const items of followInBatches(source, options)) {
    // Not `yield*`, which waits once more for every item of a plain array.
    for (const item of items) yield item;
  }
}

/** The same, with all that one arrival brought together. */
export function followInBatches(
  source: Source,
  options: FollowOptions,
): AsyncGenerator<readonly Followed[], void> {
  const repairs = options.repair ?? true;
  return reconnecting(source, reader(source, cursorsOf(source, options.after), repairs), options);
}

function cursorsOf(source: Source, after: FollowOptions["after"] = 0): Cursors {
  return typeof after === "number" ? new Map(source.runs.map((run_id) => [run_id, after])) : after;
}
