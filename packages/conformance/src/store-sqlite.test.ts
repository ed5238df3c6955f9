// The SQLite store, held to the store suite twice: as it runs, and compacting all the time, so that every law
// also holds across the border between hot rows and segments.

import * as server from "@runwire/server";
import { openSqlite } from "./suites/store/server-module.js";
import { storeSuite } from "./suites/store.js";

storeSuite("SQLite", openSqlite(server));
storeSuite("SQLite, always compacting,", openSqlite(server, { hotEventsMax: 20 }));
