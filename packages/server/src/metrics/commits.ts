// What the write path does: commits, and what the sweeper does where nobody asks.

import { Counter, Histogram, type Registry } from "prom-client";
import type { Committed } from "../store.js";

export interface CommitMetrics {
  committed(commit: Committed): void;
  commitFailed(kind: CommitFailure): void;
  compactionFailed(): void;
  readFailed(): void;
  swept(round: { readonly failures: number; readonly leasesLost: number }): void;
}

export type CommitFailure = "full" | "other";

/** 0.25 ms to 5 s. */
export const latencyBuckets = [
  0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5,
];
const appendBuckets = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];

export function commitMetrics(registry: Registry): CommitMetrics {
  const registers = [registry];
  const commits = new Counter({
    name: "runwire_commits_total",
    help: "Commits that are on disk.",
    registers,
  });
  const events = new Counter({
    name: "runwire_events_stored_total",
    help: "Events stored, each once, however many logs show it.",
    registers,
  });
  const appends = new Histogram({
    name: "runwire_commit_appends",
    help: "Appends that were committed together.",
    buckets: appendBuckets,
    registers,
  });
  const waited = new Histogram({
    name: "runwire_commit_wait_seconds",
    help: "How long the append that waited longest had waited for its commit to begin.",
    buckets: latencyBuckets,
    registers,
  });
  const wrote = new Histogram({
    name: "runwire_commit_write_seconds",
    help: "How long the write of a commit took, with its flush to disk.",
    buckets: latencyBuckets,
    registers,
  });
  const failed = new Counter({
    name: "runwire_commit_failures_total",
    help: "Commits that failed and stored nothing, by kind: full (no room on the disk) or other.",
    labelNames: ["kind"],
    registers,
  });
  for (const kind of ["full", "other"]) failed.inc({ kind }, 0);
  const compactions = new Counter({
    name: "runwire_compaction_failures_total",
    help: "Steps of compaction that failed; what they would have moved stays where it is.",
    registers,
  });
  const reads = new Counter({
    name: "runwire_read_failures_total",
    help: "Reads of the store that failed: the disk did not give back what was stored.",
    registers,
  });
  const rounds = new Counter({
    name: "runwire_sweeps_total",
    help: "Rounds of the sweeper.",
    registers,
  });
  const sweepFailures = new Counter({
    name: "runwire_sweep_failures_total",
    help: "Things the sweeper tried and could not do; it tries them again in its next round.",
    registers,
  });
  const lost = new Counter({
    name: "runwire_leases_lost_total",
    help: "Runs that were ended because their producer did not renew its lease.",
    registers,
  });

  return {
    committed(commit) {
      commits.inc();
      events.inc(commit.events);
      appends.observe(commit.appends);
      waited.observe(commit.waitedMs / 1000);
      wrote.observe(commit.writeMs / 1000);
    },
    commitFailed: (kind) => failed.inc({ kind }),
    compactionFailed: () => compactions.inc(),
    readFailed: () => reads.inc(),
    swept({ failures, leasesLost }) {
      rounds.inc();
      sweepFailures.inc(failures);
      lost.inc(leasesLost);
    },
  };
}
