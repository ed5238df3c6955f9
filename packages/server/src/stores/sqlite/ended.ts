// Which trees have ended, and tenants: what retention asks.

import type { EndedTree, TenantSettings, TreePage, TreeQuery } from "../../store.js";
import type { AgeClock } from "./age-clock.js";
import { damageOf } from "./checksum.js";
import type { Hot } from "./hot.js";
import type { Reader } from "./reader.js";

export interface Ended {
  trees(tenant: string, query: TreeQuery): TreePage;
  /** How long ago a run has ended; null while it lives, undefined where there is none. */
  agoMs(tenant: string, run_id: string): number | null | undefined;
  tenants(after: string, limit: number): readonly string[];
  settings(tenant: string): TenantSettings | undefined;
}

interface TreeRow {
  readonly run_id: string;
  readonly ended_ms: number;
  readonly ended_at: string;
  readonly runs: number;
  readonly bytes: number;
}

export function endedTrees(reader: Reader, hot: Hot, age: AgeClock): Ended {
  // Of a run whose own row is damaged nobody knows when it ended: it stays.
  // A head that is damaged is no reason to keep its tree, nor those that are found with it.
  const ended = (onlyFull: boolean) =>
    reader.prepare(
      `SELECT root.run_id, root.ended_ms,
        iif(${damageOf("heads")} IS NULL, json_extract(heads.head, '$.ended_at'), '') AS ended_at,
        (SELECT count(*) FROM runs INDEXED BY runs_by_root WHERE runs.tenant = root.tenant AND runs.root_id = root.run_id) AS runs,
        (SELECT coalesce(sum(length(segments.body)), 0) FROM runs INDEXED BY runs_by_root
          JOIN segments ON segments.tenant = runs.tenant AND segments.log = runs.run_id
          WHERE runs.tenant = root.tenant AND runs.root_id = root.run_id
          ${onlyFull ? "AND segments.view = 'full'" : ""}) AS bytes
      FROM runs AS root JOIN heads ON heads.tenant = root.tenant AND heads.log = root.run_id
      WHERE root.tenant = ? AND root.parent_id IS NULL AND root.state IS NOT NULL AND root.state = ?
        ${onlyFull ? "AND root.full_gone = 0" : ""}
        AND ${damageOf("runs", "root")} IS NULL
        AND root.ended_ms <= ? AND root.ended_ms > ? AND (root.ended_ms, root.run_id) > (?, ?)
      ORDER BY root.ended_ms, root.run_id LIMIT ?`,
    );
  const [whole, full] = [ended(false), ended(true)];
  const one = reader.prepare(
    `SELECT ended_ms, ${damageOf("runs")} AS damage FROM runs WHERE tenant = ? AND run_id = ?`,
  );
  // One step along the index for each tenant, and not for each of its runs.
  const nextTenant = reader.prepare("SELECT tenant FROM runs WHERE tenant > ? ORDER BY tenant LIMIT 1");
  const settings = reader.prepare(
    `SELECT settings, ${damageOf("tenants")} AS damage FROM tenants WHERE tenant = ?`,
  );

  return {
    trees(tenant, { state, ageMsMin, ageMsMax = Number.POSITIVE_INFINITY, full: onlyFull, limit, cursor }) {
      const nowMs = age.now();
      const { endedMs, run_id } = cursor ?? { endedMs: Number.NEGATIVE_INFINITY, run_id: "" };
      const asked = [tenant, state, nowMs - ageMsMin, nowMs - ageMsMax, endedMs, run_id, limit] as const;
      const rows = (onlyFull ? full : whole).all(...asked) as unknown as TreeRow[];
      const trees = rows.map(
        (row): EndedTree => ({
          tenant,
          run_id: row.run_id,
          state,
          ended_at: row.ended_at,
          runs: row.runs,
          bytes: row.bytes + hot.bytesOf(tenant, row.run_id),
        }),
      );
      const last = rows.length === limit ? rows.at(-1) : undefined;
      return { trees, next: last === undefined ? null : { endedMs: last.ended_ms, run_id: last.run_id } };
    },
    agoMs(tenant, run_id) {
      const row = one.get(tenant, run_id) as { ended_ms: number | null } | undefined;
      return row === undefined || row.ended_ms === null ? row?.ended_ms : age.now() - row.ended_ms;
    },
    tenants(after, limit) {
      const found: string[] = [];
      for (let last = after; found.length < limit; ) {
        const row = nextTenant.get(last) as { tenant: string } | undefined;
        if (row === undefined) break;
        found.push(row.tenant);
        last = row.tenant;
      }
      return found;
    },
    settings(tenant) {
      const row = settings.get(tenant) as { settings: string } | undefined;
      return row === undefined ? undefined : (JSON.parse(row.settings) as TenantSettings);
    },
  };
}
