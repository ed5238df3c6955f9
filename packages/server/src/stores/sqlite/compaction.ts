// Hot rows become segments in small steps, each part of an ordinary commit: the tree whose rows have waited
// longest first, its oldest rows up to half a megabyte. What is dropped from `hot` and what is added to
// `segments` is one transaction, so an event is always in exactly one of them.

import { limits } from "@runwire/protocol";
import type { Clock } from "../../clock.js";
import { type Head, isEnded } from "../../log/head.js";
import type { RunMap } from "../../run-map.js";
import type { RunKey } from "../../store.js";
import type { Hot, OldestRows } from "./hot.js";
import type { HotRow } from "./hot-row.js";
import type { Write } from "./schema.js";
import type { SegmentReader } from "./segment-reader.js";
import { segmentBytesMin, toSegments } from "./segments.js";

export interface CompactionParts {
  readonly clock: Clock;
  readonly hot: Hot;
  readonly segments: SegmentReader;
  readonly heads: RunMap<Head>;
  readonly hotEventsMax: number;
  readonly hotBytesMax: number;
  /** Hears of a tree of which no segments could be made. */
  readonly failed?: ((error: unknown) => void) | undefined;
}

export interface CompactionStep {
  readonly writes: readonly Write[];
  /** To be called after the commit. */
  done(): void;
  /** To be called where it was refused for what it is. */
  failed(): void;
}

const stepBytes = 512 * 1024;
/**
 * What a row costs a step beside its bytes: the rows of one tree lie apart, among those of all others, so to drop one is
 * to write the page that it is on. Commits that bring single events would wait for hundreds of pages.
 */
const pageBytes = 4096;
/**
 * The hot part is memory. At so many times its limit, batches bring more than small steps take away: then a step is as
 * large as a batch may be, of as many trees as it takes to take away what its batch brings, and whoever appends waits.
 */
const behindMax = 4;
const largeStepBytes = 2 * limits.batchBytesMax;
/** What a log costs beside its rows: the last segment of both views may be small, and is written again. */
const logBytes = 2 * segmentBytesMin;
/**
 * What is damaged of one tree must not keep others in memory: one that cannot be moved rests. Which one of several that
 * was, nobody is told; for as long they move one by one.
 */
const restMs = 60_000;

/** Rows of one tree, and what they become. */
interface Moving {
  readonly oldest: OldestRows;
  readonly writes: readonly Write[];
}

export type HeadOf = (tenant: string, log: string) => Head | undefined;

export interface Compaction {
  isDue(): boolean;
  /**
   * What the next step writes, given the heads as the commit it belongs to leaves them, and the rows that it brings;
   * undefined where nothing is due, or what is cannot be moved now.
   */
  step(headOf: HeadOf, asOf: number, brought: readonly HotRow[]): CompactionStep | undefined;
  /** The same of one tree, due or not. */
  stepOf(root: RunKey, headOf: HeadOf, asOf: number): CompactionStep | undefined;
}

export function compaction(parts: CompactionParts): Compaction {
  const { clock, hot, segments, heads, hotEventsMax, hotBytesMax, failed } = parts;
  let oneByOneUntilMs = Number.NEGATIVE_INFINITY;
  const isOver = (times: number): boolean =>
    hot.records > times * hotEventsMax || hot.bytes > times * hotBytesMax;
  const isDue = (): boolean => isOver(1);
  const oldestOf = (root: RunKey, room: number): OldestRows | undefined =>
    hot.oldest(room, isOver(behindMax) ? 0 : pageBytes, root);
  const roomBytes = (): number => (isOver(behindMax) ? largeStepBytes : stepBytes);

  function step(headOf: HeadOf, asOf: number, brought: readonly HotRow[]): CompactionStep | undefined {
    if (!isDue()) return undefined;
    const wanted = isOver(behindMax) ? weigh(brought) : { records: 0, bytes: 0 };
    const nowMs = clock.monotonic();
    const moving: Moving[] = [];
    let room = roomBytes();
    for (const root of hot.roots(nowMs)) {
      const oldest = oldestOf(root, room);
      if (oldest === undefined) break;
      try {
        moving.push({ oldest, writes: segmentsOf(oldest, headOf, asOf) });
      } catch (error) {
        hot.rest(root, nowMs + restMs);
        failed?.(error);
        continue;
      }
      const { records, bytes } = weigh(oldest.rows);
      wanted.records -= records;
      wanted.bytes -= bytes;
      room -= bytes + oldest.logs.size * logBytes;
      if (room <= 0 || (wanted.records <= 0 && wanted.bytes <= 0) || nowMs < oneByOneUntilMs) break;
    }
    return moving.length === 0 ? undefined : stepWith(moving);
  }

  function stepOf(root: RunKey, headOf: HeadOf, asOf: number): CompactionStep | undefined {
    const oldest = oldestOf(root, roomBytes());
    return oldest && stepWith([{ oldest, writes: segmentsOf(oldest, headOf, asOf) }]);
  }

  function stepWith(moving: readonly Moving[]): CompactionStep {
    const rows = moving.flatMap(({ oldest }) => oldest.rows.map(({ row }) => row));
    return {
      writes: [["dropHot", JSON.stringify(rows)], ...moving.flatMap(({ writes }) => writes)],
      done: () => moving.forEach(forget),
      failed() {
        const untilMs = clock.monotonic() + restMs;
        const [{ oldest }, ...others] = moving as [Moving, ...Moving[]];
        if (others.length > 0) oneByOneUntilMs = untilMs;
        else hot.rest({ tenant: oldest.tenant, run_id: oldest.root }, untilMs);
      },
    };
  }

  function segmentsOf({ tenant, logs }: OldestRows, headOf: HeadOf, asOf: number): readonly Write[] {
    const writes: Write[] = [];
    for (const [log, events] of logs) {
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
    return writes;
  }

  function forget({ oldest }: Moving): void {
    const { tenant, logs } = oldest;
    hot.drop(oldest);
    for (const log of logs.keys()) {
      const head = heads.get(tenant, log);
      if (head !== undefined && isEnded(head) && !hot.hasLog(tenant, log)) heads.delete(tenant, log);
    }
  }

  return { isDue, step, stepOf };
}

function weigh(rows: readonly HotRow[]): { records: number; bytes: number } {
  const weight = { records: 0, bytes: 0 };
  for (const { records, bytes } of rows) {
    weight.records += records.length;
    weight.bytes += bytes;
  }
  return weight;
}
