// Starting: live heads from the file, then every hot row folded onto the heads it is newer than. Nothing else
// needs repair: pending deltas are part of the head, and the next tick emits them.

import type { DatabaseSyncInstance } from "@photostructure/sqlite";
import type { EventType, Facts, IdSource } from "@runwire/protocol";
import { advance, feedHead, firstHead, type Head, type RunRecord } from "../../log/head.js";
import { isFeed, type Record } from "../../log/record.js";
import type { Hot } from "./hot.js";

export interface Recovery {
  readonly reader: DatabaseSyncInstance;
  readonly hot: Hot;
  readonly heads: Map<string, Head>;
  readonly ids: IdSource;
}

interface HotRow {
  readonly row: number;
  readonly id: string;
  readonly ts: string;
  readonly type: EventType;
  readonly by_run: string;
  readonly payload: string;
  readonly scope: string | null;
  readonly places: string;
  readonly covers: number | null;
  readonly producer: string | null;
}

/** Fills the index and the heads; answers the last row that was ever given out. */
export function recover({ reader, hot, heads, ids }: Recovery): number {
  const asOf = new Map<string, number>();
  const oneHead = reader.prepare(
    "SELECT record, head, as_of FROM runs LEFT JOIN heads ON heads.log = runs.run_id WHERE run_id = ?",
  );

  function load(log: string): Head | undefined {
    const known = heads.get(log);
    if (known !== undefined) return known;
    const row = oneHead.get(log) as { record: string; head: string | null; as_of: number | null } | undefined;
    if (row === undefined) return undefined;
    const head =
      row.head === null ? firstHead(JSON.parse(row.record) as RunRecord) : (JSON.parse(row.head) as Head);
    heads.set(log, head);
    asOf.set(log, row.as_of ?? 0);
    ids.raise(head.lastId);
    return head;
  }

  for (const { run_id } of reader.prepare("SELECT run_id FROM runs WHERE state IS NULL").all() as {
    run_id: string;
  }[]) {
    load(run_id);
  }
  const feeds = reader.prepare(
    "SELECT log, max(pos) AS pos, max(seq) AS seq, max(id) AS id FROM feed GROUP BY log",
  );
  for (const { log, pos, seq, id } of feeds.all() as {
    log: string;
    pos: number;
    seq: number;
    id: string;
  }[]) {
    const tenant = log.slice("feed:".length, log.lastIndexOf(":"));
    const head = feedHead(tenant, log);
    heads.set(log, { ...head, lastId: id, views: { default: { pos, seq }, full: { pos: 0, seq: 0 } } });
    ids.raise(id);
  }

  const { last } = reader.prepare("SELECT coalesce(max(as_of), 0) AS last FROM heads").get() as {
    last: number;
  };
  let lastRow = last;
  for (const row of reader.prepare("SELECT * FROM hot ORDER BY row").iterate() as Iterable<HotRow>) {
    const record = toRecord(row);
    let payload: Facts | undefined;
    for (const place of record.places) {
      const head = load(place.log);
      if (head === undefined || isFeed(place)) continue;
      if (row.row <= (asOf.get(place.log) ?? 0)) continue;
      heads.set(
        place.log,
        advance(head, record, place, () => {
          payload ??= JSON.parse(record.payloadText) as Facts;
          return payload;
        }),
      );
    }
    hot.add(row.row, heads.get(record.by)?.run.root_id ?? record.by, record);
    ids.raise(record.id);
    lastRow = Math.max(lastRow, row.row);
  }
  return lastRow;
}

function toRecord(row: HotRow): Record {
  const places = (JSON.parse(row.places) as [string, number, number, number, number][]).map(
    ([log, defaultPos, defaultSeq, fullPos, fullSeq]) => ({ log, defaultPos, defaultSeq, fullPos, fullSeq }),
  );
  const producer =
    row.producer === null ? null : (JSON.parse(row.producer) as [string, string, number, number]);
  return {
    id: row.id,
    ts: row.ts,
    type: row.type,
    by: row.by_run,
    payloadText: row.payload,
    scopeText: row.scope,
    places,
    covers: row.covers,
    producer:
      producer === null ? null : { log: producer[0], id: producer[1], epoch: producer[2], seq: producer[3] },
    blobs: [],
  };
}
