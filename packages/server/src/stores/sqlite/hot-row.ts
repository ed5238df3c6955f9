// A row of `hot`: records of one tree that were committed together, and back. It is one text, because a row costs the
// database as much as the text of twenty records does. What the disk gives back is what it got, or the server does not
// start with it.
//
//   record ␞ record ␞ …    of each    id ⏎ ts ⏎ type ⏎ tenant ⏎ by ⏎ payload ⏎ scope ⏎ places ⏎ covers ⏎ producer
//
// No column holds a line break or a control character: JSON escapes them, and ids have none. What is null is empty.

import { crc32 } from "node:zlib";
import { type EventType, RunwireError } from "@runwire/protocol";
import { noBlobs, type Place, type ProducerMark, type Record } from "../../log/record.js";
import { runMap } from "../../run-map.js";
import type { Write } from "./schema.js";

export interface HotRow {
  readonly row: number;
  readonly tenant: string;
  /** The root of their tree. */
  readonly root: string;
  readonly records: readonly Record[];
  /** Of memory, about. */
  readonly bytes: number;
}

/** As it is stored. */
export interface StoredRow {
  readonly row: number;
  readonly body: string;
  readonly crc: number;
}

const recordEnd = "\x1e";
/** A row that weighs so much takes no more records. */
const fullRowBytes = 64 * 1024;
/** What a record weighs beside its texts. */
const recordBytes = 256;

export function weightOf({ payloadText, scopeText }: Record): number {
  return payloadText.length + (scopeText?.length ?? 0) + recordBytes;
}

interface GrowingRow extends HotRow {
  readonly records: Record[];
  bytes: number;
}

/** The records of a commit as rows: one for each tree, several for one that is long, because rows move as they are. */
export function hotRows(
  records: readonly Record[],
  firstRow: number,
  rootOf: (record: Record) => string,
): readonly HotRow[] {
  const rows: GrowingRow[] = [];
  const open = runMap<GrowingRow>();
  for (const record of records) {
    const { tenant } = record;
    const root = rootOf(record);
    let current = open.get(tenant, root);
    if (current === undefined || current.bytes >= fullRowBytes) {
      // A list that begins with nothing takes room for seventeen, and most rows are one record.
      current = { row: firstRow + rows.length, tenant, root, records: [record], bytes: 0 };
      open.set(tenant, root, current);
      rows.push(current);
    } else current.records.push(record);
    current.bytes += weightOf(record);
  }
  return rows;
}

export function addHot({ row, records }: HotRow): Write {
  const body = records.map(textOf).join(recordEnd);
  return ["addHot", row, body, checksum(row, body)];
}

/** Throws where the disk gave back other bytes than it got. */
export function recordsIn({ row, body, crc }: StoredRow): readonly Record[] {
  if (checksum(row, body) !== crc) {
    throw new RunwireError("KAI-SERVER-STORE-0003", `hot row ${row} (its checksum differs)`);
  }
  return body.split(recordEnd).map(recordOf);
}

function checksum(row: number, body: string): number {
  return crc32(body, row >>> 0);
}

function textOf(record: Record): string {
  const { id, ts, type, tenant, by, payloadText, scopeText, covers, producer } = record;
  const places = record.places
    .map((p) => `["${p.log}",${p.defaultPos},${p.defaultSeq},${p.fullPos},${p.fullSeq}]`)
    .join(",");
  const mark =
    producer === null ? "" : JSON.stringify([producer.log, producer.id, producer.epoch, producer.seq]);
  const numbers = `${scopeText ?? ""}\n[${places}]\n${covers ?? ""}\n${mark}`;
  return `${id}\n${ts}\n${type}\n${tenant}\n${by}\n${payloadText}\n${numbers}`;
}

function recordOf(text: string): Record {
  const [id, ts, type, tenant, by, payloadText, scope, places, covers, mark] = text.split("\n") as [
    ...[string, string, EventType, string, string, string],
    ...[string, string, string, string],
  ];
  return {
    id,
    ts,
    type,
    tenant,
    by,
    payloadText,
    scopeText: scope === "" ? null : scope,
    places: (JSON.parse(places) as [string, number, number, number, number][]).map(placeOf),
    covers: covers === "" ? null : Number(covers),
    producer: mark === "" ? null : markOf(mark),
    blobs: noBlobs,
  };
}

function placeOf([log, defaultPos, defaultSeq, fullPos, fullSeq]: readonly [
  string,
  number,
  number,
  number,
  number,
]): Place {
  return { log, defaultPos, defaultSeq, fullPos, fullSeq };
}

function markOf(text: string): ProducerMark {
  const [log, id, epoch, seq] = JSON.parse(text) as [string, string, number, number];
  return { log, id, epoch, seq };
}
