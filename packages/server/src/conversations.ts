// Conversations at any point of a run: what forks and later turns begin with.

import {
  type Conversation,
  converse,
  emptyConversation,
  type Facts,
  isObject,
  limits,
  newFold,
  type StoredEvent,
} from "@runwire/protocol";
import { type Head, isEnded } from "./log/head.js";
import { isLogGone, stretches } from "./reading.js";
import type { RunKey, Store } from "./store.js";

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
  const mine = newFold();
  let conversation = emptyConversation;
  for await (const events of stretches(store, key, "default", { to: pos })) {
    for (const e of events) {
      conversation = converse(conversation, e, mine);
      if (isLast(e)) return { conversation, last: e };
    }
  }
  return { conversation, last: undefined };
}

/** What the next turn of a session begins with. */
export interface History {
  readonly messages: readonly Facts[];
  /** How many turns it is of, and whether some of it was left out. */
  readonly told: { readonly turns: number; readonly truncated: boolean };
}

/**
 * What people said and what was settled, by the session's last turn that has ended. That turn began with the history
 * of those before it, so it is all there. Undefined where no turn has ended.
 */
export async function historyOf(
  store: Store,
  tenant: string,
  session_id: string,
): Promise<History | undefined> {
  const last = await lastEnded(store, tenant, session_id);
  if (last === undefined) return undefined;
  const key = { tenant, run_id: last.run.run_id };
  const folded = await conversationTo(store, key, last.views.default.pos, () => false).catch(
    (error: unknown) => {
      if (!isLogGone(error)) throw error;
    },
  );
  // Erased meanwhile: then the turn before it is the last.
  if (folded === undefined) return historyOf(store, tenant, session_id);
  const { conversation } = folded;
  const messages = lastOf(conversation.history);
  const before = isObject(conversation.asked.history) ? conversation.asked.history : {};
  const turns = (typeof before.turns === "number" ? before.turns : 0) + 1;
  const truncated = before.truncated === true || messages.length < conversation.history.length;
  return { messages, told: { turns, truncated } };
}

async function lastEnded(store: Store, tenant: string, session_id: string): Promise<Head | undefined> {
  for (let cursor: string | undefined; ; ) {
    const query = { session_id, limit: 20, ...(cursor === undefined ? {} : { cursor }) };
    const { heads, next } = await store.listRuns(tenant, query);
    const ended = heads.find(isEnded);
    if (ended !== undefined || next === null) return ended;
    cursor = next;
  }
}

/** The last messages that fit, from a question on. */
function lastOf(messages: readonly Facts[]): readonly Facts[] {
  let bytes = 0;
  let from = messages.length;
  while (from > 0 && messages.length - from < limits.historyMessagesMax) {
    bytes += Buffer.byteLength(JSON.stringify(messages[from - 1]));
    if (bytes > limits.historyBytesMax) break;
    from -= 1;
  }
  if (from === 0) return messages;
  const kept = messages.slice(from);
  const question = kept.findIndex(({ role }) => role === "user");
  return question < 0 ? [] : kept.slice(question);
}
