// One stored thing: an event with every place it has. A control event of a grandchild has six places (two
// views of three logs) and is stored once.

import { type EventType, StoredEvent, type View } from "@runwire/protocol";

/** Where a record stands in one log: its numbers in both views, 0 where it is not in that view. */
export interface Place {
  /** The run, or the feed, whose log this is. */
  readonly log: string;
  readonly defaultPos: number;
  readonly defaultSeq: number;
  readonly fullPos: number;
  readonly fullSeq: number;
  /** What a feed shows of the record, where that is not its payload. Only its commit needs to know. */
  readonly shown?: string;
}

/** A feed's entries are kept apart from its runs' records: they belong to no tree. */
export function isFeed({ log }: Place): boolean {
  return isFeedLog(log);
}

export function isFeedLog(log: string): boolean {
  return log.startsWith("feed:");
}

/** The last number that a fenced producer of a run has stored. */
export interface ProducerMark {
  /** The run it writes to, whose log this record is in. */
  readonly log: string;
  readonly id: string;
  readonly epoch: number;
  readonly seq: number;
}

/** A blob that an event refers to: it lives as long as a run refers to it. */
export interface BlobRef {
  readonly ref: string;
  readonly media_type: string;
  readonly bytes: number;
}

export const noBlobs: readonly BlobRef[] = [];

/** A tool that somebody has approved for more than one call. */
export interface Allowance {
  readonly tool: string;
  /** Null: for every run of the tenant, until it is taken back. */
  readonly session_id: string | null;
  /** The run whose request was answered so. */
  readonly run_id: string;
  readonly approval_id: string;
  readonly at: string;
}

export interface Record {
  readonly id: string;
  readonly ts: string;
  readonly type: EventType;
  readonly tenant: string;
  /** The run that produced it. */
  readonly by: string;
  readonly payloadText: string;
  readonly scopeText: string | null;
  readonly places: readonly Place[];
  /** On a joined delta: the position in the producing run's full log that its group now reaches to. */
  readonly covers: number | null;
  readonly producer: ProducerMark | null;
  /** What was spilled of it. Only its commit needs to know: from then on the store counts them. */
  readonly blobs: readonly BlobRef[];
}

/** A record's numbers in a log and view that it is in. */
export function numbersIn(
  { places }: Record,
  log: string,
  view: View,
): { readonly pos: number; readonly seq: number } {
  const place = places.find((place) => place.log === log) as Place;
  return view === "default"
    ? { pos: place.defaultPos, seq: place.defaultSeq }
    : { pos: place.fullPos, seq: place.fullSeq };
}

/** The record as a log and view that it is in shows it. */
export function eventIn(record: Record, log: string, view: View): StoredEvent {
  const { id, ts, type, by, payloadText, scopeText } = record;
  const { pos, seq } = numbersIn(record, log, view);
  return new StoredEvent(id, ts, type, log, log === by ? null : by, pos, seq, payloadText, scopeText);
}

export const envelopeBytes = 200;

/** About what an event costs on a wire. */
export function weightOf(e: Pick<Record, "payloadText" | "scopeText">): number {
  return envelopeBytes + Buffer.byteLength(e.payloadText) + Buffer.byteLength(e.scopeText ?? "");
}
