import { RunwireError } from "@runwire/protocol";
import { describe, expect, it } from "vitest";
import { type Metrics, metrics } from "./metrics.js";
import { sweep } from "./sweeper.js";
import { storeObserver } from "./trouble.js";

const levels: Parameters<Metrics["text"]>[0] = {
  leaving: false,
  connections: 0,
  hub: { lagsBytes: [], rangesCachedBytes: 0 },
  store: {
    writing: "ok",
    runsLive: 0,
    appendsWaiting: 0,
    hotEvents: 0,
    hotBytes: 0,
    databaseBytes: 0,
    walBytes: 0,
    diskFreeBytes: 0,
  },
};

describe("a store that cannot write, or cannot be read,", () => {
  it("is counted each time, by kind, and told now and then", async () => {
    const counted = metrics("0");
    const told: unknown[][] = [];
    let monotonicMs = 0;
    const observer = storeObserver({
      clock: { now: () => 0, monotonic: () => monotonicMs },
      metrics: counted,
      report: (...line) => void told.push(line),
    });
    for (let i = 0; i < 100; i++) {
      observer.commitFailed(new RunwireError("KAI-SERVER-STORE-0002", "no space left"));
      monotonicMs += 101;
    }
    observer.commitFailed(new RunwireError("KAI-SERVER-STORE-0001", "disk I/O error"));
    observer.compactionFailed(new Error("no space left"));
    for (let i = 0; i < 3; i++) observer.readFailed(new RunwireError("KAI-SERVER-STORE-0003", "malformed"));
    const text = await counted.text(levels);
    expect(text).toContain("runwire_read_failures_total 3\n");
    expect(text).toContain('runwire_commit_failures_total{kind="full"} 100\n');
    expect(text).toContain('runwire_commit_failures_total{kind="other"} 1\n');
    expect(text).toContain("runwire_compaction_failures_total 1\n");
    expect(told.map(([level, what]) => `${level} ${what}`)).toEqual([
      "warn commit failed",
      "warn commit failed",
      "warn compaction failed",
      "warn read failed",
    ]);
  });
});

describe("a server that leaves, or whose store is broken,", () => {
  it("is not ready", async () => {
    const counted = metrics("0");
    const broken = { ...levels, store: { ...levels.store, writing: "broken" as const } };
    expect(await counted.text(levels)).toContain("runwire_ready 1\n");
    expect(await counted.text({ ...levels, leaving: true })).toContain("runwire_ready 0\n");
    expect(await counted.text(broken)).toContain("runwire_ready 0\n");
  });
});

describe("a sweep", () => {
  it("counts what it could not do, and warns once a round", async () => {
    const counted = metrics("0");
    const told: unknown[][] = [];
    const rooms = {
      ingest: { sweep: async () => ({ leasesLost: 2, failures: [new Error("a"), new Error("b")] }) },
      store: { prune: async () => Promise.reject(new Error("c")) },
      retention: { sweep: async () => Promise.reject(new Error("d")) },
      connections: { leaving: false },
      metrics: counted,
      report: (...line: unknown[]) => void told.push(line),
    } as unknown as Parameters<typeof sweep>[0];
    await sweep(rooms);
    const text = await counted.text(levels);
    expect(text).toContain("runwire_sweeps_total 1\n");
    expect(text).toContain("runwire_sweep_failures_total 4\n");
    expect(text).toContain("runwire_leases_lost_total 2\n");
    expect(told).toEqual([["warn", "sweep failed", { failures: 4, error: "Error: a" }]]);
  });
});
