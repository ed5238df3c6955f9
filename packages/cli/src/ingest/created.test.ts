import type { Clock } from "@runwire/client";
import { type ErrorCode, RunwireError } from "@runwire/protocol";
import { describe, expect, it } from "vitest";
import { created } from "./created.js";

/** Time passes only where somebody waits for it. */
function passing(): Clock {
  let now = 0;
  return {
    nowMs: () => now,
    after(delayMs, ring) {
      now += delayMs;
      queueMicrotask(ring);
      return () => {};
    },
  };
}

/** How often it was tried in vain, and whether it was given up. */
async function tried(code: ErrorCode, isHolding: boolean, triesMax: number, isPatient = true) {
  let count = 0;
  const create = async (): Promise<string> => {
    if (count === triesMax) return "run_1";
    count += 1;
    throw new RunwireError(code);
  };
  const run_id = await created(create, { isPatient, isHolding: () => isHolding, clock: passing() }).catch(
    (error: unknown) => (error instanceof RunwireError ? error.code : expect.fail()),
  );
  return { count, run_id };
}

describe("a further run of a pipe", () => {
  it("waits for a server that is away, and for room that others hold", async () => {
    expect(await tried("KAI-STREAM-CONN-0003", true, 500)).toEqual({ count: 500, run_id: "run_1" });
    expect(await tried("KAI-LIMIT-RUNS-0001", false, 500)).toEqual({ count: 500, run_id: "run_1" });
    expect(await tried("KAI-LIMIT-RUNS-0001", true, 20)).toEqual({ count: 20, run_id: "run_1" });
  });

  it("does not wait for ever for room that the pipe itself may hold", async () => {
    const { count, run_id } = await tried("KAI-LIMIT-RUNS-0001", true, 500);
    expect(run_id).toBe("KAI-LIMIT-RUNS-0001");
    expect(count).toBeLessThan(100);
  });

  it("is not tried again where that is of no use, or where it is the first", async () => {
    expect(await tried("KAI-REQUEST-SIZE-0001", false, 5)).toMatchObject({ count: 1 });
    expect(await tried("KAI-STREAM-CONN-0003", false, 5, false)).toMatchObject({ count: 1 });
  });
});
