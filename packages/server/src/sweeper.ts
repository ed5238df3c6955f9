// Every second: leases and requests whose time is over, feeds that grew long, trees and workspaces that are old.

import type { Rooms } from "./rooms.js";

type Swept = Pick<Rooms, "ingest" | "store" | "retention" | "agent" | "connections" | "metrics" | "report">;

export interface Sweeper {
  /** Begins no other round, and resolves when the one that runs is over. */
  stop(): Promise<void>;
}

const sweepMs = 1000;

export function startSweeper(rooms: Swept): Sweeper {
  let sweeping: Promise<void> | undefined;
  const timer = setInterval(() => {
    // One that takes long makes up for those that it is in the way of.
    sweeping ??= sweep(rooms)
      .catch((error: unknown) => rooms.report("warn", "sweep failed", { error: String(error) }))
      .finally(() => {
        sweeping = undefined;
      });
  }, sweepMs);
  return {
    async stop() {
      clearInterval(timer);
      await sweeping;
    },
  };
}

/** One round of the sweeper; what could not be done is tried again in the next, after a restart where it leaves. */
export async function sweep({
  ingest,
  store,
  retention,
  agent,
  connections,
  metrics,
  report,
}: Swept): Promise<void> {
  const isLeaving = (): boolean => connections.leaving;
  const { leasesLost, failures } = await ingest.sweep(isLeaving);
  const trouble = [...failures];
  await store.prune().catch((error: unknown) => trouble.push(error));
  await retention.sweep(isLeaving).catch((error: unknown) => trouble.push(error));
  await agent?.sweep().catch((error: unknown) => trouble.push(error));
  metrics.swept({ leasesLost, failures: trouble.length });
  if (trouble.length === 0) return;
  report("warn", "sweep failed", { failures: trouble.length, error: String(trouble[0]) });
}
