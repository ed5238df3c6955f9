import type { Agent } from "./agent.js";
import type { CountedBlobs } from "./blobs/counted.js";
import type { Clock } from "./clock.js";
import type { Connections } from "./connections.js";
import type { Encodings } from "./encodings.js";
import type { Hub } from "./hub.js";
import type { Ingest } from "./ingest.js";
import type { Metrics } from "./metrics.js";
import type { Quotas } from "./quotas.js";
import type { Report } from "./report.js";
import type { Retention } from "./retention.js";
import type { Settings } from "./settings.js";
import type { Snapshots } from "./snapshots.js";
import type { Store } from "./store.js";
import type { Transcripts } from "./transcripts.js";
import type { Turns } from "./turns.js";

/** What routes and transports are handed; `gateway.ts` alone puts it together. */
export interface Rooms {
  readonly clock: Clock;
  readonly store: Store;
  readonly hub: Hub;
  readonly ingest: Ingest;
  /** Undefined where everyone writes their own runs. */
  readonly agent: Agent | undefined;
  readonly transcripts: Transcripts;
  readonly snapshots: Snapshots;
  readonly encodings: Encodings;
  /** Of a run's appends whose messages are read by what the log says before them. */
  readonly turns: Turns;
  readonly blobs: CountedBlobs;
  readonly connections: Connections;
  readonly retention: Retention;
  readonly quotas: Quotas;
  readonly settings: Settings;
  readonly report: Report;
  readonly metrics: Metrics;
}
