// THE READ PATH. A stream is a cursor over a log that one connection moves: read after the cursor, send, wait
// for the socket, and at the end wait for the log to move. Replay and live are this one loop, so there is no
// seam between them.
//
//   store ─▶ hub (ranges, shared) ─▶ dialect and framing (bytes, shared) ─▶ sink (one connection)
//
// A reader that falls behind is not queued for. Where its dialect allows dropping, and only after it has once
// reached the head, it skips reasoning first, then text, never control, and is told how many.

import {
  type Close,
  type EncoderState,
  limits,
  type Message,
  type StoredEvent,
  type View,
} from "@runwire/protocol";
import type { Followed, Hub } from "./hub.js";
import { encode, encodeEvents, minus, plus, type Range, type Weights } from "./range.js";
import type { Report } from "./report.js";
import type { RunKey } from "./store.js";
import type { Wire } from "./wire.js";

/** One connection's writing end. */
export interface Sink {
  /** Nothing is sent while the socket is full; `drained` is called when it no longer is. */
  readonly full: boolean;
  /** `cursor` is the dialect's own number, after these bytes. */
  send(bytes: Buffer, cursor: number): void;
  /** Says how the stream ended, in the transport's way, and closes. */
  close(close: Close): void;
}

export interface StreamOptions {
  readonly key: RunKey;
  readonly view: View;
  /** Position after which to begin. */
  readonly after: number;
  readonly wire: Wire;
  /** Encoder state at `after`. */
  readonly state: EncoderState;
  readonly backpressure: "drop" | "lossless";
  readonly sink: Sink;
  /** A position at which the stream is complete although the run may go on: a replay's end. */
  readonly until?: number;
  readonly report: Report;
}

export interface Stream {
  /** The socket takes bytes again. */
  drained(): void;
  /** Ends the stream from this side, or after the connection broke. */
  close(close: Close): void;
}

export async function openStream(hub: Hub, options: StreamOptions): Promise<Stream> {
  const { wire, sink, report } = options;
  let { after: cursor, state } = options;
  let loading = false;
  let closed = false;
  let dropped = 0;
  // What the reader has been sent or has skipped, on the scale of the log's weights; known once at the head.
  let passed: Weights | undefined;
  let skip: { readonly to: number; readonly text: boolean } | undefined;

  // The log may move before `follow` has answered; the first pump comes after it.
  let log: Followed | undefined;

  function pump(): void {
    while (log !== undefined && !closed && !loading && !sink.full) {
      if (options.until !== undefined && cursor >= options.until) {
        close("finished");
        return;
      }
      const next = log.next(cursor);
      if (next === undefined) {
        passed = log.weights;
        return;
      }
      if (next instanceof Promise) {
        loading = true;
        next.then(loaded, () => close("broken"));
        return;
      }
      deliver(next);
    }
  }

  function loaded(range: Range | undefined): void {
    loading = false;
    if (closed) return;
    // Erased under the reader.
    if (range === undefined) close("leaving");
    else {
      deliver(range);
      pump();
    }
  }

  function deliver(range: Range): void {
    if (range.terminal) {
      finish(range);
      return;
    }
    cursor = range.to;
    if (passed !== undefined) passed = plus(passed, range.weights);
    let bytes: Buffer;
    if (skip === undefined) {
      const encoded = encode(range, wire, state);
      state = encoded.state;
      bytes = encoded.bytes;
    } else {
      const encoded = encodeEvents(range.events.filter(survives), wire, state);
      state = encoded.state;
      bytes = encoded.bytes;
      if (range.to >= skip.to) skip = undefined;
    }
    if (bytes.length > 0) sink.send(bytes, numberAfter(range));
  }

  /** Whether a reader that skips still gets this event; counts it where not. */
  function survives(e: StoredEvent): boolean {
    if (skip === undefined || e.pos > skip.to) return true;
    if (e.type !== "reasoning.delta" && !(skip.text && e.type === "text.delta")) return true;
    dropped += 1;
    return false;
  }

  function numberAfter(range: Range): number {
    return range.events.at(-1)?.[wire.dialect.cursor] ?? 0;
  }

  function finish(range: Range): void {
    const e = range.events[0] as StoredEvent;
    const [, said] = wire.dialect.step(state, e);
    const last: Message | undefined = said.at(-1);
    const closing = wire.dialect.close(
      state,
      "finished",
      last === undefined ? { dropped } : { dropped, last },
    );
    const bytes = wire.frame([...said.slice(0, -1), ...closing]);
    cursor = range.to;
    if (bytes.length > 0) sink.send(bytes, numberAfter(range));
    close("finished");
  }

  function drained(): void {
    if (options.backpressure === "drop" && log !== undefined && passed !== undefined && skip === undefined) {
      const lag = minus(log.weights, passed);
      if (lag.all > limits.lagBytesMax) {
        skip = { to: log.end, text: lag.all - lag.reasoning > limits.lagBytesMax };
      }
    }
    pump();
  }

  function close(how: Close): void {
    if (closed) return;
    closed = true;
    log?.stop();
    sink.close(how);
    const facts = { run_id: options.key.run_id, wire: wire.name, cursor };
    if (how === "broken") report("info", "stream cut", { code: "KAI-STREAM-CONN-0001", ...facts });
    if (dropped > 0) report("info", "reader fell behind", { code: "KAI-STREAM-BUF-0001", ...facts, dropped });
  }

  log = await hub.follow(options.key, options.view, { moved: pump, gone: () => close("leaving") });
  if (closed) log.stop();
  pump();
  return { drained, close };
}
