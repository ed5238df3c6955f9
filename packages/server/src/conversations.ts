// Conversations at any point of a run: what forks and later turns begin with.

import { type Conversation, converse, emptyConversation, type StoredEvent } from "@runwire/protocol";
import type { RunKey, Store } from "./store.js";

const readBytesMax = 256 * 1024;

export interface FoldedTo {
  readonly conversation: Conversation;
  /** The last event that was folded; undefined where the log ended before the one that was looked for. */
  readonly last: StoredEvent | undefined;
}

/** Folds a run's default view up to the first event of which this holds, and not beyond a position. */
export async function conversationTo(
  store: Store,
  key: RunKey,
  pos: number,
  isLast: (e: StoredEvent) => boolean,
): Promise<FoldedTo> {
  let conversation = emptyConversation;
  for (let at = 0; at < pos; ) {
    const events = await store.read(key, "default", at, readBytesMax);
    if (events.length === 0) break;
    for (const e of events) {
      conversation = converse(conversation, e);
      if (isLast(e)) return { conversation, last: e };
      at = e.pos;
      if (at >= pos) break;
    }
  }
  return { conversation, last: undefined };
}
