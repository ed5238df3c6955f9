// What goes wrong where nobody waits for an answer: the operator is told, and it is counted.

import { RunwireError } from "@runwire/protocol";
import type { Rooms } from "./rooms.js";
import type { StoreObserver } from "./store.js";

/** What fails does so one after the other; the log hears of it this often, the metrics of each. */
const repeatMs = 10_000;

export function seldom({
  clock,
  report,
}: Pick<Rooms, "clock" | "report">): (what: string, error: unknown) => void {
  const toldMs = new Map<string, number>();
  return (what, error) => {
    const nowMs = clock.monotonic();
    if (nowMs - (toldMs.get(what) ?? Number.NEGATIVE_INFINITY) < repeatMs) return;
    toldMs.set(what, nowMs);
    report("warn", what, { error: String(error) });
  };
}

export function storeObserver({
  clock,
  metrics,
  report,
}: Pick<Rooms, "clock" | "metrics" | "report">): StoreObserver {
  const tellSeldom = seldom({ clock, report });
  return {
    committed: metrics.committed,
    commitFailed(error) {
      const full = error instanceof RunwireError && error.code === "KAI-SERVER-STORE-0002";
      metrics.commitFailed(full ? "full" : "other");
      tellSeldom("commit failed", error);
    },
    compactionFailed(error) {
      metrics.compactionFailed();
      tellSeldom("compaction failed", error);
    },
    readFailed(error) {
      metrics.readFailed();
      tellSeldom("read failed", error);
    },
  };
}
