// A log as those read it who fold it: a stretch at a time, up to where it was when they began.

import type { StoredEvent, View } from "@runwire/protocol";
import type { RunKey, Store } from "./store.js";

/** What is read at once. */
export const readBytesMax = 256 * 1024;

/** Events (after, to]; fewer where the log is erased meanwhile. */
export async function* stretches(
  store: Pick<Store, "read">,
  key: RunKey,
  view: View,
  { after = 0, to }: { readonly after?: number; readonly to: number },
): AsyncGenerator<readonly StoredEvent[]> {
  for (let at = after; at < to; ) {
    const { events } = await store.read(key, view, at, readBytesMax);
    const last = events.at(-1);
    if (last === undefined) return;
    yield last.pos <= to ? events : events.filter(({ pos }) => pos <= to);
    at = last.pos;
  }
}
