// How a log is said on a wire. A dialect is one file beside this one; it knows nothing of connections.

import type { Draft, Event, EventType } from "./events.js";
import type { Transcript } from "./transcript.js";

/** One thing said: SSE, NDJSON and WebSocket frame it, each in its own way. */
export interface Message {
  /** The dialect's cursor after this message; SSE puts it on the `id:` line. */
  readonly id?: string;
  /** SSE's `event:` line. */
  readonly event?: string;
  /** One JSON text without a line break. */
  readonly data: string;
}

/** How a stream came to its end. */
export type Close = "finished" | "leaving" | "broken";

/** The state of an encoder: a small JSON value and a function of the log alone. */
export type EncoderState = unknown;

/** A dialect in which an event may be several messages, or none, numbers the messages. */
export interface Numbering<S> {
  /** The number of the last message so far. */
  last(state: S): number;
}

/** A dialect of the log itself: an event is a message, its number the cursor, and its stored line the data. */
export interface LogDialect extends Dialect<null> {
  readonly cursor: "seq" | "pos";
  /** How much of the line: up to the payload, and closed there, or all of it. */
  readonly says: "payload" | "line";
}

export function isOfLog(dialect: Dialect): dialect is LogDialect {
  return (dialect as Partial<LogDialect>).says !== undefined;
}

/** How a connection begins: at the start, after a cursor, at the start in spite of one, or with a snapshot. */
export type Opening = (
  | {
      readonly how: "start" | "resumed" | "reset";
      readonly run_id: string;
      /** The run's, which a stream that begins anew has not read yet. */
      readonly session_id?: string;
    }
  | {
      readonly how: "snapshot";
      readonly transcript: Transcript;
      /** The dialect's own number up to which the client says it has heard, where it says so. */
      readonly heard?: number;
    }
) & {
  /** When the connection was opened, as an RFC 3339 time. */
  readonly now?: string;
};

export interface Dialect<S extends EncoderState = EncoderState> {
  readonly name: string;
  /** Types it can say; the others are its declared loss. `"all"` loses nothing. */
  readonly carries: ReadonlySet<EventType> | "all";
  /** Which of an event's numbers is the cursor on the wire, or the dialect's own. */
  readonly cursor: "seq" | "pos" | Numbering<S>;
  /** What a reader that falls behind gets, unless it asks otherwise. */
  readonly backpressure: "drop" | "lossless";
  readonly first: S;
  /** Pure: the same state and event always give the same messages. */
  step(state: S, e: Event): readonly [S, readonly Message[]];
  /** What a client that begins here needs first. It has no number of its own: it depends on the connection. */
  open(state: S, opening: Opening): readonly Message[];
  /** What the connection's end adds; `last` is the terminal message, which it may replace. */
  close(
    state: S,
    close: Close,
    of: { readonly dropped: number; readonly last?: Message },
  ): readonly Message[];
  decoder(): Decoder;
  /** The same for messages that go on with a log, where what is open in it says what they mean. `state` is that at its end. */
  decoderAfter?(state: S): Decoder;
}

/** What a dialect without a word of its own says for a snapshot: the transcript, under its cursor. */
export function snapshotMessage(cursor: "seq" | "pos" | number, opening: Opening): readonly Message[] {
  if (opening.how !== "snapshot") return [];
  const { transcript } = opening;
  const { pos, seq } = transcript;
  const data = JSON.stringify({ type: "snapshot", pos, seq, transcript });
  const number = typeof cursor === "number" ? cursor : transcript[cursor];
  return [{ id: String(number), event: "snapshot", data }];
}

export interface Decoder {
  /** Throws PROTO-0001 on a malformed message and PROTO-0002 on a type it does not know. */
  decode(message: Message): readonly Draft[];
  end(): readonly Draft[];
  /** How many runs it has read of so far, where the wire tells them apart otherwise than by naming them. */
  runs?(): number;
}
