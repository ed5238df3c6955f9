// What needs somebody although nobody asks: leases that run out, deltas that are due, requests past their time.
// It is kept in memory only: a server that owns its store alone starts every lease anew.

import { limits } from "@runwire/protocol";
import type { Clock } from "../../clock.js";
import { type Head, isEnded } from "../../log/head.js";
import { isWaiting } from "../../log/inbox.js";
import { isFeedLog } from "../../log/record.js";
import { type RunMap, runMap } from "../../run-map.js";
import type { DueRun, RunKey } from "../../store.js";

export interface Watch {
  /** A run's head has moved. */
  see(head: Head): void;
  forget(tenant: string, run_id: string): void;
  /** Starts a tree's lease anew; the head is its root's. */
  renew(root: Head | undefined): void;
  leaseLost(tenant: string, run_id: string): boolean;
  due(): readonly DueRun[];
  /** Runs of a tenant in which something waits for a person. */
  waiting(tenant: string): Iterable<RunKey>;
  /** How many runs of a tenant have not ended; of all tenants where none is named. */
  liveRuns(tenant?: string): number;
}

interface Lease {
  readonly key: RunKey;
  readonly endsMs: number;
}

export function watch(clock: Clock, heads: RunMap<Head>): Watch {
  // Leases are renewed by requests, and a server that was stopped heard none.
  const awake = clock.awake ?? clock.monotonic;
  /** Runs that have not ended. */
  const live = runMap<true>();
  // One for a tree: whoever writes a run of it answers for all, and they have their root's length. So to renew them costs
  // the same, however many there are.
  const leases = runMap<Lease>();
  /** Runs with pending deltas, or with requests that expire. */
  const restless = runMap<RunKey>();
  /** Runs in which something waits for a person. */
  const waiting = runMap<RunKey>();

  function renew(root: Head | undefined): void {
    if (root === undefined || isEnded(root)) return;
    const key = keyOf(root);
    // A run that nobody outside writes has a lease that does not run out.
    const leaseMs = root.run.external ? root.run.lease_ms : Number.POSITIVE_INFINITY;
    leases.set(key.tenant, key.run_id, { key, endsMs: awake() + leaseMs });
  }

  function forget(tenant: string, run_id: string): void {
    live.delete(tenant, run_id);
    leases.delete(tenant, run_id);
    restless.delete(tenant, run_id);
    waiting.delete(tenant, run_id);
  }

  function leaseLost(tenant: string, run_id: string): boolean {
    const root_id = heads.get(tenant, run_id)?.run.root_id ?? run_id;
    return (leases.get(tenant, root_id)?.endsMs ?? Number.POSITIVE_INFINITY) <= awake();
  }

  return {
    see(head) {
      const { tenant, run_id } = head.run;
      if (isFeedLog(run_id)) return;
      if (isEnded(head)) {
        forget(tenant, run_id);
        return;
      }
      live.set(tenant, run_id, true);
      // A new tree starts its lease; later it is renewed by whoever writes it, not by what the server adds.
      if (head.run.parent_id === null && !leases.has(tenant, run_id)) renew(head);
      // Most runs have no open request, and some have thousands that are answered.
      const isAsking = head.asked.open > 0 && Object.values(head.requests).some(mayExpire);
      if (head.groups.length === 0 && !isAsking) restless.delete(tenant, run_id);
      else if (!restless.has(tenant, run_id)) restless.set(tenant, run_id, keyOf(head));
      if (!isWaiting(head)) waiting.delete(tenant, run_id);
      else if (!waiting.has(tenant, run_id)) waiting.set(tenant, run_id, keyOf(head));
    },
    forget,
    waiting: (tenant) => waiting.of(tenant).values(),
    liveRuns: (tenant) => (tenant === undefined ? live : live.of(tenant)).size,
    renew,
    leaseLost,
    due() {
      const found: DueRun[] = [];
      const nowMs = clock.now();
      const awakeMs = awake();
      for (const { key, endsMs } of leases.values()) {
        if (endsMs <= awakeMs) found.push({ why: "lease", key });
      }
      for (const key of restless.values()) {
        const head = heads.get(key.tenant, key.run_id);
        if (head === undefined) continue;
        const quietMs = nowMs - head.tickMs;
        // A clock that went back counts as passed.
        const passed = quietMs < 0 || quietMs >= limits.tickMs;
        if (head.groups.length > 0 && passed) found.push({ why: "deltas", key });
        for (const [request_id, request] of Object.entries(head.requests)) {
          if (!mayExpire(request) || Date.parse(request.expires_at ?? "") > nowMs) continue;
          found.push({ why: "request", key, request_id });
        }
      }
      return found;
    },
  };
}

function mayExpire({ status, expires_at }: Head["requests"][string]): boolean {
  return status === "pending" && expires_at !== null;
}

function keyOf({ run: { tenant, run_id } }: Head): RunKey {
  return { tenant, run_id };
}
