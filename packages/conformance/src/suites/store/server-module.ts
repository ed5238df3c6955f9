// The SQLite store as its tests open it. They hand the server's module over: conformance imports no server.

import { join } from "node:path";
import type { Clock, IngestUnderTest, Open, OpenOptions, StoreUnderTest } from "./under-test.js";

export interface ServerModule {
  readonly systemClock: Clock;
  transcripts(store: StoreUnderTest): unknown;
  ingest(store: StoreUnderTest, transcripts: unknown, options: OpenOptions): IngestUnderTest;
  sqliteStore(options: SqliteOptions & { readonly path: string; readonly clock: Clock }): StoreUnderTest;
}

export interface SqliteOptions {
  readonly durability: "fsync" | "os";
  readonly hotEventsMax: number;
}

/** Most laws ask nothing of the disk and do not wait for it. */
export function openSqlite(server: ServerModule, options: Partial<SqliteOptions> = {}): Open {
  return (folder, clock, given = {}) => {
    const path = join(folder, "runwire.db");
    const store = server.sqliteStore({ durability: "os", hotEventsMax: 100_000, ...options, path, clock });
    return { store, ingest: server.ingest(store, server.transcripts(store), given) };
  };
}
