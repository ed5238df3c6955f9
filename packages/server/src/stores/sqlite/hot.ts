// The hot part of every log, in memory: what has come since a log was last compacted. Both views and all
// mirrors are entries of this one index; the rows behind it are only read when the server starts.
//
// A record is kept once, and events are made of it for who reads: an event for each view and log, and whatever was
// parsed of it, would be most of what the server holds.

import type { StoredEvent, View } from "@runwire/protocol";
import { eventIn, isFeed, type Record } from "../../log/record.js";
import { runMap } from "../../run-map.js";
import type { RunKey } from "../../store.js";
import type { HotRow } from "./hot-row.js";

/** Records of one log by view, from a position on, without a gap. */
interface HotLog {
  readonly default: Record[];
  readonly full: Record[];
}

/** A tree's rows, oldest first. */
interface HotTree {
  readonly tenant: string;
  readonly root: string;
  readonly rows: HotRow[];
  restsUntilMs: number;
}

/** The oldest rows of one tree of runs, and the events they are in each of its logs. */
export interface OldestRows {
  readonly tenant: string;
  readonly root: string;
  readonly rows: readonly HotRow[];
  readonly logs: ReadonlyMap<string, { readonly [V in View]: readonly StoredEvent[] }>;
}

export interface Hot {
  readonly records: number;
  readonly bytes: number;
  add(row: HotRow): void;
  /** What is hot of a log, oldest first; empty where nothing is. */
  recordsOf(tenant: string, log: string, view: View): readonly Record[];
  hasLog(tenant: string, log: string): boolean;
  /** The roots of all trees with hot rows that do not rest, the one whose rows have waited longest first. */
  roots(nowMs: number): Iterable<RunKey>;
  /** Lets others come first. */
  rest(root: RunKey, untilMs: number): void;
  /** A tree's oldest rows, up to a size, where each counts for so much more than its bytes. */
  oldest(bytesMax: number, rowBytes: number, root: RunKey): OldestRows | undefined;
  /** Forgets a tree's oldest rows, which are stored elsewhere now. */
  drop(rows: OldestRows): void;
  rowsOf(tenant: string, root: string): readonly number[];
  bytesOf(tenant: string, root: string): number;
  dropTree(tenant: string, root: string): void;
}

const none: readonly Record[] = [];

export function hotIndex(): Hot {
  const logs = runMap<HotLog>();
  const trees = runMap<HotTree>();
  // A set keeps the order of insertion: the first tree is the one whose rows have waited longest.
  const queue = new Set<HotTree>();
  let records = 0;
  let bytes = 0;

  /** How many events of each log and view these rows are. */
  function countIn(rows: readonly HotRow[]): Map<string, { default: number; full: number }> {
    const counts = new Map<string, { default: number; full: number }>();
    for (const place of rows.flatMap((row) => row.records).flatMap((record) => record.places)) {
      if (isFeed(place)) continue;
      const count = counts.get(place.log) ?? { default: 0, full: 0 };
      if (place.defaultPos !== 0) count.default += 1;
      if (place.fullPos !== 0) count.full += 1;
      counts.set(place.log, count);
    }
    return counts;
  }

  function index(tenant: string, record: Record): void {
    for (const place of record.places) {
      if (isFeed(place)) continue;
      let log = logs.get(tenant, place.log);
      if (log === undefined) {
        log = { default: [], full: [] };
        logs.set(tenant, place.log, log);
      }
      if (place.defaultPos !== 0) log.default.push(record);
      if (place.fullPos !== 0) log.full.push(record);
    }
  }

  function forget(tenant: string, dropped: readonly HotRow[]): void {
    for (const row of dropped) {
      records -= row.records.length;
      bytes -= row.bytes;
    }
    for (const [name, count] of countIn(dropped)) {
      const log = logs.get(tenant, name);
      log?.default.splice(0, count.default);
      log?.full.splice(0, count.full);
      if (log?.default.length === 0 && log.full.length === 0) logs.delete(tenant, name);
    }
  }

  return {
    get records() {
      return records;
    },
    get bytes() {
      return bytes;
    },
    add(row) {
      const { tenant, root } = row;
      const tree = trees.get(tenant, root);
      if (tree === undefined) {
        const first = { tenant, root, rows: [row], restsUntilMs: Number.NEGATIVE_INFINITY };
        trees.set(tenant, root, first);
        queue.add(first);
      } else tree.rows.push(row);
      records += row.records.length;
      bytes += row.bytes;
      for (const record of row.records) index(tenant, record);
    },
    recordsOf: (tenant, log, view) => logs.get(tenant, log)?.[view] ?? none,
    hasLog: (tenant, log) => logs.has(tenant, log),
    *roots(nowMs) {
      for (const { tenant, root, restsUntilMs } of queue) {
        if (restsUntilMs <= nowMs) yield { tenant, run_id: root };
      }
    },
    rest({ tenant, run_id: root }, untilMs) {
      const tree = trees.get(tenant, root);
      if (tree !== undefined) tree.restsUntilMs = untilMs;
    },
    oldest(bytesMax, rowBytes, { tenant, run_id: root }) {
      const rows = trees.get(tenant, root)?.rows;
      if (rows === undefined) return undefined;
      let size = 0;
      const end = rows.findIndex((row) => {
        size += row.bytes + rowBytes;
        return size > bytesMax;
      });
      const oldest = end < 0 ? rows.slice() : rows.slice(0, Math.max(1, end));
      const events = new Map<string, { default: readonly StoredEvent[]; full: readonly StoredEvent[] }>();
      for (const [name, count] of countIn(oldest)) {
        const eventsOf = (view: View): readonly StoredEvent[] =>
          (logs.get(tenant, name)?.[view] ?? none)
            .slice(0, count[view])
            .map((record) => eventIn(record, name, view));
        events.set(name, { default: eventsOf("default"), full: eventsOf("full") });
      }
      return { tenant, root, rows: oldest, logs: events };
    },
    drop({ tenant, root, rows: dropped }) {
      const tree = trees.get(tenant, root);
      if (tree === undefined) return;
      tree.rows.splice(0, dropped.length);
      // What is left is younger than other trees' rows may be: it queues again.
      queue.delete(tree);
      if (tree.rows.length > 0) queue.add(tree);
      else trees.delete(tenant, root);
      forget(tenant, dropped);
    },
    rowsOf: (tenant, root) => trees.get(tenant, root)?.rows.map(({ row }) => row) ?? [],
    bytesOf: (tenant, root) => trees.get(tenant, root)?.rows.reduce((sum, row) => sum + row.bytes, 0) ?? 0,
    dropTree(tenant, root) {
      const tree = trees.get(tenant, root);
      if (tree === undefined) return;
      trees.delete(tenant, root);
      queue.delete(tree);
      forget(tenant, tree.rows);
    },
  };
}
