// Events as a store keeps them for readers that come late: JSON lines one after the other, and marks that say where each
// begins and ends, and its payload. Whoever passes them on looks at these bytes; strings are made only of the events that
// somebody looks into.
//
//   {"id":"evt_…(30)","ts":"…(24)","type":"…","run_id":"…","child_id":null,"seq":7,"payload":{…},"pos":12,"scope":{…}}
//   ▲ start                                                                         ▲ payload  ▲ its end            end ▲
//
// Every member up to the type has a fixed length, and the run is known, so nothing is searched but the ends of the type
// and of the child's name. All before the payload is ASCII: there, bytes and characters count alike.

import { type EventType, eventTypes, StoredEvent } from "@runwire/protocol";
import { envelopeBytes } from "./record.js";

export interface Lines {
  readonly log: string;
  readonly firstPos: number;
  readonly bytes: Buffer;
  /** Start, payload start, payload end, end: four byte offsets an event. */
  readonly marks: Uint32Array;
}

const idChars = "evt_".length + 26;
const tsChars = "2026-01-01T00:00:00.000Z".length;
const idAt = '{"id":"'.length;
const tsAt = idAt + idChars + '","ts":"'.length;
const typeAt = tsAt + tsChars + '","type":"'.length;
const quote = 0x22;
const comma = 0x2c;

export function countOf({ marks }: Lines): number {
  return marks.length / 4;
}

export function startOf({ marks }: Lines, i: number): number {
  return marks[4 * i] as number;
}

function payloadStartOf({ marks }: Lines, i: number): number {
  return marks[4 * i + 1] as number;
}

export function payloadEndOf({ marks }: Lines, i: number): number {
  return marks[4 * i + 2] as number;
}

export function endOf({ marks }: Lines, i: number): number {
  return marks[4 * i + 3] as number;
}

/** Those of the events (after, to]. */
export function linesBetween(lines: Lines, after: number, to: number): Lines {
  const { firstPos, marks } = lines;
  const from = Math.max(0, after + 1 - firstPos);
  const end = Math.max(0, to + 1 - firstPos);
  return { ...lines, firstPos: firstPos + from, marks: marks.subarray(4 * from, 4 * end) };
}

export function typeOf(lines: Lines, i: number): EventType {
  const { bytes } = lines;
  const from = startOf(lines, i) + typeAt;
  let hash = 0;
  let end = from;
  for (; bytes[end] !== quote; end++) hash = (hash * 31 + (bytes[end] as number)) | 0;
  const known = knownTypes.get(hash);
  return known !== undefined && isAt(bytes, from, end, known)
    ? known
    : (bytes.toString("latin1", from, end) as EventType);
}

export function seqOf(lines: Lines, i: number): number {
  const { bytes } = lines;
  let seq = 0;
  for (let at = childEnd(lines, i) + ',"seq":'.length; bytes[at] !== comma; at++)
    seq = seq * 10 + (bytes[at] as number) - 0x30;
  return seq;
}

/** As `weightOf` the event. */
export function lineWeight(lines: Lines, i: number): number {
  const scopeBytes = Math.max(0, endOf(lines, i) - 1 - scopeStartOf(lines, i));
  return envelopeBytes + payloadEndOf(lines, i) - payloadStartOf(lines, i) + scopeBytes;
}

export function eventOf(lines: Lines, i: number): StoredEvent {
  const { bytes, log, firstPos } = lines;
  const start = startOf(lines, i);
  const payloadEnd = payloadEndOf(lines, i);
  const end = endOf(lines, i);
  const prefix = bytes.toString("utf8", start, payloadEnd);
  const childAt = childStart(lines, i);
  const pos = firstPos + i;
  const scopeAt = scopeStartOf(lines, i);
  return new StoredEvent(
    prefix.slice(idAt, idAt + idChars),
    prefix.slice(tsAt, tsAt + tsChars),
    typeOf(lines, i),
    log,
    bytes[childAt] === quote ? prefix.slice(childAt + 1 - start, childEnd(lines, i) - 1 - start) : null,
    pos,
    seqOf(lines, i),
    prefix.slice(payloadStartOf(lines, i) - start),
    scopeAt < end ? bytes.toString("utf8", scopeAt, end - 1) : null,
    prefix,
  );
}

/** Where the scope begins, of an event that has one. */
function scopeStartOf(lines: Lines, i: number): number {
  return payloadEndOf(lines, i) + `,"pos":${lines.firstPos + i},"scope":`.length;
}

/** Where the value of `child_id` begins. */
function childStart(lines: Lines, i: number): number {
  return (
    quoteAfter(lines.bytes, startOf(lines, i) + typeAt) +
    '","run_id":"'.length +
    lines.log.length +
    '","child_id":'.length
  );
}

function childEnd(lines: Lines, i: number): number {
  const from = childStart(lines, i);
  return lines.bytes[from] === quote ? quoteAfter(lines.bytes, from + 1) + 1 : from + "null".length;
}

function quoteAfter(bytes: Buffer, from: number): number {
  let at = from;
  while (bytes[at] !== quote) at++;
  return at;
}

const knownTypes = new Map(
  (Object.keys(eventTypes) as EventType[]).map((type) => {
    let hash = 0;
    for (let at = 0; at < type.length; at++) hash = (hash * 31 + type.charCodeAt(at)) | 0;
    return [hash, type];
  }),
);

function isAt(bytes: Buffer, from: number, end: number, text: string): boolean {
  if (end - from !== text.length) return false;
  for (let at = 0; at < text.length; at++) if (bytes[from + at] !== text.charCodeAt(at)) return false;
  return true;
}
