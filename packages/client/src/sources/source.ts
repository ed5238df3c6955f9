// Where messages come from: the mirror of the server's Sink. A source knows one wire and nothing of what
// the messages say; `follow` decodes them, keeps the cursor and opens it again when it ends.

import type { Close, LogDialect, Message } from "@runwire/protocol";

/** The runs still to be read, each with the last number read of it (0: nothing yet). */
export type Cursors = ReadonlyMap<string, number>;

/** How a connection came to its end; law CLOSE says how each wire tells it. */
export interface Ending {
  readonly close: Close;
  /** The server asks not to be called before this. */
  readonly retryMs?: number;
  readonly cause?: unknown;
}

/**
 * One connection's messages, in the batches they came in. A batch may be empty: it is a sign of life, and the
 * first one says that the connection stands. What no retry can mend is thrown, as a RunwireError.
 */
export type Batches = AsyncGenerator<readonly Message[], Ending, undefined>;

export interface Source {
  readonly dialect: LogDialect;
  /** The runs it reads, where that is known before. Following ends with the last one's terminal event. */
  readonly runs: readonly string[];
  /** Silence longer than this means that the connection is dead. */
  readonly silenceMsMax: number;
  /** Ends soon after the signal aborts, whatever it waits for. */
  open(at: Cursors, signal: AbortSignal): Batches;
  /**
   * Stored events after a number, where they can be had apart from the stream: what a reader that fell behind
   * was not sent. An Ending where the wire failed.
   */
  page?(
    run_id: string,
    after: number,
    eventsMax: number,
    signal: AbortSignal,
  ): Promise<readonly Message[] | Ending>;
}
