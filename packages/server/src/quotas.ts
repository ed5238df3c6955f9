// What one tenant may ask of this server at a time, so that the others feel nothing of it. Buckets fill at the
// allowed rate up to one second's worth; whoever finds one above zero may take, also more than is in it, and then
// waits until it is above zero again. So a large batch is never impossible, and the average still holds.

import { setTimeout as sleep } from "node:timers/promises";
import { RunwireError } from "@runwire/protocol";
import type { Clock } from "./clock.js";

export interface QuotaLimits {
  /** Requests and streams that are open at once. */
  readonly connectionsPerTenantMax: number;
  /** 0 for any number. */
  readonly requestsPerSecond: number;
  readonly eventsPerSecond: number;
}

export interface Quotas {
  /** One more request; throws 429 where that is too many. Call what it answers when the request is over. */
  enter(tenant: string): () => void;
  /** One more message on a connection that was let in: it waits until the tenant may ask again. */
  askingLater(tenant: string): Promise<void>;
  /** Throws 429 where the tenant has appended too much lately; otherwise counts these. */
  appending(tenant: string, events: number): void;
  /** The same, but waits: a session is read no faster than its tenant may write. Throws the signal's reason. */
  appendingLater(tenant: string, events: number, signal?: AbortSignal): Promise<void>;
}

/** Tells when to come back. */
export class Limited extends RunwireError {
  constructor(
    code: "KAI-LIMIT-RATE-0001" | "KAI-LIMIT-CONNECTIONS-0001",
    detail: string,
    readonly retryMs: number,
  ) {
    super(code, detail);
  }
}

interface Tenant {
  open: number;
  readonly requests: Bucket;
  readonly events: Bucket;
}

interface Bucket {
  level: number;
  atMs: number;
}

const forgetAtTenants = 10_000;
const forgetEveryMs = 1000;

export function quotas(given: QuotaLimits, clock: Clock): Quotas {
  const tenants = new Map<string, Tenant>();
  let forgetAgainMs = Number.NEGATIVE_INFINITY;

  function tenantOf(name: string): Tenant {
    const known = tenants.get(name);
    if (known !== undefined) return known;
    const atMs = clock.monotonic();
    if (tenants.size >= forgetAtTenants && atMs >= forgetAgainMs) forgetIdle(atMs);
    const { requestsPerSecond, eventsPerSecond } = given;
    const fresh: Tenant = {
      open: 0,
      requests: { level: requestsPerSecond, atMs },
      events: { level: eventsPerSecond, atMs },
    };
    tenants.set(name, fresh);
    return fresh;
  }

  /** A tenant whose buckets are full again is as one that never came. */
  function forgetIdle(nowMs: number): void {
    forgetAgainMs = nowMs + forgetEveryMs;
    const { requestsPerSecond, eventsPerSecond } = given;
    const isFull = (bucket: Bucket, perSecond: number): boolean =>
      levelAt(bucket, perSecond, nowMs) >= perSecond;
    for (const [name, { open, requests, events }] of tenants) {
      if (open === 0 && isFull(requests, requestsPerSecond) && isFull(events, eventsPerSecond))
        tenants.delete(name);
    }
  }

  const levelAt = ({ level, atMs }: Bucket, perSecond: number, nowMs: number): number =>
    Math.min(perSecond, level + ((nowMs - atMs) * perSecond) / 1000);

  /** Milliseconds until the bucket may be taken from; 0 where it was. */
  function take(bucket: Bucket, perSecond: number, count: number): number {
    if (perSecond === 0) return 0;
    const nowMs = clock.monotonic();
    bucket.level = levelAt(bucket, perSecond, nowMs);
    bucket.atMs = nowMs;
    // A little above zero: at zero it may not be taken from.
    if (bucket.level <= 0) return Math.ceil((-bucket.level * 1000) / perSecond + 0.001);
    bucket.level -= count;
    return 0;
  }

  /** Waits until the bucket may be taken from. */
  async function takeLater(
    bucketOf: () => Bucket,
    perSecond: number,
    count: number,
    signal?: AbortSignal,
  ): Promise<void> {
    for (;;) {
      const waitMs = take(bucketOf(), perSecond, count);
      if (waitMs === 0) return;
      await sleep(waitMs, undefined, { signal }).catch(() => signal?.throwIfAborted());
    }
  }

  const perSecond = (what: string, count: number): string => `${count} ${what} a second are allowed`;

  return {
    enter(name) {
      const tenant = tenantOf(name);
      const { connectionsPerTenantMax, requestsPerSecond } = given;
      if (tenant.open >= connectionsPerTenantMax) {
        const detail = `${connectionsPerTenantMax} may be open at once`;
        throw new Limited("KAI-LIMIT-CONNECTIONS-0001", detail, 1000);
      }
      const waitMs = take(tenant.requests, requestsPerSecond, 1);
      if (waitMs > 0)
        throw new Limited("KAI-LIMIT-RATE-0001", perSecond("requests", requestsPerSecond), waitMs);
      tenant.open += 1;
      let entered = true;
      return () => {
        if (entered) tenant.open -= 1;
        entered = false;
      };
    },
    appending(name, events) {
      const { eventsPerSecond } = given;
      const waitMs = take(tenantOf(name).events, eventsPerSecond, events);
      if (waitMs > 0) throw new Limited("KAI-LIMIT-RATE-0001", perSecond("events", eventsPerSecond), waitMs);
    },
    askingLater: (name) => takeLater(() => tenantOf(name).requests, given.requestsPerSecond, 1),
    appendingLater: (name, events, signal) =>
      takeLater(() => tenantOf(name).events, given.eventsPerSecond, events, signal),
  };
}
