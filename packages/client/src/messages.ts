// A run's messages as a server says them, in any dialect, over any number of connections. Where `follow` makes a log of
// what it hears, this passes it on: each message once and in order, and what the server says of a cursor it cannot use.
//
//   for await (const messages of followMessages({ base, run_id, dialect: "runtime" })) …

import type { Message } from "@runwire/protocol";
import { type Endpoint, queryOf, runPath } from "./http.js";
import { limits } from "./limits.js";
import { type Reader, type ReconnectOptions, reconnecting } from "./reconnect.js";
import { errorIn } from "./refusal.js";
import type { Ending } from "./sources/source.js";
import { readSse } from "./sources/sse.js";

export interface FollowMessagesOptions extends Endpoint, Omit<ReconnectOptions, "clock"> {
  readonly run_id: string;
  /** `runtime` unless told otherwise. */
  readonly dialect?: string;
  /** The `id` of the last message that was had. */
  readonly after?: string | number;
  /** First what the run amounts to by now, then what follows. */
  readonly snapshot?: boolean;
  readonly detail?: "default" | "full";
}

/**
 * In the batches they came in. Ends when the run has ended and all was had; otherwise it throws: a RunwireError that no
 * retry mends, or the signal's reason.
 */
export function followMessages(options: FollowMessagesOptions): AsyncGenerator<readonly Message[], void> {
  const { run_id, dialect = "runtime", detail } = options;
  let after = options.after;
  // Until it has come: a connection that broke before has given nothing.
  let snapshot = options.snapshot === true ? 1 : undefined;

  const reader: Reader<Message> = {
    at: () => new Map(),
    async *take(messages) {
      const told = messages.findIndex(({ event }) => event === "closing");
      const heard = told < 0 ? messages : messages.slice(0, told);
      for (const { id } of heard) if (id !== undefined) after = id;
      if (heard.length > 0) {
        snapshot = undefined;
        yield heard;
      }
      return told < 0 ? undefined : endingOf(messages[told] as Message);
    },
  };
  const source = {
    silenceMsMax: limits.silenceMsMax,
    open(_at: unknown, aborted: AbortSignal) {
      const query = queryOf({ dialect, detail, backpressure: "lossless", after, snapshot });
      return readSse(options, runPath(run_id, `/stream${query}`), aborted);
    },
  };
  return reconnecting(source, reader, options);
}

/** The credential has ended: whether the next connection has a better one is its to find out. */
function endingOf({ data }: Message): Ending {
  const told = errorIn(JSON.parse(data));
  return told === undefined ? { close: "leaving" } : { close: "leaving", cause: told.error };
}
