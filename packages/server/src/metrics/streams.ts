// What readers do. A reader is one log followed by one connection: a connection with several runs is several.

import type { Close } from "@runwire/protocol";
import { Counter, Gauge, type Registry } from "prom-client";

export const transports = ["sse", "ndjson", "websocket", "in-process"] as const;
export type Transport = (typeof transports)[number];

/** How a stream ended; `credentials` where those it was opened with did. */
export type StreamEnd = Close | "credentials";
const ends: readonly StreamEnd[] = ["finished", "leaving", "broken", "credentials"];

/**
 * Where a stream began: at the start, after its cursor, at the start because its cursor was unusable or ahead, at a
 * snapshot; or that it did not, because the reader has had everything or the run was erased.
 */
export type Beginning = "start" | "resumed" | "reset" | "snapshot" | "finished" | "gone";
const beginnings: readonly Beginning[] = ["start", "resumed", "reset", "snapshot", "finished", "gone"];

export type Droppable = "reasoning.delta" | "text.delta";
const droppable: readonly Droppable[] = ["reasoning.delta", "text.delta"];

/** One reader's facts. */
export interface ReaderMetrics {
  /** Called for each write of each reader, so it only adds up. */
  sent(bytes: number, messages: number): void;
  dropped(type: Droppable, events: number): void;
  closed(how: StreamEnd): void;
}

export interface StreamMetrics {
  streamBegan(how: Beginning): void;
  readerOpened(transport: Transport, dialect: string): ReaderMetrics;
}

interface Kind {
  readonly labels: { readonly transport: Transport; readonly dialect: string };
  now: number;
  bytes: number;
  messages: number;
}

export function streamMetrics(registry: Registry): StreamMetrics {
  const registers = [registry];
  const kinds = new Map<string, Kind>();
  const labelNames = ["transport", "dialect"] as const;

  const opened = new Counter({
    name: "runwire_streams_opened_total",
    help: "Streams opened; one for each run on a connection.",
    labelNames,
    registers,
  });
  const closed = new Counter({
    name: "runwire_streams_closed_total",
    help: "Streams closed, by how they ended.",
    labelNames: ["reason"],
    registers,
  });
  const began = new Counter({
    name: "runwire_stream_beginnings_total",
    help: "Requests for streams, by where they began: start, resumed, reset (cursor unusable or ahead), snapshot, finished (nothing left to send) or gone (erased).",
    labelNames: ["outcome"],
    registers,
  });
  const drops = new Counter({
    name: "runwire_events_dropped_total",
    help: "Events that were skipped for readers that fell behind, by type.",
    labelNames: ["type"],
    registers,
  });
  // What is not yet there cannot be told from what does not happen.
  for (const reason of ends) closed.inc({ reason }, 0);
  for (const outcome of beginnings) began.inc({ outcome }, 0);
  for (const type of droppable) drops.inc({ type }, 0);

  new Gauge({
    name: "runwire_readers",
    help: "Readers that follow a log now.",
    labelNames,
    registers,
    collect() {
      for (const { labels, now } of kinds.values()) this.set(labels, now);
    },
  });
  new Counter({
    name: "runwire_stream_sent_bytes_total",
    help: "Bytes of events sent to readers, without keepalives.",
    labelNames,
    registers,
    collect() {
      this.reset();
      for (const { labels, bytes } of kinds.values()) this.inc(labels, bytes);
    },
  });
  new Counter({
    name: "runwire_stream_sent_messages_total",
    help: "Messages sent to readers: what their dialects make of events.",
    labelNames,
    registers,
    collect() {
      this.reset();
      for (const { labels, messages } of kinds.values()) this.inc(labels, messages);
    },
  });

  function kindOf(transport: Transport, dialect: string): Kind {
    const name = `${transport}/${dialect}`;
    let kind = kinds.get(name);
    if (kind === undefined) {
      kind = { labels: { transport, dialect }, now: 0, bytes: 0, messages: 0 };
      kinds.set(name, kind);
    }
    return kind;
  }

  return {
    streamBegan: (outcome) => began.inc({ outcome }),
    readerOpened(transport, dialect) {
      const kind = kindOf(transport, dialect);
      kind.now += 1;
      opened.inc(kind.labels);
      return {
        sent(bytes, messages) {
          kind.bytes += bytes;
          kind.messages += messages;
        },
        dropped: (type, events) => drops.inc({ type }, events),
        closed(reason) {
          kind.now -= 1;
          closed.inc({ reason });
        },
      };
    },
  };
}
