import { describe, expect, it } from "vitest";
import type { Head } from "../../log/head.js";
import type { Record } from "../../log/record.js";
import { runMap } from "../../run-map.js";
import { compaction } from "./compaction.js";
import { hotIndex } from "./hot.js";
import { type HotRow, hotRows } from "./hot-row.js";
import type { Write } from "./schema.js";

const tenant = "acme";

function compactionHere(hotEventsMax: number) {
  const hot = hotIndex();
  const damaged = new Set<string>();
  const failures: unknown[] = [];
  let nowMs = 0;
  let row = 0;
  const compact = compaction({
    clock: { now: () => nowMs, monotonic: () => nowMs },
    hot,
    segments: {
      lastIfSmall(_tenant, log) {
        if (damaged.has(log)) throw new Error("damaged");
        return undefined;
      },
      read: () => {
        throw new Error("nobody reads");
      },
      posOfSeq: () => 0,
    },
    heads: runMap<Head>(),
    hotEventsMax,
    hotBytesMax: 1 << 20,
    failed: (error) => void failures.push(error),
  });
  return {
    hot,
    damaged,
    failures,
    pass(ms: number) {
      nowMs += ms;
    },
    /** One more event of each run. */
    say(...runs: readonly string[]) {
      row += 1;
      const records = runs.map((by) => recordOf(by, row));
      for (const one of hotRows(records, row * 10, ({ by }) => by)) hot.add(one);
    },
    /** In a commit that brings these. */
    step: (brought: readonly HotRow[] = []) => compact.step(() => undefined, 0, brought),
  };
}

function recordOf(by: string, pos: number): Record {
  const id = `evt_${String(pos).padStart(26, "0")}`;
  const place = { log: by, defaultPos: pos, defaultSeq: pos, fullPos: pos, fullSeq: pos };
  const facts = { id, ts: "2026-01-01T00:00:00.000Z", type: "custom" as const, tenant, by };
  return {
    ...facts,
    payloadText: "{}",
    scopeText: null,
    places: [place],
    covers: null,
    producer: null,
    blobs: [],
  };
}

const logsIn = (writes: readonly Write[] = []): unknown[] => [
  ...new Set(writes.filter(([name]) => name === "addSegment").map(([, , log]) => log)),
];

describe("a step", () => {
  it("moves few rows, however small, because each lies on a page of its own", () => {
    const { hot, say, step } = compactionHere(400);
    for (let events = 0; events < 1000; events++) say("run_a");
    const [, rows] = (step()?.writes ?? []).find(([name]) => name === "dropHot") ?? [];
    expect(JSON.parse(String(rows)).length).toBeLessThanOrEqual(128);
    // Behind by more, it takes what it can.
    for (let events = 1000; events < 2000; events++) say("run_a");
    expect(hot.records).toBeGreaterThan(4 * 400);
    const [, more] = (step()?.writes ?? []).find(([name]) => name === "dropHot") ?? [];
    expect(JSON.parse(String(more))).toHaveLength(2000);
  });
});

describe("a tree that cannot be moved", () => {
  it("because it cannot be read lets the others pass, and is tried again later", () => {
    const { hot, damaged, failures, pass, say, step } = compactionHere(1);
    say("run_a", "run_b");
    damaged.add("run_a");
    const first = step();
    expect(logsIn(first?.writes)).toEqual(["run_b"]);
    expect(failures).toHaveLength(1);
    first?.done();
    expect(hot.recordsOf(tenant, "run_b", "full")).toEqual([]);
    say("run_a", "run_b");
    const second = step();
    expect(logsIn(second?.writes)).toEqual(["run_b"]);
    second?.done();
    expect([step(), failures.length]).toEqual([undefined, 1]);
    damaged.clear();
    pass(60_000);
    const third = step();
    expect(logsIn(third?.writes)).toEqual(["run_a"]);
    third?.done();
    expect(hot.records).toBe(0);
  });

  it("because its rows cannot be written is found among others, and lets them pass", () => {
    const { pass, say, step } = compactionHere(0);
    const runs = ["run_a", "run_b", "run_c"];
    for (let events = 0; events < 5; events++) say(...runs);
    const brought = hotRows(Array(100).fill(recordOf("run_d", 1)), 1, ({ by }) => by);
    const steps: unknown[] = [];
    for (let tries = 0; tries < 5; tries++) {
      const next = step(brought);
      const logs = logsIn(next?.writes);
      steps.push(logs);
      if (logs.includes("run_a")) next?.failed();
      else next?.done();
      pass(10_000);
    }
    expect(steps).toEqual([runs, ["run_a"], ["run_b"], ["run_c"], []]);
  });
});
