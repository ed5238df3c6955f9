// The hot part of every log, in memory: what has come since a log was last compacted. Both views and all
// mirrors are entries of this one index; the rows behind it are only read when the server starts.

import type { StoredEvent, View } from "@runwire/protocol";
import { eventAt, type Record } from "../../log/record.js";

/** Events of one log and view from a position on, without a gap. */
interface HotLog {
  readonly default: StoredEvent[];
  readonly full: StoredEvent[];
}

/** Hot rows of one tree of runs, oldest first: the unit that is compacted. */
interface HotTree {
  readonly rows: { readonly row: number; readonly record: Record; readonly bytes: number }[];
}

export interface Hot {
  readonly rows: number;
  readonly bytes: number;
  add(row: number, root: string, record: Record): void;
  /** Hot events of a log, oldest first; empty where it has none. */
  events(log: string, view: View): readonly StoredEvent[];
  hasLog(log: string): boolean;
  /** The tree whose rows have waited longest, and its oldest rows up to a size. */
  oldest(bytesMax: number): { readonly root: string; readonly rows: HotTree["rows"] } | undefined;
  /** Forgets a tree's oldest rows, which are stored elsewhere now. */
  drop(root: string, rows: HotTree["rows"]): void;
  rowsOf(root: string): readonly number[];
  dropTree(root: string): void;
}

const none: readonly StoredEvent[] = [];
const rowBytes = 256;

export function hotIndex(): Hot {
  const logs = new Map<string, HotLog>();
  // A map keeps the order of insertion: the first tree is the one whose rows have waited longest.
  const trees = new Map<string, HotTree>();
  let rows = 0;
  let bytes = 0;

  function forget(dropped: HotTree["rows"]): void {
    const logsOf = new Map<string, { default: number; full: number }>();
    for (const { record, bytes: size } of dropped) {
      rows -= 1;
      bytes -= size;
      for (const place of record.places) {
        const count = logsOf.get(place.log) ?? { default: 0, full: 0 };
        if (place.defaultPos !== 0) count.default += 1;
        if (place.fullPos !== 0) count.full += 1;
        logsOf.set(place.log, count);
      }
    }
    for (const [name, count] of logsOf) {
      const log = logs.get(name);
      log?.default.splice(0, count.default);
      log?.full.splice(0, count.full);
      if (log?.default.length === 0 && log.full.length === 0) logs.delete(name);
    }
  }

  return {
    get rows() {
      return rows;
    },
    get bytes() {
      return bytes;
    },
    add(row, root, record) {
      const size = record.payloadText.length + rowBytes;
      let tree = trees.get(root);
      if (tree === undefined) {
        tree = { rows: [] };
        trees.set(root, tree);
      }
      tree.rows.push({ row, record, bytes: size });
      rows += 1;
      bytes += size;
      for (const place of record.places) {
        // Feeds are kept in a table of their own.
        if (place.fullPos === 0 && place.log.startsWith("feed:")) continue;
        let log = logs.get(place.log);
        if (log === undefined) {
          log = { default: [], full: [] };
          logs.set(place.log, log);
        }
        const inDefault = eventAt(record, place, "default");
        if (inDefault !== undefined) log.default.push(inDefault);
        const inFull = eventAt(record, place, "full");
        if (inFull !== undefined) log.full.push(inFull);
      }
    },
    events: (log, view) => logs.get(log)?.[view] ?? none,
    hasLog: (log) => logs.has(log),
    oldest(bytesMax) {
      const first = trees.entries().next();
      if (first.done === true) return undefined;
      const [root, tree] = first.value;
      let size = 0;
      const end = tree.rows.findIndex((row) => {
        size += row.bytes;
        return size > bytesMax;
      });
      return { root, rows: end < 0 ? tree.rows.slice() : tree.rows.slice(0, Math.max(1, end)) };
    },
    drop(root, dropped) {
      const tree = trees.get(root);
      if (tree === undefined) return;
      tree.rows.splice(0, dropped.length);
      // What is left is younger than other trees' rows may be: it queues again.
      trees.delete(root);
      if (tree.rows.length > 0) trees.set(root, tree);
      forget(dropped);
    },
    rowsOf: (root) => trees.get(root)?.rows.map(({ row }) => row) ?? [],
    dropTree(root) {
      const tree = trees.get(root);
      if (tree === undefined) return;
      trees.delete(root);
      forget(tree.rows);
    },
  };
}
