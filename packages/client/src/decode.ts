// What one message says to a follower: an entry of a log with its number, or a snapshot. The number is known
// even where the type is not, so that an unknown type never stops the cursor.

import {
  type Draft,
  type Event,
  isObject,
  type LogDialect,
  type Message,
  malformed,
  RunwireError,
  type Transcript,
} from "@runwire/protocol";
import { errorIn } from "./refusal.js";

export interface Entry {
  readonly kind: "entry";
  readonly run_id: string;
  readonly id: string;
  /** Its number in the dialect that was read. */
  readonly at: number;
  readonly type: string;
  /** Null where this client does not know the type. */
  readonly event: Event | null;
}

export interface SnapshotAt {
  readonly kind: "snapshot";
  readonly run_id: string;
  readonly at: number;
  readonly transcript: Transcript;
}

/** Throws what the server tells in the stream, and PROTO-0001 on a message that is none. */
export function messageReader(dialect: LogDialect): (message: Message) => Entry | SnapshotAt {
  const decoder = dialect.decoder();
  return (message) => {
    if (message.event === "snapshot") {
      return snapshotOf(dialect, parsedOr(message.data, malformed("a snapshot is not JSON")));
    }
    try {
      const [draft] = decoder.decode(message);
      if (draft === undefined) throw malformed("a message without an event");
      return entryOf(dialect, draft, eventOf(draft));
    } catch (error) {
      return readOtherwise(dialect, message, error);
    }
  };
}

/** The rare messages that are no event of a known type; parsed again, so that the common ones are parsed once. */
function readOtherwise(dialect: LogDialect, message: Message, error: unknown): Entry | SnapshotAt {
  if (!(error instanceof RunwireError)) throw error;
  const value = parsedOr(message.data, error);
  if (!isObject(value)) throw error;
  if (value.type === "snapshot") return snapshotOf(dialect, value);
  const told = errorIn(value);
  if (told !== undefined) throw told.error;
  if (error.code !== "KAI-STREAM-PROTO-0002") throw error;
  return entryOf(dialect, value, null);
}

function parsedOr(text: string, error: RunwireError): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Why it is no JSON helps nobody; the error at hand says what it should have been.
    throw error;
  }
}

function entryOf(
  dialect: LogDialect,
  envelope: { readonly [M in keyof Draft]?: unknown },
  event: Event | null,
): Entry {
  const { run_id, id, type } = envelope;
  const at = envelope[dialect.cursor];
  if (typeof run_id !== "string" || typeof id !== "string" || typeof type !== "string" || !isNumber(at)) {
    throw malformed(`an event needs \`id\`, \`run_id\` and \`${dialect.cursor}\``);
  }
  return { kind: "entry", run_id, id, at, type, event };
}

function eventOf(draft: Draft): Event {
  const { type, payload, id, ts, run_id, seq, scope, child_id = null } = draft;
  // A dialect without `pos` counts only what it carries: there, a place in the log is its `seq`.
  const { pos = seq } = draft;
  if (
    id === undefined ||
    ts === undefined ||
    run_id === undefined ||
    seq === undefined ||
    pos === undefined
  ) {
    throw malformed("an event needs `id`, `ts`, `run_id` and its numbers");
  }
  return { id, ts, type, run_id, child_id, pos, seq, payload, ...(scope === undefined ? {} : { scope }) };
}

function snapshotOf(dialect: LogDialect, value: unknown): SnapshotAt {
  const at = isObject(value) ? value[dialect.cursor] : undefined;
  const transcript = isObject(value) ? value.transcript : undefined;
  if (!isObject(transcript) || typeof transcript.run_id !== "string" || typeof at !== "number") {
    throw malformed(`a snapshot needs \`${dialect.cursor}\` and \`transcript\``);
  }
  // The server folds with the same `reduce`, so its members are trusted as its events are.
  return { kind: "snapshot", run_id: transcript.run_id, at, transcript: transcript as unknown as Transcript };
}

function isNumber(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 1;
}
