// A record as a row of `hot`, and back. The writer thread adds a checksum: what the disk gives back is what it got, or
// the server does not start with it.

import { type EventType, RunwireError } from "@runwire/protocol";
import type { Place, ProducerMark, Record } from "../../log/record.js";
import { hotChecksum, hotLine, joinHotLines } from "./hot-line.js";
import type { Write } from "./schema.js";

export interface HotRow {
  readonly row: number;
  readonly id: string;
  readonly ts: string;
  readonly type: EventType;
  readonly tenant: string;
  readonly by_run: string;
  readonly payload: string;
  readonly scope: string | null;
  readonly places: string;
  readonly covers: number | null;
  readonly producer: string | null;
  readonly crc: number;
}

/** Stores the records of a commit. */
export function addHot(firstRow: number, records: readonly Record[]): Write {
  return ["addHot", joinHotLines(records.map((record, i) => lineOf(firstRow + i, record)))];
}

function lineOf(row: number, record: Record): string {
  const { id, ts, type, tenant, by, payloadText, scopeText, covers, producer } = record;
  const list = record.places
    .map((p) => `["${p.log}",${p.defaultPos},${p.defaultSeq},${p.fullPos},${p.fullSeq}]`)
    .join(",");
  const places = `[${list}]`;
  const mark =
    producer === null ? null : JSON.stringify([producer.log, producer.id, producer.epoch, producer.seq]);
  return hotLine([row, id, ts, type, tenant, by, payloadText, scopeText, places, covers, mark]);
}

/** Throws where the disk gave back other bytes than it got. */
export function fromHot(hot: HotRow): Record {
  const { row, id, ts, type, tenant, by_run, payload, scope, covers, crc } = hot;
  const columns = [row, id, ts, type, tenant, by_run, payload, scope, hot.places, covers, hot.producer];
  if (hotChecksum(hotLine(columns)) !== crc) {
    throw new RunwireError("KAI-SERVER-STORE-0003", `hot row ${row} (its checksum differs)`);
  }
  const places = (JSON.parse(hot.places) as [string, number, number, number, number][]).map(
    ([log, defaultPos, defaultSeq, fullPos, fullSeq]): Place => ({
      log,
      defaultPos,
      defaultSeq,
      fullPos,
      fullSeq,
    }),
  );
  return {
    id,
    ts,
    type,
    tenant,
    by: by_run,
    payloadText: payload,
    scopeText: scope,
    places,
    covers,
    producer: markOf(hot.producer),
    blobs: [],
  };
}

function markOf(text: string | null): ProducerMark | null {
  if (text === null) return null;
  const [log, id, epoch, seq] = JSON.parse(text) as [string, string, number, number];
  return { log, id, epoch, seq };
}
