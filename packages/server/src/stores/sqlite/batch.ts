// What one transaction stores: what several writers have decided, in their order.

import { type Head, isEnded } from "../../log/head.js";
import { type Allowance, isFeed, type Place, type Record } from "../../log/record.js";
import type { RunRecord } from "../../log/run-record.js";
import { type RunMap, runMap } from "../../run-map.js";
import { addHot, type HotRow } from "./hot-row.js";
import type { Write } from "./schema.js";

export interface Batch {
  readonly records: Record[];
  readonly allowed: { readonly tenant: string; readonly allowance: Allowance }[];
  readonly created: RunRecord[];
  /** Of these, the ones that were created under a key, by it. */
  readonly keyed: RunMap<RunRecord>;
  /** By how much a tenant has more live runs than before. */
  readonly born: Map<string, number>;
  /** Heads as this batch leaves them. */
  readonly fresh: RunMap<Head>;
  /** Of these, the ones that are stored themselves. */
  readonly kept: RunMap<KeptHead>;
  /** Rows that belong to no log. */
  readonly others: Write[];
}

export interface KeptHead {
  readonly head: Head;
  readonly text: string;
}

export function newBatch(): Batch {
  return {
    records: [],
    allowed: [],
    created: [],
    keyed: runMap(),
    born: new Map(),
    fresh: runMap(),
    kept: runMap(),
    others: [],
  };
}

/** Whether it changes any log. */
export function changesLogs({ records, kept }: Batch): boolean {
  return records.length > 0 || kept.values().next().done !== true;
}

export function writesOf(batch: Batch, rows: readonly HotRow[], asOf: number, ageMs: number): Write[] {
  const { records, created, allowed, fresh, kept, others } = batch;
  const list: Write[] = created.flatMap(addRun);
  for (const row of rows) list.push(addHot(row));
  for (const record of records) {
    for (const place of record.places) if (isFeed(place)) list.push(addFeed(record, place));
    for (const { ref, media_type, bytes } of record.blobs) {
      const { tenant, root_id } = (fresh.get(record.tenant, record.by) as Head).run;
      list.push(["addBlobRef", tenant, ref, root_id, media_type, bytes]);
    }
  }
  for (const { tenant, allowance } of allowed) {
    const { session_id, tool, run_id, approval_id, at } = allowance;
    const { root_id } = (fresh.get(tenant, run_id) as Head).run;
    list.push(["allow", tenant, session_id ?? "", tool, root_id, run_id, approval_id, at]);
  }
  for (const { head, text } of kept.values()) {
    const { tenant, run_id } = head.run;
    list.push(["keepHead", tenant, run_id, asOf, text]);
    if (isEnded(head)) list.push(["endRun", head.state, ageMs, tenant, run_id]);
  }
  for (const write of others) list.push(write);
  return list;
}

function addRun(run: RunRecord): Write[] {
  const { run_id, tenant, root_id, parent_id, session_id, agent, idempotency } = run;
  const made_under = idempotency?.key ?? null;
  return [
    ["addRun", tenant, run_id, root_id, parent_id, session_id, agent, made_under, JSON.stringify(run)],
    ...(parent_id === null && session_id !== null ? [["addTurn", tenant, session_id, run_id] as const] : []),
  ];
}

function addFeed({ id, ts, type, tenant, by, payloadText }: Record, place: Place): Write {
  const { log, defaultPos, defaultSeq, shown = payloadText } = place;
  return ["addFeed", tenant, log, defaultPos, defaultSeq, id, ts, type, by, shown];
}
