// A segment is a stretch of one log and view, as it is read: a JSON array with one event a line, and marks that
// say where each event and its payload begin and end, so that nothing is parsed to be sent on.
//
//   body   [{"id":…,"payload":{…},"pos":1},\n{"id":…},\n…]
//   marks  start, payload start, payload end, end — four character offsets an event

import { crc32 } from "node:zlib";
import { type EventType, RunwireError, runwireText, StoredEvent } from "@runwire/protocol";

const segmentBytesMax = 256 * 1024;
export const segmentBytesMin = 64 * 1024;

export interface Segment {
  readonly first_pos: number;
  readonly last_pos: number;
  readonly last_seq: number;
  readonly bytes: number;
  readonly marks: Uint8Array;
  readonly body: Uint8Array;
  readonly crc: number;
}

/** Cuts events into segments; each but the last is at least the smallest size. */
export function toSegments(events: readonly StoredEvent[]): Segment[] {
  const segments: Segment[] = [];
  let from = 0;
  let chars = 0;
  for (const [i, e] of events.entries()) {
    chars += e.payloadText.length + 200;
    if (chars >= segmentBytesMax / 2 || i === events.length - 1) {
      segments.push(toSegment(events.slice(from, i + 1)));
      from = i + 1;
      chars = 0;
    }
  }
  return segments;
}

function toSegment(events: readonly StoredEvent[]): Segment {
  const marks = new Uint32Array(events.length * 4);
  const lines: string[] = [];
  let at = 1;
  for (const [i, e] of events.entries()) {
    const line = runwireText(e);
    const tail = `,"pos":${e.pos}${e.scopeText === null ? "" : `,"scope":${e.scopeText}`}}`;
    const payloadEnd = line.length - tail.length;
    marks.set([at, at + payloadEnd - e.payloadText.length, at + payloadEnd, at + line.length], i * 4);
    lines.push(line);
    at += line.length + 2;
  }
  const body = Buffer.from(`[${lines.join(",\n")}]`);
  const first = events[0];
  const last = events.at(-1);
  if (first === undefined || last === undefined) throw new Error("a segment holds at least one event");
  return {
    first_pos: first.pos,
    last_pos: last.pos,
    last_seq: last.seq,
    bytes: body.length,
    marks: new Uint8Array(marks.buffer),
    body,
    crc: checksum(marks.buffer, body),
  };
}

/** The events of a stored segment. Throws where the disk gave back other bytes than it got. */
export function fromSegment(
  log: string,
  segment: Pick<Segment, "first_pos" | "marks" | "body" | "crc">,
): StoredEvent[] {
  const body = Buffer.from(segment.body.buffer, segment.body.byteOffset, segment.body.byteLength);
  const marks = Uint8Array.from(segment.marks).buffer;
  if (checksum(marks, body) !== segment.crc) {
    throw new RunwireError(
      "KAI-SERVER-STORE-0003",
      `${log}: the segment at ${segment.first_pos} is damaged (its checksum differs)`,
    );
  }
  const text = body.toString("utf8");
  const offsets = new Uint32Array(marks);
  const events: StoredEvent[] = [];
  for (let i = 0; i < offsets.length; i += 4) {
    const [start = 0, payloadStart = 0, payloadEnd = 0, end = 0] = offsets.subarray(i, i + 4);
    events.push(eventAt(log, text, start, payloadStart, payloadEnd, end));
  }
  return events;
}

/** Of the marks too: one that points elsewhere gives back wrong bytes as surely as a wrong body. */
function checksum(marks: ArrayBuffer, body: Uint8Array): number {
  return crc32(body, crc32(new Uint8Array(marks)));
}

/**
 * Every member up to the type has a fixed length, and the run is known, so nothing is searched but the type's end:
 *
 *   {"id":"evt_…(30)","ts":"…(24)","type":"…","run_id":"…","child_id":null,"seq":7,"payload":{…},"pos":12,"scope":{…}}
 */
function eventAt(
  log: string,
  text: string,
  start: number,
  payloadStart: number,
  payloadEnd: number,
  end: number,
): StoredEvent {
  const idAt = start + '{"id":"'.length;
  const tsAt = idAt + idChars + '","ts":"'.length;
  const typeAt = tsAt + tsChars + '","type":"'.length;
  const typeEnd = text.indexOf('"', typeAt);
  const childAt = typeEnd + '","run_id":"'.length + log.length + '","child_id":'.length;
  const mirrored = text[childAt] === '"';
  const childEnd = mirrored ? text.indexOf('"', childAt + 1) + 1 : childAt + "null".length;
  const seqAt = childEnd + ',"seq":'.length;
  const posAt = payloadEnd + ',"pos":'.length;
  const pos = Number.parseInt(text.slice(posAt, posAt + 16), 10);
  const scopeAt = posAt + String(pos).length + ',"scope":'.length;
  return new StoredEvent(
    text.slice(idAt, idAt + idChars),
    text.slice(tsAt, tsAt + tsChars),
    text.slice(typeAt, typeEnd) as EventType,
    log,
    mirrored ? text.slice(childAt + 1, childEnd - 1) : null,
    pos,
    Number.parseInt(text.slice(seqAt, seqAt + 16), 10),
    text.slice(payloadStart, payloadEnd),
    scopeAt < end ? text.slice(scopeAt, end - 1) : null,
    text.slice(start, payloadEnd),
  );
}

const idChars = "evt_".length + 26;
const tsChars = "2026-01-01T00:00:00.000Z".length;
