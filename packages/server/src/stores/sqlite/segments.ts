// A segment is a stretch of one log and view, as it is read: a JSON array with one event a line, and marks that
// say where each event and its payload begin and end, so that nothing is parsed to be sent on (log/lines.ts).
//
//   body   [{"id":…,"payload":{…},"pos":1},\n{"id":…},\n…]
//   marks  start, payload start, payload end, end: four byte offsets an event

import { crc32 } from "node:zlib";
import { RunwireError, runwireText, type StoredEvent } from "@runwire/protocol";
import type { Lines } from "../../log/lines.js";

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
    chars += e.payloadText.length + (e.scopeText?.length ?? 0) + 200;
    if (chars >= segmentBytesMax / 2 || i === events.length - 1) {
      segments.push(toSegment(events.slice(from, i + 1)));
      from = i + 1;
      chars = 0;
    }
  }
  return segments;
}

function toSegment(events: readonly StoredEvent[]): Segment {
  const first = events[0];
  const last = events.at(-1);
  if (first === undefined || last === undefined) throw new Error("a segment holds at least one event");
  const lines = events.map(runwireText);
  const text = `[${lines.join(",\n")}]`;
  const body = Buffer.from(text);
  const bytesIn = body.length === text.length ? (part: string) => part.length : Buffer.byteLength;
  const marks = new Uint32Array(events.length * 4);
  let at = 1;
  for (const [i, e] of events.entries()) {
    const scope = e.scopeText === null ? "" : `,"scope":${e.scopeText}`;
    const end = at + bytesIn(lines[i] as string);
    const payloadEnd = end - bytesIn(`,"pos":${e.pos}${scope}}`);
    marks.set([at, payloadEnd - bytesIn(e.payloadText), payloadEnd, end], i * 4);
    at = end + ",\n".length;
  }
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

/** What a stored segment holds. Throws where the disk gave back other bytes than it got. */
export function fromSegment(
  log: string,
  segment: Pick<Segment, "first_pos" | "marks" | "body" | "crc">,
): Lines {
  const bytes = Buffer.from(segment.body.buffer, segment.body.byteOffset, segment.body.byteLength);
  const marks = Uint8Array.from(segment.marks).buffer;
  if (checksum(marks, bytes) !== segment.crc) {
    throw new RunwireError(
      "KAI-SERVER-STORE-0003",
      `${log}: the segment at ${segment.first_pos} is damaged (its checksum differs)`,
    );
  }
  return { log, firstPos: segment.first_pos, bytes, marks: new Uint32Array(marks) };
}

/** Of the marks too: one that points elsewhere gives back wrong bytes as surely as a wrong body. */
function checksum(marks: ArrayBuffer, body: Uint8Array): number {
  return crc32(body, crc32(new Uint8Array(marks)));
}
