// Cold reads: the segment that holds a position, read once and kept for the next reader.

import { RunwireError, type StoredEvent, type View } from "@runwire/protocol";
import { countOf, type Lines, linesBetween, seqOf } from "../../log/lines.js";
import { nothing, type Stretch, stretchOfLines } from "../../log/stretch.js";
import { damageOf } from "./checksum.js";
import type { Reader } from "./reader.js";
import { fromSegment, type Segment } from "./segments.js";

export interface SegmentReader {
  /** What the segment that holds the first event after a position has from there on. */
  read(tenant: string, log: string, view: View, after: number): Stretch;
  /** The last segment of a log where it is smaller than this, to be merged with what follows it. */
  lastIfSmall(tenant: string, log: string, view: View, bytesMax: number): SmallSegment | undefined;
  /** The position of the first event with this `seq`, which a segment holds. */
  posOfSeq(tenant: string, log: string, view: View, seq: number): number;
}

export interface SmallSegment {
  readonly segment: number;
  readonly events: readonly StoredEvent[];
}

interface Row extends Pick<Segment, "first_pos" | "marks" | "body" | "crc"> {
  readonly segment: number;
}

const cacheBytesMax = 32 * 1024 * 1024;
/** Between two questions there is room for one commit, seldom for two. */
const asksMax = 10;

export function segmentReader(reader: Reader): SegmentReader {
  // Its checksums lie behind the body, and are looked at with it.
  const select = "SELECT segment, tenant, log, view, first_pos, last_pos, bytes FROM segments";
  const after = reader.prepare(
    `${select} WHERE tenant = ? AND log = ? AND view = ? AND last_pos > ? ORDER BY last_pos LIMIT 1`,
  );
  const last = reader.prepare(
    `${select} WHERE tenant = ? AND log = ? AND view = ? ORDER BY last_pos DESC LIMIT 1`,
  );
  const bySeq = reader.prepare(
    `${select} WHERE tenant = ? AND log = ? AND view = ? AND last_seq >= ? ORDER BY last_pos LIMIT 1`,
  );
  // By what it holds too: between two questions the writer may have dropped it, and given its number to another.
  const whole = reader.prepare(
    `SELECT segment, first_pos, marks, body, crc, ${damageOf("segments")} AS damage FROM segments
     WHERE segment = ? AND tenant = ? AND log = ? AND view = ? AND first_pos = ? AND last_pos = ?`,
  );
  // Least recently used first: a map keeps the order of insertion. Kept by what a segment holds, which never
  // changes, and not by its number, which SQLite gives to another once this one is dropped.
  const cache = new Map<string, Lines>();
  let cacheBytes = 0;

  interface Found {
    readonly segment: number;
    readonly tenant: string;
    readonly log: string;
    readonly view: View;
    readonly first_pos: number;
    readonly last_pos: number;
    readonly bytes: number;
  }

  /** The lines of the segment that a question finds; undefined where it finds none. */
  function load(ask: () => unknown): Lines | undefined {
    for (let asked = 1; ; asked++) {
      const found = ask() as Found | undefined;
      const lines = found === undefined ? undefined : linesOf(found);
      if (found === undefined || lines !== undefined) return lines;
      // Compaction has just merged it with what follows, or it was erased: whoever asks again is told.
      if (asked < asksMax) continue;
      throw lost(`${found.log}: an index names a lost segment`);
    }
  }

  function lost(detail: string): RunwireError {
    const error = new RunwireError("KAI-SERVER-STORE-0003", detail);
    reader.failed(error);
    return error;
  }

  function rowOf({ segment, tenant, log, view, first_pos, last_pos }: Found): Row | undefined {
    return whole.get(segment, tenant, log, view, first_pos, last_pos) as Row | undefined;
  }

  function linesOf(found: Found): Lines | undefined {
    const { tenant, log, view, first_pos, last_pos } = found;
    const name = `${tenant}/${log}/${view}/${first_pos}-${last_pos}`;
    const kept = cache.get(name);
    if (kept !== undefined) {
      cache.delete(name);
      cache.set(name, kept);
      return kept;
    }
    const row = rowOf(found);
    if (row === undefined) return undefined;
    const lines = checked(log, row);
    cache.set(name, lines);
    cacheBytes += lines.bytes.length;
    for (const [oldest, { bytes }] of cache) {
      if (cacheBytes <= cacheBytesMax) break;
      cache.delete(oldest);
      cacheBytes -= bytes.length;
    }
    return lines;
  }

  function checked(log: string, row: Row): Lines {
    try {
      return fromSegment(log, row);
    } catch (error) {
      reader.failed(error);
      throw error;
    }
  }

  return {
    read(tenant, log, view, pos) {
      const lines = load(() => after.get(tenant, log, view, pos));
      if (lines === undefined) return nothing;
      if (lines.firstPos > pos + 1) throw lost(`${log}: the segment after ${pos} is lost`);
      return stretchOfLines(linesBetween(lines, pos, lines.firstPos + countOf(lines) - 1));
    },
    lastIfSmall(tenant, log, view, bytesMax) {
      try {
        const found = last.get(tenant, log, view) as Found | undefined;
        if (found === undefined || found.bytes >= bytesMax) return undefined;
        // Its reader is the compaction, which replaces it: nobody will ask for it again.
        const lines = fromSegment(log, rowOf(found) as Row);
        return { segment: found.segment, events: stretchOfLines(lines).events };
      } catch {
        // Damaged: it stays, for whoever reads it to be told, and what follows goes beside it.
        return undefined;
      }
    },
    posOfSeq(tenant, log, view, seq) {
      const lines = load(() => bySeq.get(tenant, log, view, seq));
      const line = lines === undefined ? undefined : lineOfSeq(lines, seq);
      if (lines !== undefined && line !== undefined) return lines.firstPos + line;
      // Where nothing is left it has just been erased; whoever reads on is told so.
      if (lines === undefined && last.get(tenant, log, view) === undefined) return 0;
      // A segment whose last number is damaged is not found, or found instead of another.
      throw lost(`${log}: the event with seq ${seq} is lost`);
    },
  };
}

/** The first line with this `seq`. */
function lineOfSeq(lines: Lines, seq: number): number | undefined {
  const count = countOf(lines);
  let low = 0;
  for (let high = count; low < high; ) {
    const middle = (low + high) >>> 1;
    if (seqOf(lines, middle) < seq) low = middle + 1;
    else high = middle;
  }
  return low < count && seqOf(lines, low) === seq ? low : undefined;
}
