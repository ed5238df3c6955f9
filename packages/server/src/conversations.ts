// Conversations at any point of a run: what forks and later turns begin with.

import {
  type Conversation,
  converse,
  elsewhere,
  emptyConversation,
  type Facts,
  isObject,
  limits,
  messagesOf,
  newFold,
  type StoredEvent,
} from "@runwire/protocol";
import { wholeBlob } from "./blobs/whole.js";
import { type Head, isEnded } from "./log/head.js";
import { tooLarge } from "./log/split.js";
import { isLogGone, stretches } from "./reading.js";
import type { Rooms } from "./rooms.js";
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

/** Its messages, in which what people said is whole. */
export async function wholeMessages(
  blobs: Rooms["blobs"],
  tenant: string,
  conversation: Conversation,
): Promise<readonly Facts[]> {
  const messages = messagesOf(conversation);
  const { messages: asked } = conversation.asked;
  // Those that it was given are kept as they are.
  const given = Array.isArray(asked) ? asked.length : 0;
  return [...messages.slice(0, given), ...(await withWords(blobs, tenant, messages.slice(given)))];
}

/** Puts back what lies beside the log; throws where that is more than an event may have. */
async function withWords(
  blobs: Rooms["blobs"],
  tenant: string,
  messages: readonly Facts[],
): Promise<readonly Facts[]> {
  let bytes = 0;
  const whole: Facts[] = [];
  for (const message of messages) {
    const where = elsewhere(message, "content");
    const found = where === undefined ? undefined : await blobs.find(tenant, where.blob_ref);
    // A producer may write such a thing itself: then it stays as it is told. Of a tree that is erased meanwhile no run
    // begins.
    if (where === undefined || found?.bytes !== where.bytes) {
      whole.push(message);
      continue;
    }
    bytes += found.bytes;
    if (bytes > limits.eventBytesMax) throw tooLarge();
    const content = textIn(await wholeBlob(blobs, tenant, found.ref), where.media_type);
    const { spilled: _, ...said } = message;
    whole.push(content === undefined ? message : { ...said, content });
  }
  return whole;
}

/**
 * What people say is a text, and one that UTF-8 cannot hold lies there as its JSON. Which of the two it is says the
 * event: the same bytes may be the JSON of something else, which a tool gave and a person quotes.
 */
function textIn(bytes: Buffer | undefined, media_type: unknown): string | undefined {
  const text = bytes?.toString();
  if (text === undefined || media_type !== "application/json") return text;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "string" ? value : undefined;
  } catch {
    // A producer has said so itself, of bytes that are none.
    return undefined;
  }
}

/** What the next turn of a session begins with. */
export interface History {
  /** The turn that it is the conversation of. */
  readonly run_id: string;
  readonly messages: readonly Facts[];
  /** How many turns it is of, and whether some of it was left out. */
  readonly told: { readonly turns: number; readonly truncated: boolean };
}

/**
 * What people said and what was settled, by the session's last turn that has ended. That turn began with the history
 * of those before it, so it is all there. Undefined where no turn has ended.
 */
export async function historyOf(
  { store, blobs }: Pick<Rooms, "store" | "blobs">,
  tenant: string,
  session_id: string,
): Promise<History | undefined> {
  const last = await lastEnded(store, tenant, session_id);
  if (last === undefined) return undefined;
  const key = { tenant, run_id: last.run.run_id };
  const folded = await conversationTo(store, key, last.views.default.pos, () => false).catch(
    async (error: unknown) => {
      // Of one that is still there something is lost: it would be the last again. Its head may be in memory for longer.
      if (!isLogGone(error) || !(await store.isErased(key))) throw error;
    },
  );
  // Erased meanwhile: then the turn before it is the last.
  if (folded === undefined) return historyOf({ store, blobs }, tenant, session_id);
  const { conversation } = folded;
  const messages = await withWords(blobs, tenant, lastOf(conversation.history));
  const before = isObject(conversation.asked.history) ? conversation.asked.history : {};
  const turns = (typeof before.turns === "number" ? before.turns : 0) + 1;
  const truncated = before.truncated === true || messages.length < conversation.history.length;
  return { run_id: key.run_id, messages, told: { turns, truncated } };
}

async function lastEnded(store: Store, tenant: string, session_id: string): Promise<Head | undefined> {
  for (let cursor: string | undefined; ; ) {
    const query = { session_id, limit: 20, ...(cursor === undefined ? {} : { cursor }) };
    const { heads, next } = await store.listRuns(tenant, query);
    const ended = heads.find(isEnded);
    if (ended !== undefined || next === null) return ended;
    cursor = next;
    // Any number of turns may be live, and all of it be in memory: others get their turn between two pages.
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** The last messages that fit, from a question on. */
function lastOf(messages: readonly Facts[]): readonly Facts[] {
  let bytes = 0;
  let from = messages.length;
  while (from > 0 && messages.length - from < limits.historyMessagesMax) {
    const message = messages[from - 1] as Facts;
    const beside = elsewhere(message, "content")?.bytes ?? 0;
    bytes += Buffer.byteLength(JSON.stringify(message)) + Math.max(0, beside);
    if (bytes > limits.historyBytesMax) break;
    from -= 1;
  }
  if (from === 0) return messages;
  const kept = messages.slice(from);
  const question = kept.findIndex(({ role }) => role === "user");
  return question < 0 ? [] : kept.slice(question);
}
