// Cold reads: the segment that holds a position, decoded once and kept for the next reader.

import type { DatabaseSyncInstance } from "@photostructure/sqlite";
import type { StoredEvent, View } from "@runwire/protocol";
import { fromSegment, type Segment } from "./segments.js";

export interface SegmentReader {
  /** The events of the segment that holds the first event after a position. */
  read(tenant: string, log: string, view: View, after: number): readonly StoredEvent[];
  /** The last segment of a log where it is smaller than this, to be merged with what follows it. */
  lastIfSmall(tenant: string, log: string, view: View, bytesMax: number): SmallSegment | undefined;
  /** The position of the first event with at least this `seq`, where a segment holds it. */
  posOfSeq(tenant: string, log: string, view: View, seq: number): number | undefined;
}

export interface SmallSegment {
  readonly segment: number;
  readonly events: readonly StoredEvent[];
}

interface Row extends Pick<Segment, "first_pos" | "marks" | "body" | "crc"> {
  readonly segment: number;
}

const cacheBytesMax = 32 * 1024 * 1024;

export function segmentReader(reader: DatabaseSyncInstance): SegmentReader {
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
  const whole = reader.prepare("SELECT segment, first_pos, marks, body, crc FROM segments WHERE segment = ?");
  // Least recently used first: a map keeps the order of insertion. Kept by what a segment holds, which never
  // changes, and not by its number, which SQLite gives to another once this one is dropped.
  const cache = new Map<string, { readonly events: readonly StoredEvent[]; readonly bytes: number }>();
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

  function load({ segment, tenant, log, view, first_pos, last_pos, bytes }: Found): readonly StoredEvent[] {
    const name = `${tenant}/${log}/${view}/${first_pos}-${last_pos}`;
    const kept = cache.get(name);
    if (kept !== undefined) {
      cache.delete(name);
      cache.set(name, kept);
      return kept.events;
    }
    const events = fromSegment(log, whole.get(segment) as unknown as Row);
    cache.set(name, { events, bytes });
    cacheBytes += bytes;
    for (const [oldest, { bytes: size }] of cache) {
      if (cacheBytes <= cacheBytesMax) break;
      cache.delete(oldest);
      cacheBytes -= size;
    }
    return events;
  }

  return {
    read(tenant, log, view, pos) {
      const found = after.get(tenant, log, view, pos) as Found | undefined;
      if (found === undefined) return [];
      const events = load(found);
      return found.first_pos > pos ? events : events.slice(pos + 1 - found.first_pos);
    },
    lastIfSmall(tenant, log, view, bytesMax) {
      const found = last.get(tenant, log, view) as Found | undefined;
      if (found === undefined || found.bytes >= bytesMax) return undefined;
      try {
        // Its reader is the compaction, which replaces it: nobody will ask for it again.
        return {
          segment: found.segment,
          events: fromSegment(log, whole.get(found.segment) as unknown as Row),
        };
      } catch {
        // Damaged: it stays, for whoever reads it to be told, and what follows goes beside it.
        return undefined;
      }
    },
    posOfSeq(tenant, log, view, seq) {
      const found = bySeq.get(tenant, log, view, seq) as Found | undefined;
      if (found === undefined) return undefined;
      return load(found).find((e) => e.seq >= seq)?.pos;
    },
  };
}
