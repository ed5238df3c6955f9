import { RunwireError } from "@runwire/protocol";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Limited, type QuotaLimits, quotas } from "./quotas.js";

const anyNumber: QuotaLimits = {
  connectionsPerTenantMax: Number.POSITIVE_INFINITY,
  requestsPerSecond: 0,
  eventsPerSecond: 0,
};

/** Quotas, and a clock that stands still until it is moved. */
function held(limits: Partial<QuotaLimits>) {
  let nowMs = 0;
  const clock = { now: () => nowMs, monotonic: () => nowMs };
  const pass = (ms: number): void => {
    nowMs += ms;
  };
  return { ...quotas({ ...anyNumber, ...limits }, clock), pass };
}

/** Milliseconds to wait, or undefined where it was allowed. */
function refusal(act: () => unknown): number | undefined {
  try {
    act();
    return undefined;
  } catch (error) {
    expect(error).toBeInstanceOf(Limited);
    return (error as Limited).retryMs;
  }
}

const asked = fc.array(fc.record({ waitMs: fc.nat(3000), count: fc.integer({ min: 1, max: 500 }) }), {
  maxLength: 200,
});

describe("a rate", () => {
  it("is never passed by more than one second's worth and the last batch", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 300 }), asked, (eventsPerSecond, batches) => {
        const { appending, pass } = held({ eventsPerSecond });
        let passedMs = 0;
        let allowed = 0;
        for (const { waitMs, count } of batches) {
          pass(waitMs);
          passedMs += waitMs;
          if (refusal(() => appending("a", count)) !== undefined) continue;
          // Before this batch the bucket was above zero.
          expect(allowed).toBeLessThan((eventsPerSecond * passedMs) / 1000 + eventsPerSecond + 1e-6);
          allowed += count;
        }
      }),
    );
  });

  it("holds for requests, one by one", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 50 }), fc.array(fc.nat(500)), (requestsPerSecond, waits) => {
        const { enter, pass } = held({ requestsPerSecond });
        let passedMs = 0;
        let allowed = 0;
        for (const waitMs of waits) {
          pass(waitMs);
          passedMs += waitMs;
          if (refusal(() => enter("a")) === undefined) allowed += 1;
          expect(allowed).toBeLessThanOrEqual(requestsPerSecond * (passedMs / 1000 + 1) + 1);
        }
      }),
    );
  });

  it("makes no batch impossible: whoever waits as long as told is let through", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 300 }), asked, (eventsPerSecond, batches) => {
        const { appending, pass } = held({ eventsPerSecond });
        for (const { count } of batches) {
          const waitMs = refusal(() => appending("a", count));
          if (waitMs === undefined) continue;
          pass(waitMs);
          expect(refusal(() => appending("a", count))).toBeUndefined();
        }
      }),
    );
  });

  it("of 0 is none", () => {
    const { appending, enter } = held({});
    for (let i = 0; i < 10_000; i++) {
      appending("a", 10_000);
      enter("a");
    }
  });

  it("is each tenant's own, also when many have come and gone", () => {
    const { appending, pass } = held({ eventsPerSecond: 10 });
    appending("a", 30_000);
    for (let i = 0; i < 25_000; i++) {
      appending(`t${i}`, 10);
      pass(0.1);
    }
    // Its debt is not forgotten with those who have none.
    expect(refusal(() => appending("a", 1))).toBeGreaterThan(0);
    expect(refusal(() => appending("b", 1))).toBeUndefined();
  });

  it("lets a session wait until it may go on", async () => {
    let aheadMs = 0;
    const clock = { now: () => 0, monotonic: () => performance.now() + aheadMs };
    const { appendingLater } = quotas({ ...anyNumber, eventsPerSecond: 100 }, clock);
    await appendingLater("a", 102);
    let isThrough = false;
    const waiting = appendingLater("a", 1).then(() => {
      isThrough = true;
    });
    await Promise.resolve();
    expect(isThrough).toBe(false);
    aheadMs = 10_000;
    await waiting;
  });
});

describe("open connections", () => {
  it("are counted until they end, however often they are said to", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 5 }), fc.array(fc.nat(9)), (connectionsPerTenantMax, acts) => {
        const { enter } = held({ connectionsPerTenantMax });
        const open: (() => void)[] = [];
        for (const act of acts) {
          if (act < 6) {
            const before = open.length;
            const waitMs = refusal(() => open.push(enter("a")));
            expect(waitMs === undefined).toBe(before < connectionsPerTenantMax);
          } else {
            const end = open.splice(act % Math.max(1, open.length), 1)[0];
            end?.();
            end?.();
          }
        }
        // Those of another are counted apart.
        expect(refusal(() => enter("b"))).toBeUndefined();
      }),
    );
  });

  it("are refused with what is allowed", () => {
    const { enter } = held({ connectionsPerTenantMax: 1 });
    enter("a");
    expect(() => enter("a")).toThrow(RunwireError);
    expect(() => enter("a")).toThrow("1 may be open at once");
  });
});
