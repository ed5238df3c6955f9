// The SQLite store, held to the store suite twice: as it runs, and compacting all the time, so that every law
// also holds across the border between hot rows and segments.

import { join } from "node:path";
import { ingest, sqliteStore, transcripts } from "@runwire/server";
import { storeSuite } from "./suites/store.js";
import type { Open } from "./suites/store/under-test.js";

const sqlite =
  (hotRowsMax: number): Open =>
  (folder, clock) => {
    const store = sqliteStore({ path: join(folder, "runwire.db"), durability: "os", clock, hotRowsMax });
    return { store, ingest: ingest(store, transcripts(store)) };
  };

storeSuite("SQLite", sqlite(200_000));
storeSuite("SQLite, always compacting,", sqlite(20));
