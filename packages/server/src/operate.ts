// What an operator's commands need beside a server: its settings, its keys, its file. Apart from the gateway, because who
// asks for help or makes a key should not wait until a server's code is loaded.

export { isScope, isTenant, type Scope, scopes } from "./auth/caller.js";
export { createKey, revokeKey } from "./auth/key.js";
export { type KeyRecord, readKeys } from "./auth/key-file.js";
export { systemClock } from "./clock.js";
export { logLevels } from "./report.js";
export { authModes, checkSettings, defaultSettings, type Settings, tenantRates } from "./settings.js";
export { type DatabaseFacts, inspectDatabase, isLocked } from "./stores/sqlite/inspect.js";
