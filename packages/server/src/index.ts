export { type Clock, systemClock } from "./clock.js";
export { type Gateway, startGateway } from "./gateway.js";
export type { Commit } from "./log/commit.js";
export type { Head, RunRecord } from "./log/head.js";
export { defaultSettings, type Settings } from "./settings.js";
export type { RunKey, Store } from "./store.js";
export { type SqliteOptions, sqliteStore } from "./stores/sqlite/store.js";
