// Every setting: its flag, what it takes and does, and how a text becomes its value. Flags, variables, help and the tables
// of the documents are made of these rows.

import { limits } from "@runwire/protocol";
import { authModes, defaultSettings, logLevels, type Settings, tenantRates } from "@runwire/server/operate";
import { type AgentSettings, defaultAgentSettings, readMcp } from "./agent-settings.js";
import { readHooks } from "./hook-settings.js";

export type AllSettings = Settings & AgentSettings;

export const allDefaults: AllSettings = { ...defaultSettings, ...defaultAgentSettings };

export interface SettingRow {
  readonly flag: string;
  readonly takes: string;
  readonly does: string;
  readonly group: (typeof settingGroups)[number];
  /** Not to be given as a flag: the process list would show it to everyone on the machine. */
  readonly secret?: true;
  /** Undefined, or an Error that says more, for what is not possible. */
  read(text: string): unknown;
}

export const settingGroups = ["Server", "Access", "Agent", "Limits", "Data"] as const;

const wholeNumber = (min: number, max: number) => (text: string) => {
  const value = Number(text);
  return /^[0-9]+$/.test(text) && value >= min && value <= max ? value : undefined;
};
const oneOf =
  (...choices: string[]) =>
  (text: string) =>
    choices.find((choice) => choice === text);
const nonEmpty = (text: string) => (text === "" ? undefined : text);

const listOf = (isOne: (item: string) => boolean) => (text: string) => {
  const items = text
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== "");
  return items.length > 0 && items.every(isOne) ? items : undefined;
};

function isOrigin(text: string): boolean {
  return URL.canParse(text) && new URL(text).origin === text && /^https?:/.test(text);
}

function isJwksUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname } = new URL(text);
  return (
    protocol === "https:" || (protocol === "http:" && /^(localhost|127\.0\.0\.1|\[::1\])$/.test(hostname))
  );
}

const size = (flag: string, does: string, min: number, max: number): SettingRow => ({
  flag,
  takes: `${min} to ${max}`,
  does,
  group: "Limits",
  read: wholeNumber(min, max),
});
const rate = (flag: string, does: string): SettingRow => ({
  flag,
  takes: "0 (any number) to 10000000",
  does,
  group: "Limits",
  read: wholeNumber(0, 10_000_000),
});
const days = (flag: string, does: string): SettingRow => ({
  flag,
  takes: "days from 1 to 36500, or 0 for ever",
  does,
  group: "Data",
  read: wholeNumber(0, 36_500),
});
const mebibyte = 1024 * 1024;

