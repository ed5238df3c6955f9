// THE READ PATH. A stream is a cursor over a log that one connection moves: read after the cursor, send, wait
// for the socket, and at the end wait for the log to move. Replay and live are this one loop, so there is no
// seam between them.
//
//   store ─▶ hub (ranges, shared) ─▶ dialect and framing (bytes, shared) ─▶ sink (one connection)
//
// A reader that falls behind is not queued for. Where its dialect allows dropping, and only after it has once
// reached the head, it skips reasoning first, then text, never control, and is told how many.

import { type Close, type EncoderState, limits, type Message, type View } from "@runwire/protocol";
import type { Followed, Listener } from "./hub.js";
import type { StreamEnd } from "./metrics/streams.js";
import {
  type Encoded,
  encode,
  encodeEvents,
  minus,
  numberAfter,
  plus,
  type Range,
  type Weights,
} from "./range.js";
import { stackOf } from "./report.js";
import type { Rooms } from "./rooms.js";
import type { RunKey } from "./store.js";
import type { Wire } from "./wire.js";

/** One connection's writing end. */
export interface Sink {
  /** Nothing is sent while the socket is full; `drained` is called when it no longer is. */
  isFull(): boolean;
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
  /** The dialect's own number up to which its messages have been heard; none by default. */
  readonly number?: number;
  readonly backpressure: "drop" | "lossless";
  readonly sink: Sink;
  /** A position at which the stream is complete although the run may go on: a replay's end. */
  readonly until?: number;
}

export interface Stream {
  /** The socket takes bytes again. */
  drained(): void;
  /** Ends the stream from this side, or after the connection broke; `why` where the client is told less. */
  close(close: Close, why?: StreamEnd): void;
}

export async function openStream(
  { hub, report, metrics }: Pick<Rooms, "hub" | "report" | "metrics">,
  options: StreamOptions,
): Promise<Stream> {
  const { wire, sink, number = 0 } = options;
  let { after: cursor, state } = options;
  // The first event may be several messages, of which some have been heard.
  let heard = typeof wire.dialect.cursor === "object" ? number : 0;
  let loading = false;
  /** What was read for this reader alone, until it is sent. */
  let arrived: Range | undefined;
  let closed = false;
  let dropped = 0;
  let sent = 0;
  // What the reader has been sent or has skipped, on the scale of the log's weights; known once at the head.
  let passed: Weights | undefined;
  let skip: { readonly to: number; readonly text: boolean } | undefined;

  const transport = wire.framing === "sse-mux" ? "sse" : wire.framing;
  const counted = metrics.readerOpened(transport, wire.dialect.name);
  const facts = { run_id: options.key.run_id, wire: wire.name };
  report("debug", "stream opened", { ...facts, cursor });

  // The log may move before `follow` has answered; the first pump comes after it.
  let log: Followed | undefined;

  /** A dialect that cannot say an event breaks its own reader, and nobody else's. */
  function pump(): void {
    try {
      sendAll();
    } catch (error) {
      report("error", "bug", { code: "KAI-SERVER-BUG-0001", ...facts, cursor, stack: stackOf(error) });
      close("broken");
    }
  }

  function sendAll(): void {
    while (log !== undefined && !closed && !loading && !sink.isFull()) {
      if (options.until !== undefined && cursor >= options.until) {
        close("finished");
        return;
      }
      const next = arrived ?? log.next(cursor);
      arrived = undefined;
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
      arrived = range;
      pump();
    }
  }

  function deliver(range: Range): void {
    if (range.terminal) {
      finish(range);
      return;
    }
    cursor = range.to;
    if (passed !== undefined) passed = cursor === log?.end ? log.weights : plus(passed, range.weights);
    const encoded =
      skip !== undefined
        ? encodeRest(range, skip)
        : heard > 0
          ? encodeEvents(range.stretch.events, wire, state, heard)
          : encode(range, wire, state);
    state = encoded.state;
    if (encoded.messages > 0) heard = 0;
    send(range, encoded.bytes, encoded.messages);
  }

  function send(range: Range, bytes: Buffer, messages: number): void {
    if (bytes.length === 0) return;
    sent += messages;
    counted.sent(bytes.length, messages);
    sink.send(bytes, numberAfter(range, wire, state));
  }

  /** What a reader that skips still gets of a range. */
  function encodeRest(range: Range, { to, text }: NonNullable<typeof skip>): Encoded {
    const skipped = { "reasoning.delta": 0, "text.delta": 0 };
    const kept = range.stretch.events.filter(({ pos, type }) => {
      if (pos > to || (type !== "reasoning.delta" && !(text && type === "text.delta"))) return true;
      skipped[type] += 1;
      return false;
    });
    for (const type of ["reasoning.delta", "text.delta"] as const) {
      if (skipped[type] === 0) continue;
      dropped += skipped[type];
      counted.dropped(type, skipped[type]);
    }
    if (range.to >= to) skip = undefined;
    return encodeEvents(kept, wire, state);
  }

  function finish(range: Range): void {
    const [ended, said] = wire.dialect.step(state, range.last);
    const unheard = heard === 0 ? said : said.filter(({ id }) => Number(id) > heard);
    const last: Message | undefined = unheard.at(-1);
    state = ended;
    const closing = wire.dialect.close(
      state,
      "finished",
      last === undefined ? { dropped } : { dropped, last },
    );
    const messages = [...unheard.slice(0, -1), ...closing];
    cursor = range.to;
    send(range, wire.frame(messages), messages.length);
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

  function close(how: Close, why: StreamEnd = how): void {
    if (closed) return;
    closed = true;
    log?.leave(listener);
    // Nobody goes on from a cursor in a replay: one that is cut off must not look whole. The end of a credential is said.
    const isCut = options.until !== undefined && how === "leaving" && why !== "credentials";
    sink.close(isCut ? "broken" : how);
    counted.closed(why);
    report("debug", "stream closed", { ...facts, cursor, reason: why, messages: sent, dropped });
    if (why === "broken") report("info", "stream cut", { code: "KAI-STREAM-CONN-0001", ...facts, cursor });
    if (dropped > 0)
      report("info", "reader fell behind", { code: "KAI-STREAM-BUF-0001", ...facts, cursor, dropped });
  }

  const listener: Listener = {
    moved() {
      pump();
      return closed || (log !== undefined && cursor >= log.end);
    },
    gone: () => close("leaving"),
    failed: () => close("broken"),
    lagBytes: () => (log === undefined || passed === undefined ? undefined : log.weights.all - passed.all),
  };
  log = await hub.follow(options.key, options.view, listener).catch((error: unknown) => {
    close("broken");
    throw error;
  });
  if (closed) log.leave(listener);
  pump();
  return { drained, close };
}
