// Starting: live heads from the file, then every hot row folded onto the heads it is newer than. Nothing else
// needs repair: pending deltas are part of the head, and the next tick emits them.

import { type Facts, type IdSource, newFold } from "@runwire/protocol";
import { advance } from "../../log/advance.js";
import { feedHead, type Head, storedHead } from "../../log/head.js";
import { isFeed, type Record } from "../../log/record.js";
import { type RunMap, runMap } from "../../run-map.js";
import type { RunKey } from "../../store.js";
import { runDamage, runsWithHeads } from "./catalogue.js";
import { damageOf } from "./checksum.js";
import type { Hot } from "./hot.js";
import { recordsIn, type StoredRow, weightOf } from "./hot-row.js";
import type { Reader } from "./reader.js";

export interface Recovery {
  readonly reader: Reader;
  readonly hot: Hot;
  readonly heads: RunMap<Head>;
  readonly ids: IdSource;
}

/** Fills the index and the heads; answers the last row that was ever given out. */
export function recover({ reader, hot, heads, ids }: Recovery): number {
  const asOf = runMap<number>();
  const oneHead = reader.prepare(
    `SELECT record, head, as_of, ${runDamage} AS damage FROM ${runsWithHeads()} WHERE runs.tenant = ? AND run_id = ?`,
  );

  function load(tenant: string, log: string): Head | undefined {
    const known = heads.get(tenant, log);
    if (known !== undefined) return known;
    const row = oneHead.get(tenant, log) as
      | { record: string; head: string | null; as_of: number | null }
      | undefined;
    if (row === undefined) return undefined;
    const head = storedHead(row.record, row.head);
    heads.set(tenant, log, head);
    asOf.set(tenant, log, row.as_of ?? 0);
    ids.raise(head.lastId);
    return head;
  }

  const live = reader.prepare("SELECT tenant, run_id FROM runs INDEXED BY runs_live WHERE state IS NULL");
  for (const { tenant, run_id } of live.all() as unknown as RunKey[]) load(tenant, run_id);
  // The other columns are those of the row with the last position, as SQLite promises.
  const feeds = reader.prepare(
    `SELECT tenant, log, max(pos) AS pos, seq, id, ${damageOf("feed")} AS damage FROM feed GROUP BY tenant, log`,
  );
  for (const { tenant, log, pos, seq, id } of feeds.all() as {
    tenant: string;
    log: string;
    pos: number;
    seq: number;
    id: string;
  }[]) {
    const head = feedHead(tenant, log);
    heads.set(tenant, log, {
      ...head,
      lastId: id,
      views: { default: { pos, seq }, full: { pos: 0, seq: 0 } },
    });
    ids.raise(id);
  }

  // Also of heads that are damaged: to go on from a number that is too large does no harm.
  const { last } = reader
    .prepare("SELECT coalesce(max(as_of), 0) AS last FROM heads WHERE typeof(as_of) = 'integer'")
    .get() as { last: number };
  let lastRow = last;
  const mine = newFold();
  for (const stored of reader.prepare("SELECT * FROM hot ORDER BY row").iterate() as Iterable<StoredRow>) {
    const { row } = stored;
    const records = recordsIn(stored);
    for (const record of records) {
      const { tenant } = record;
      let payload: Facts | undefined;
      const payloadOf = (): Facts => {
        payload ??= JSON.parse(record.payloadText) as Facts;
        return payload;
      };
      for (const place of record.places) {
        const head = load(tenant, place.log);
        if (head === undefined || isFeed(place)) continue;
        if (row <= (asOf.get(tenant, place.log) ?? 0)) continue;
        heads.set(tenant, place.log, advance(head, record, place, payloadOf, mine));
      }
      ids.raise(record.id);
    }
    const [{ tenant, by }] = records as [Record, ...Record[]];
    const root = heads.get(tenant, by)?.run.root_id ?? by;
    hot.add({
      row,
      tenant,
      root,
      records,
      bytes: records.reduce((sum, record) => sum + weightOf(record), 0),
    });
    lastRow = Math.max(lastRow, row);
  }
  return lastRow;
}
