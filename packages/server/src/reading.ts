// A log as those read it who are no stream: whether it may be read, and a stretch at a time, up to where it was when
// they began, or on and on.

import { isRunId, RunwireError, type StoredEvent, type View } from "@runwire/protocol";
import type { AgentHost } from "./agent.js";
import type { Bus } from "./bus.js";
import { type Head, wasErased } from "./log/head.js";
import type { Rooms } from "./rooms.js";
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

/** The head of a run that may be read; 404 for an unknown one, 410 for one that was erased, or lost this view. */
export async function readableHead(
  { store }: Pick<Rooms, "store">,
  key: RunKey,
  view: View = "default",
): Promise<Head> {
  // A feed is a log too, and not for whoever guesses its name.
  if (!isRunId(key.run_id)) throw new RunwireError("KAI-RUN-MISSING-0001");
  const head = await store.head(key);
  if (head !== undefined) {
    if (view === "full" && head.fullGone) {
      const detail = `the full view of ${key.run_id} is no longer kept; its default view is`;
      throw new RunwireError(logGone, detail);
    }
    return head;
  }
  if (await store.isErased(key)) throw wasErased(key.run_id);
  throw new RunwireError("KAI-RUN-MISSING-0001", key.run_id);
}

/** Whether it says, as `stretches` does, that a log is no longer kept: who can do with less than that log may. */
export function isLogGone(error: unknown): boolean {
  return error instanceof RunwireError && error.code === logGone;
}

const logGone = "KAI-STREAM-CONN-0002";

/** The same loop as every reader's: read after the cursor; nothing there, wait until the log moves. */
export function follower(store: Store, bus: Bus): AgentHost["follow"] {
  return async function* follow(run, view, after, signal) {
    let at = after;
    let wake = (): void => {};
    let moved = false;
    const ring = (): void => {
      moved = true;
      wake();
    };
    // Listen before the first read: an append between the two still rings.
    const stop = bus.listen(run, ring);
    signal.addEventListener("abort", ring);
    try {
      while (!signal.aborted) {
        moved = false;
        const { events } = await store.read(run, view, at, readBytesMax);
        const last = events.at(-1);
        if (last !== undefined) {
          at = last.pos;
          yield events;
        } else if (!moved) {
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        }
      }
    } finally {
      signal.removeEventListener("abort", ring);
      stop();
    }
  };
}
