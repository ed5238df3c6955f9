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

export interface Dialect<S extends EncoderState = EncoderState> {
  readonly name: string;
  /** Types it can say; the others are its declared loss. `"all"` loses nothing. */
  readonly carries: ReadonlySet<EventType> | "all";
  /** Which of an event's numbers is the cursor on the wire. */
  readonly cursor: "seq" | "pos";
  /** What a reader that falls behind gets, unless it asks otherwise. */
  readonly backpressure: "drop" | "lossless";
  readonly first: S;
  /** Pure: the same state and event always give the same messages. */
  step(state: S, e: Event): readonly [S, readonly Message[]];
  /** What a client that starts here needs first. Depends on the connection, so never part of `step`. */
  open(state: S, at: number, transcript: () => Transcript): readonly Message[];
  /** What the connection's end adds; `last` is the terminal message, which it may replace. */
  close(
    state: S,
    close: Close,
    of: { readonly dropped: number; readonly last?: Message },
  ): readonly Message[];
  decoder(): Decoder;
}

export interface Decoder {
  /** Throws PROTO-0001 on a malformed message and PROTO-0002 on a type it does not know. */
  decode(message: Message): readonly Draft[];
  end(): readonly Draft[];
}
