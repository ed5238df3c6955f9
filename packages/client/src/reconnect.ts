// The one reconnect loop of the project. It opens a source, hands what arrives to the reader, and opens it
// again where the reader stands, until the reader has read all there is or nothing can be done.
//
//   connecting ──▶ open ──▶ finished
//       ▲            │
//       └── waiting ◀┘  leaving, broken, or silent for too long

import type { Close, Message } from "@runwire/protocol";
import { linkedAbort } from "./abort.js";
import { backoff } from "./backoff.js";
import { type Clock, systemClock, wait } from "./clock.js";
import type { Cursors, Ending, Source } from "./sources/source.js";

/** What makes sense of the messages. It lives across connections and holds the cursors. */
export interface Reader<Item> {
  /** Where to begin: every log that has not ended, with its cursor. */
  at(): Cursors;
  /** What the messages say; its return value, if any, is why this connection is of no more use. */
  take(
    messages: readonly Message[],
    signal: AbortSignal,
  ): AsyncGenerator<readonly Item[], Ending | undefined>;
}

/** What of a source is opened again and again. */
type Connectable = Pick<Source, "open" | "silenceMsMax">;

/** What the wire does, for a person who watches; what the log says comes through `follow`. */
export type Status =
  | { readonly state: "connecting"; readonly attempts: number }
  | { readonly state: "open" }
  | {
      readonly state: "waiting";
      /** Connections in a row that brought nothing. */
      readonly attempts: number;
      readonly delayMs: number;
      readonly close: Exclude<Close, "finished">;
      readonly cause?: unknown;
    };

export interface ReconnectOptions {
  readonly signal?: AbortSignal | undefined;
  /** Connections in a row that may bring nothing before it throws why. Without it any outage is waited out. */
  readonly attemptsMax?: number;
  readonly onStatus?: (status: Status) => void;
  readonly clock?: Clock;
  /** Numbers in [0, 1) that spread the waits. */
  readonly random?: () => number;
}

/** Returns when all is read. Throws what no retry can mend, and the signal's reason when it aborts. */
export async function* reconnecting<Item>(
  source: Connectable,
  reader: Reader<Item>,
  options: ReconnectOptions,
): AsyncGenerator<readonly Item[], void> {
  const {
    signal,
    clock = systemClock,
    onStatus = () => {},
    attemptsMax = Number.POSITIVE_INFINITY,
  } = options;
  const pause = backoff(options.random ?? Math.random);
  // Other than the back-off counts: that also waits after a connection that brought something and broke.
  let attempts = 0;
  for (;;) {
    signal?.throwIfAborted();
    onStatus({ state: "connecting", attempts });
    const { progressed, ending } = yield* watchProgress(connect(source, reader, signal, clock, onStatus));
    const { close, retryMs = 0, cause } = ending;
    if (close === "finished") return;
    signal?.throwIfAborted();
    if (progressed) pause.reset();
    attempts = progressed ? 0 : attempts + 1;
    // A server that leaves is not waited for, unless all it ever does is leave.
    const delayMs = Math.max(retryMs, close === "leaving" && progressed ? 0 : pause.nextMs());
    if (attempts >= attemptsMax) throw cause ?? new Error(`gave up: ${close} without a reason`);
    onStatus({ state: "waiting", attempts, delayMs, close, cause });
    await wait(clock, delayMs, signal);
  }
}

/** Passes everything on, and says whether there was anything. */
async function* watchProgress<Item>(
  connection: AsyncGenerator<readonly Item[], Ending>,
): AsyncGenerator<readonly Item[], { readonly progressed: boolean; readonly ending: Ending }> {
  let progressed = false;
  try {
    for (;;) {
      const step = await connection.next();
      if (step.done) return { progressed, ending: step.value };
      progressed = true;
      yield step.value;
    }
  } finally {
    // Where the consumer stops reading in the middle.
    await connection.return({ close: "leaving" });
  }
}

/** One connection, from opening to its end. */
async function* connect<Item>(
  source: Connectable,
  reader: Reader<Item>,
  signal: AbortSignal | undefined,
  clock: Clock,
  onStatus: (status: Status) => void,
): AsyncGenerator<readonly Item[], Ending> {
  const connection = linkedAbort(signal);
  const batches = source.open(reader.at(), connection.signal);
  const silent = new Error(`nothing came for ${source.silenceMsMax} ms`);
  let opened = false;
  try {
    for (;;) {
      // Only while we wait for the wire: a slow consumer is not the server's silence.
      const cancel = clock.after(source.silenceMsMax, () => connection.abort(silent));
      const step = await batches.next().finally(cancel);
      if (step.done) return step.value;
      if (!opened) onStatus({ state: "open" });
      opened = true;
      const ending = yield* reader.take(step.value, connection.signal);
      if (ending !== undefined) return ending;
    }
  } catch (error) {
    // Silence is one more way to break; everything else that is thrown cannot be mended by trying again.
    if (error === silent) return { close: "broken", cause: silent };
    throw error;
  } finally {
    // Politely first, while the source stands at a `yield`; then for good.
    await batches.return({ close: "leaving" });
    connection.abort(new Error("done reading"));
    connection.unlink();
  }
}
