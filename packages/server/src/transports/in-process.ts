// A run followed inside the server's own process. The loop is every reader's; only its sink is not a socket but whoever
// iterates, and the next range is not read before they have had this one.

import { dialects, type Message, RunwireError, type View } from "@runwire/protocol";
import { type Caller, isTenant } from "../auth/caller.js";
import { openTenant } from "../auth/gate.js";
import { badParam } from "../http/check.js";
import { readableHead } from "../reading.js";
import type { Rooms } from "../rooms.js";
import { openStream, type Sink } from "../stream.js";
import { messagesIn, wire } from "../wire.js";
import { followableHead, openAt } from "./open.js";

export interface FollowOptions {
  /** Its id. */
  readonly run: string;
  /** `default`, which is that of an open server, unless told otherwise. */
  readonly tenant?: string;
  /** `runtime` unless told otherwise. */
  readonly dialect?: string;
  /** The `id` of the last message that was had. */
  readonly after?: string | number;
  /** First what the run amounts to by now, then what follows. */
  readonly snapshot?: boolean;
  /** `full` for every delta as it was produced. */
  readonly detail?: View;
  readonly signal?: AbortSignal;
}

/**
 * Every message once and in order, as fast as they are taken. Ends with the run. Otherwise it throws: the signal's
 * reason, or a RunwireError, which is `KAI-STREAM-LEAVING-0001` where the gateway closes.
 */
export async function* followRun(rooms: Rooms, options: FollowOptions): AsyncGenerator<Message, void> {
  const { run: run_id, snapshot = false, detail: view = "default", signal } = options;
  const dialect = dialects.get(options.dialect ?? "runtime");
  if (dialect === undefined) throw badParam("`dialect`", `takes ${[...dialects.keys()].join(", ")}`);
  if (view !== "default" && view !== "full") throw badParam("`detail`", "takes default or full");
  signal?.throwIfAborted();
  if (rooms.connections.leaving) throw new RunwireError("KAI-STREAM-LEAVING-0001");
  const tenant = tenantNamed(options.tenant);
  const key = { tenant, run_id };
  const head = await followableHead(rooms, key, view);
  const cursor = options.after === undefined ? undefined : String(options.after);
  const bytes = wire(dialect, "in-process", false);
  const opening = await openAt(rooms, head, bytes, view, { cursor, snapshot });
  if (opening.finished) return;

  const { sink, taken, next } = waitingRoom(messagesIn(opening.first), signal);
  const stream = await openStream(rooms, {
    ...opening,
    key,
    view,
    wire: bytes,
    backpressure: "lossless",
    sink,
  });
  const remove = rooms.connections.add({
    // There is nobody who could think it dead.
    sentMs: () => Number.POSITIVE_INFINITY,
    caller: callerOf(tenant),
    ping: () => {},
    leave: () => stream.close("leaving"),
    // It came with no credential that could end.
    end: () => {},
  });
  try {
    if (rooms.connections.leaving) stream.close("leaving");
    for (;;) {
      const come = await next();
      signal?.throwIfAborted();
      if (come === "finished") return;
      // Erased, or the gateway closes.
      if (come === "leaving") {
        if (!rooms.connections.leaving) await readableHead(rooms, key, view);
        throw new RunwireError("KAI-STREAM-LEAVING-0001");
      }
      if (come === "broken")
        throw new RunwireError("KAI-SERVER-STORE-0001", `${run_id} could not be read on`);
      for (const message of come) {
        yield message;
        signal?.throwIfAborted();
      }
      taken();
      stream.drained();
    }
  } finally {
    remove();
    stream.close("leaving");
  }
}

/** Whoever makes credentials looks at the tenant that they name; a program just says one. */
export function tenantNamed(tenant: string = openTenant): string {
  if (!isTenant(tenant))
    throw badParam("`tenant`", "takes 1 to 63 of a-z, 0-9, _ and -, but not these two first");
  return tenant;
}

interface WaitingRoom {
  readonly sink: Sink;
  /** What has come, or how the stream ended once all was taken; nothing where the signal aborts. */
  next(): Promise<readonly Message[] | Parameters<Sink["close"]>[0]>;
  taken(): void;
}

/** One write's messages at a time: a sink that is full until they are taken. */
function waitingRoom(first: readonly Message[], signal: AbortSignal | undefined): WaitingRoom {
  let waiting = first;
  let ended: Parameters<Sink["close"]>[0] | undefined;
  let wake = (): void => {};
  return {
    sink: {
      isFull: () => waiting.length > 0,
      send(bytes) {
        waiting = messagesIn(bytes);
        wake();
      },
      close(how) {
        ended = how;
        wake();
      },
    },
    taken() {
      waiting = [];
    },
    async next() {
      if (waiting.length === 0 && ended === undefined && signal?.aborted !== true)
        await new Promise<void>((resolve) => {
          const woken = (): void => {
            signal?.removeEventListener("abort", woken);
            resolve();
          };
          wake = woken;
          signal?.addEventListener("abort", woken);
        });
      return waiting.length > 0 ? waiting : (ended ?? []);
    },
  };
}

function callerOf(tenant: string): Caller {
  return { tenant, scopes: new Set(), credential: "open", endsMs: Number.POSITIVE_INFINITY };
}
