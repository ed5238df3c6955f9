// Grants: what was put is there, whatever happens in between, until it is dropped or over.

import fc from "fast-check";
import { expect, it } from "vitest";
import { arbitraryJson } from "../../arbitrary-json.js";
import { caseCount, onTrial } from "./trial.js";
import type { GrantUnderTest, Open } from "./under-test.js";

const hashes = ["a", "b", "c"].map((digit) => digit.repeat(64));

const lifeMs = fc.option(fc.integer({ min: 1, max: 30 * 60 * 1000 }), { nil: Number.POSITIVE_INFINITY });
const fields = {
  hash: fc.constantFrom(...hashes),
  kind: fc.constantFrom("ticket" as const, "session" as const),
  tenant: fc.constantFrom("acme", "rival"),
  scopes: fc.subarray(["read", "write", "control", "approve", "admin"]),
  credential: fc.string(),
  resource: arbitraryJson,
  csrf: fc.option(fc.string(), { nil: null }),
};
const step = fc.oneof(
  fc.record({ does: fc.constant("put" as const), lifeMs, ...fields }),
  fc.record({ does: fc.constant("use" as const), hash: fields.hash }),
  fc.record({ does: fc.constant("drop" as const), hash: fields.hash }),
  fc.record({ does: fc.constant("pass" as const), ms: fc.integer({ min: 1, max: 15 * 60 * 1000 }) }),
  fc.record({ does: fc.constantFrom("reopen" as const, "prune" as const) }),
);

export function grantLaws(open: Open): void {
  it("a grant is what it was, with its first use, until it is dropped or over, also after a restart", () =>
    onTrial(open, async (trial) => {
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 20 }), async (steps) => {
          const model = new Map<string, GrantUnderTest>();
          for (const hash of hashes) await trial.store.grants.drop(hash);
          for (const taken of steps) {
            const nowMs = trial.clock.now();
            if (taken.does === "put") {
              const { does: _, lifeMs: ms, ...given } = taken;
              const grant = { ...given, madeMs: nowMs, usedMs: null, endsMs: nowMs + ms };
              model.set(grant.hash, grant);
              await trial.store.grants.put(grant);
            } else if (taken.does === "use") {
              const known = model.get(taken.hash);
              if (known !== undefined) model.set(taken.hash, { ...known, usedMs: known.usedMs ?? nowMs });
              await trial.store.grants.use(taken.hash, nowMs);
            } else if (taken.does === "drop") {
              model.delete(taken.hash);
              await trial.store.grants.drop(taken.hash);
            } else if (taken.does === "pass") trial.clock.pass(taken.ms);
            else if (taken.does === "reopen") await trial.reopen();
            else await trial.store.prune();
            for (const hash of hashes) {
              const known = model.get(hash);
              const good = known !== undefined && known.endsMs > trial.clock.now() ? known : undefined;
              expect(await trial.store.grants.get(hash)).toEqual(good);
            }
            for (const tenant of ["acme", "rival"]) {
              const good = [...model.values()].filter(
                (grant) => grant.tenant === tenant && grant.endsMs > trial.clock.now(),
              );
              expect(await trial.store.grants.count(tenant)).toBe(good.length);
            }
          }
        }),
        caseCount(15),
      );
    }));
}