export const settingRows: { readonly [S in keyof AllSettings]: SettingRow } = {
  port: {
    flag: "port",
    takes: "0 to 65535",
    does: "port to listen on; 0 picks a free one",
    group: "Server",
    read: wholeNumber(0, 65_535),
  },
  host: {
    flag: "host",
    takes: "an address or a name of this machine",
    does: "address to listen on; without credentials only a loopback one",
    group: "Server",
    read: nonEmpty,
  },
  tlsCert: {
    flag: "tls-cert",
    takes: "a PEM file",
    does: "certificate chain; with it the server speaks HTTPS and HTTP/2",
    group: "Server",
    read: nonEmpty,
  },
  tlsKey: {
    flag: "tls-key",
    takes: "a PEM file",
    does: "the certificate's key",
    group: "Server",
    read: nonEmpty,
  },
  log: {
    flag: "log",
    takes: logLevels.join(", "),
    does: "the least urgent thing that is logged, on stderr",
    group: "Server",
    read: oneOf(...logLevels),
  },
  graceMs: {
    flag: "grace-ms",
    takes: "milliseconds from 0 to 600000",
    does: "how long a leaving server waits for its requests",
    group: "Server",
    read: wholeNumber(0, 600_000),
  },

  auth: {
    flag: "auth",
    takes: authModes.join(", "),
    does: "who may ask: anyone on this machine, holders of keys, holders of tokens",
    group: "Access",
    read: oneOf(...authModes),
  },
  jwtSecret: {
    flag: "jwt-secret",
    takes: "at least 32 characters",
    does: "secret of HS256 tokens",
    group: "Access",
    secret: true,
    read: (text) => (text.length >= 32 ? text : undefined),
  },
  jwksUrl: {
    flag: "jwks-url",
    takes: "an https address",
    does: "where the public keys of tokens are",
    group: "Access",
    read: (text) => (isJwksUrl(text) ? text : undefined),
  },
  jwtIssuer: {
    flag: "jwt-issuer",
    takes: "the `iss` of tokens",
    does: "who makes tokens",
    group: "Access",
    read: nonEmpty,
  },
  jwtAudience: {
    flag: "jwt-audience",
    takes: "the `aud` of tokens",
    does: "for whom tokens are made: this server",
    group: "Access",
    read: nonEmpty,
  },
  jwtTenantClaim: {
    flag: "jwt-tenant-claim",
    takes: "the name of a claim",
    does: "which claim of a token names its tenant",
    group: "Access",
    read: nonEmpty,
  },
  origins: {
    flag: "origins",
    takes: "origins like https://app.example.com, separated by commas",
    does: "whose pages may call, besides the server's own",
    group: "Access",
    read: listOf(isOrigin),
  },

  shell: {
    flag: "shell",
    takes: "on or off",
    does: "whether the agent may run commands, as the user that the server runs as",
    group: "Agent",
    read: oneOf("on", "off"),
  },
  fetchHosts: {
    flag: "fetch-hosts",
    takes: "hosts like wiki.corp or 10.0.0.7:8080, separated by commas",
    does: "private hosts that the agent may fetch from",
    group: "Agent",
    read: listOf((host) => /^[^\s,/@]+$/.test(host)),
  },
  fallbackModels: {
    flag: "fallback-models",
    takes: "models like openai/gpt-6.1-sol, separated by commas",
    does: "models that go on, in this order, where a run's own is given up on",
    group: "Agent",
    read: listOf((name) => /^[^\s,]+$/.test(name)),
  },
  mcp: {
    flag: "mcp",
    takes:
      "a JSON object of MCP servers by name, each with `command`, `args`, `env`, or with `url`, `headers`",
    does: "servers whose tools the agent has",
    group: "Agent",
    // A server's environment and headers hold keys.
    secret: true,
    read: readMcp,
  },
  hooks: {
    flag: "hooks",
    takes:
      "a JSON list of hooks, each with `point`, `command`, and maybe `tools`, `timeout_ms`, `required`, `name`",
    does: "commands that look at the agent's calls before and after their tools run",
    group: "Agent",
    read: readHooks,
  },

  bodyBytesMax: size("body-bytes-max", "bytes of a request that is not an append", 1024, 64 * mebibyte),
  eventBytesMax: size("event-bytes-max", "bytes of an event's payload", 1024, limits.eventBytesMax),
  batchEventsMax: size("batch-events-max", "events of one append", 1, 100_000),
  batchBytesMax: size("batch-bytes-max", "bytes of one append", 1024, 256 * mebibyte),
  lineBytesMax: size("line-bytes-max", "bytes of a line of NDJSON", 1024, limits.lineBytesMax),
  headerBytesMax: size("header-bytes-max", "bytes of a request's headers", 1024, mebibyte),
  jsonDepthMax: size("json-depth-max", "levels of JSON", 4, 64),
  jsonKeysMax: size("json-keys-max", "members of a JSON value, at all levels", 16, 1_000_000),
  connectionsPerTenantMax: size(
    "connections-per-tenant-max",
    "requests and streams of a tenant at once",
    1,
    1_000_000,
  ),
  liveRunsPerTenantMax: size(
    "live-runs-per-tenant-max",
    "runs of a tenant that have not ended",
    1,
    10_000_000,
  ),
  requestsPerSecond: rate("requests-per-second", "requests of a tenant"),
  eventsPerSecond: rate("events-per-second", "events that a tenant appends"),

  dataFolder: { flag: "data", takes: "a folder", does: "where runs are kept", group: "Data", read: nonEmpty },
  durability: {
    flag: "durability",
    takes: "fsync or os",
    does: "whether an answer waits for the disk",
    group: "Data",
    read: oneOf("fsync", "os"),
  },
  redact: {
    flag: "redact",
    takes: "names with * as wildcard, like password,*secret*",
    does: "members whose values are never stored",
    group: "Data",
    read: listOf((name) => /^[^\s,]+$/.test(name)),
  },
  retentionDoneDays: days("retention-done-days", "how long runs are kept that ended as done"),
  retentionAbortedDays: days("retention-aborted-days", "how long aborted runs are kept"),
  retentionErrorDays: days("retention-error-days", "how long runs are kept that ended in an error"),
  retentionFullDays: {
    ...days("retention-full-days", "how long the full view of ended runs is kept"),
    takes: "days from 1 to 36500, or 0 for as long as the run",
  },
  checkpointRetentionPerRun: {
    flag: "checkpoint-retention-per-run",
    takes: "0 (none) to 1000",
    does: "how many checkpoints of a run are kept, the most recent ones",
    group: "Data",
    read: wholeNumber(0, 1000),
  },
  checkpointRetentionDays: {
    ...days("checkpoint-retention-days", "how long checkpoints are kept after their run's end"),
    takes: "days from 1 to 36500, or 0 for as long as the run",
  },
  checkpointQuotaMib: {
    flag: "checkpoint-quota-mib",
    takes: "MiB from 1 to 1048576",
    does: "what a tenant's checkpoints may take; the oldest go first",
    group: "Data",
    read: wholeNumber(1, 1_048_576),
  },
};

/** What a setting is when nobody says otherwise, in words. */
export function presetOf(name: keyof AllSettings): string {
  const preset = allDefaults[name];
  if (name === "requestsPerSecond" || name === "eventsPerSecond")
    return `${tenantRates[name]}, and any number where --auth is open`;
  if (preset === null || (Array.isArray(preset) && preset.length === 0)) return "none";
  return String(preset);
}

export function variable({ flag }: { readonly flag: string }): string {
  return `RUNWIRE_${flag.toUpperCase().replaceAll("-", "_")}`;
}
