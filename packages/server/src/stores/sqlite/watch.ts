// What needs somebody although nobody asks: leases that run out, deltas that are due, requests past their time.
// It is kept in memory only: a server that owns its store alone starts every lease anew.

import { limits } from "@runwire/protocol";
import type { Clock } from "../../clock.js";
import { type Head, isEnded } from "../../log/head.js";
import type { DueRun, RunKey } from "../../store.js";

export interface Watch {
  /** A run's head has moved. */
  see(head: Head): void;
  forget(run_id: string): void;
  /** Starts a lease anew, and those of its live children: whoever writes a run answers for them. */
  renew(head: Head | undefined): void;
  leaseLost(run_id: string, monotonicMs: number): boolean;
  due(): readonly DueRun[];
}

export function watch(clock: Clock, heads: ReadonlyMap<string, Head>): Watch {
  const leases = new Map<string, number>();
  /** Runs with pending deltas, or with requests that expire. */
  const restless = new Set<string>();

  function renew(head: Head | undefined): void {
    if (head === undefined || !head.run.external || isEnded(head)) return;
    leases.set(head.run.run_id, clock.monotonic() + head.run.lease_ms);
    for (const child of head.children) renew(heads.get(child));
  }

  function forget(run_id: string): void {
    leases.delete(run_id);
    restless.delete(run_id);
  }

  function leaseLost(run_id: string, monotonicMs: number): boolean {
    return (leases.get(run_id) ?? Number.POSITIVE_INFINITY) <= monotonicMs;
  }

  return {
    see(head) {
      const { run_id } = head.run;
      if (isEnded(head)) {
        forget(run_id);
        return;
      }
      // A new run starts its lease; later it is renewed by whoever writes it, not by what the server adds.
      if (!leases.has(run_id)) renew(head);
      if (head.groups.length > 0 || Object.values(head.requests).some(mayExpire)) restless.add(run_id);
      else restless.delete(run_id);
    },
    forget,
    renew,
    leaseLost,
    due() {
      const found: DueRun[] = [];
      const nowMs = clock.now();
      const monotonicMs = clock.monotonic();
      for (const run_id of leases.keys()) {
        const head = heads.get(run_id);
        if (head !== undefined && leaseLost(run_id, monotonicMs))
          found.push({ why: "lease", key: keyOf(head) });
      }
      for (const run_id of restless) {
        const head = heads.get(run_id);
        if (head === undefined) continue;
        const key = keyOf(head);
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
