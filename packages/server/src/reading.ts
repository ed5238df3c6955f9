// A log as those read it who fold it: a stretch at a time, up to where it was when they began.

import { RunwireError, type StoredEvent, type View } from "@runwire/protocol";
import type { RunKey, Store } from "./store.js";

/** What is read at once. */
export const readBytesMax = 256 * 1024;

/** Events (after, to], or up to the head where that comes first; throws 410 where the log goes meanwhile. */
export async function* stretches(
  store: Pick<Store, "read" | "head">,
  key: RunKey,
  view: View,
  { after = 0, to }: { readonly after?: number; readonly to: number },
): AsyncGenerator<readonly StoredEvent[]> {
  for (let at = after; at < to; ) {
    const { events } = await store.read(key, view, at, readBytesMax);
    const last = events.at(-1);
    if (last === undefined) {
      if ((await store.head(key))?.views[view].pos === at) return;
      throw new RunwireError(logGone, `the ${view} view of ${key.run_id} is no longer kept`);
    }
    yield last.pos <= to ? events : events.filter(({ pos }) => pos <= to);
    at = last.pos;
  }
}

/** Whether this is what `stretches` throws: who can do with less than that log may. */
export function isLogGone(error: unknown): boolean {
  return error instanceof RunwireError && error.code === logGone;
}

const logGone = "KAI-STREAM-CONN-0002";
