// Hot rows become segments in small steps, each part of an ordinary commit: the tree whose rows have waited
// longest first, its oldest rows up to half a megabyte. What is dropped from `hot` and what is added to
// `segments` is one transaction, so an event is always in exactly one of them.

import { limits } from "@runwire/protocol";
import { type Head, isEnded } from "../../log/head.js";
import type { RunMap } from "../../run-map.js";
import type { RunKey } from "../../store.js";
import type { Hot } from "./hot.js";
import type { Write } from "./schema.js";
import type { SegmentReader } from "./segment-reader.js";
import { segmentBytesMin, toSegments } from "./segments.js";

export interface CompactionParts {
  readonly hot: Hot;
  readonly segments: SegmentReader;
  readonly heads: RunMap<Head>;
  readonly hotEventsMax: number;
  readonly hotBytesMax: number;
}

export interface CompactionStep {
  readonly writes: readonly Write[];
  /** To be called after the commit. */
  done(): void;
}

const stepBytes = 512 * 1024;
/**
 * The hot part is memory. At so many times its limit, batches bring more than small steps take away: then a step is as
 * large as a batch may be, and whoever appends waits for it.
 */
const behindMax = 4;
const largeStepBytes = 2 * limits.batchBytesMax;

export type HeadOf = (tenant: string, log: string) => Head | undefined;

export interface Compaction {
  isDue(): boolean;
  /**
   * What the next step writes, given the heads as the commit it belongs to leaves them: a step of what is due, or of
   * a tree that is named.
   */
  step(headOf: HeadOf, asOf: number, of?: RunKey): CompactionStep | undefined;
}

export function compaction(parts: CompactionParts): Compaction {
  const { hot, segments, heads, hotEventsMax, hotBytesMax } = parts;
  const isOver = (times: number): boolean =>
    hot.records > times * hotEventsMax || hot.bytes > times * hotBytesMax;
  const isDue = (): boolean => isOver(1);

  function step(headOf: HeadOf, asOf: number, of?: RunKey): CompactionStep | undefined {
    if (of === undefined && !isDue()) return undefined;
    const oldest = hot.oldest(isOver(behindMax) ? largeStepBytes : stepBytes, of);
    if (oldest === undefined) return undefined;
    const { tenant } = oldest;
    const writes: Write[] = [["dropHot", JSON.stringify(oldest.rows.map(({ row }) => row))]];
    for (const [log, events] of oldest.logs) {
      // The head of now, not of the compacted rows: hot rows up to `asOf` are not folded onto it again.
      const head = headOf(tenant, log);
      if (head !== undefined) writes.push(["keepHead", tenant, log, asOf, JSON.stringify(head)]);
      for (const view of ["default", "full"] as const) {
        if (events[view].length === 0) continue;
        const small = segments.lastIfSmall(tenant, log, view, segmentBytesMin);
        if (small !== undefined) writes.push(["dropSegment", small.segment]);
        for (const s of toSegments([...(small?.events ?? []), ...events[view]])) {
          writes.push([
            "addSegment",
            tenant,
            log,
            view,
            s.first_pos,
            s.last_pos,
            s.last_seq,
            s.bytes,
            s.marks,
            s.body,
            s.crc,
          ]);
        }
      }
    }
    return {
      writes,
      done() {
        hot.drop(oldest);
        for (const log of oldest.logs.keys()) {
          const head = heads.get(tenant, log);
          if (head !== undefined && isEnded(head) && !hot.hasLog(tenant, log)) heads.delete(tenant, log);
        }
      },
    };
  }

  return { isDue, step };
}
