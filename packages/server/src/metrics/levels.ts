// What stands as it is now, looked at when somebody asks.

import { limits } from "@runwire/protocol";
import { Gauge, type Registry } from "prom-client";
import type { HubLevels } from "../hub.js";
import type { StoreLevels } from "../store.js";

export interface Levels {
  readonly leaving: boolean;
  readonly connections: number;
  readonly hub: HubLevels;
  readonly store: StoreLevels;
}

/** One of them is where a reader may be made to skip. */
const lagSteps = [64 * 1024, 256 * 1024, limits.lagBytesMax, 4 * 1024 * 1024, 16 * 1024 * 1024];

const gauges: { readonly [name: string]: readonly [help: string, of: (levels: Levels) => number] } = {
  runwire_ready: [
    "Whether this server takes requests: 1, or 0 while it leaves and where its store is broken.",
    ({ leaving, store }) => Number(!leaving && store.writing !== "broken"),
  ],
  runwire_connections: ["Open connections, idle ones too.", (now) => now.connections],
  runwire_readers_live: [
    "Readers that have reached the head of their log; the others are still catching up.",
    ({ hub }) => hub.lagsBytes.length,
  ],
  runwire_reader_lag_max_bytes: [
    "How far the live reader that is furthest behind is behind.",
    ({ hub }) => hub.lagsBytes.reduce((most, bytes) => Math.max(most, bytes), 0),
  ],
  runwire_reader_lag_all_bytes: [
    "How far all live readers together are behind.",
    ({ hub }) => hub.lagsBytes.reduce((all, bytes) => all + bytes, 0),
  ],
  runwire_ranges_cached_bytes: [
    "Ranges kept for readers that are behind.",
    ({ hub }) => hub.rangesCachedBytes,
  ],
  runwire_commit_queue_appends: [
    "Appends that wait for the next commit.",
    ({ store }) => store.appendsWaiting,
  ],
  runwire_runs_live: ["Runs that have not ended.", ({ store }) => store.runsLive],
  runwire_hot_events: ["Events that are not yet in segments.", ({ store }) => store.hotEvents],
  runwire_hot_bytes: ["What these events weigh in memory.", ({ store }) => store.hotBytes],
  runwire_database_bytes: ["Size of the database file.", ({ store }) => store.databaseBytes],
  runwire_wal_bytes: ["Size of the write-ahead log.", ({ store }) => store.walBytes],
  runwire_disk_free_bytes: [
    "Room left on the disk that holds the data folder.",
    ({ store }) => store.diskFreeBytes,
  ],
};

/** Returns what sets them all. */
export function levelMetrics(registry: Registry): (levels: Levels) => void {
  const registers = [registry];
  const made = Object.entries(gauges).map(([name, [help, of]]) => ({
    gauge: new Gauge({ name, help, registers }),
    of,
  }));
  const behind = new Gauge({
    name: "runwire_readers_behind",
    help: "Live readers that are behind by more than so many bytes.",
    labelNames: ["over_bytes"],
    registers,
  });
  return (levels) => {
    for (const { gauge, of } of made) gauge.set(of(levels));
    for (const step of lagSteps)
      behind.set({ over_bytes: step }, levels.hub.lagsBytes.filter((bytes) => bytes > step).length);
  };
}
