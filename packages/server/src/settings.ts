import { limits } from "@runwire/protocol";
import type { CheckpointLimits } from "./agent.js";
import type { QuotaLimits } from "./quotas.js";
import type { LogLevel } from "./report.js";
import type { Durability, RetentionDays } from "./store.js";

export const authModes = ["open", "keys", "jwt"] as const;
export type AuthMode = (typeof authModes)[number];

export interface Settings {
  readonly host: string;
  /** 0 picks a free one. */
  readonly port: number;
  readonly dataFolder: string;
  readonly durability: Durability;
  /** The least urgent thing that is logged. */
  readonly log: LogLevel;
  /** How long a leaving server waits for its streams and requests. */
  readonly graceMs: number;

  readonly auth: AuthMode;
  readonly jwtSecret: string | null;
  readonly jwksUrl: string | null;
  readonly jwtIssuer: string | null;
  readonly jwtAudience: string | null;
  readonly jwtTenantClaim: string;
  /** Origins whose pages may call, exactly. */
  readonly origins: readonly string[];
  /** PEM files; both, or neither. */
  readonly tlsCert: string | null;
  readonly tlsKey: string | null;
  /** Names of members whose values are never stored. */
  readonly redact: readonly string[];

  readonly bodyBytesMax: number;
  readonly eventBytesMax: number;
  readonly batchEventsMax: number;
  readonly batchBytesMax: number;
  readonly lineBytesMax: number;
  readonly headerBytesMax: number;
  readonly jsonDepthMax: number;
  readonly jsonKeysMax: number;
  readonly connectionsPerTenantMax: number;
  readonly liveRunsPerTenantMax: number;
  /** For each tenant; 0 for any number. Null: `tenantRates`, or any number where everyone is one tenant. */
  readonly requestsPerSecond: number | null;
  readonly eventsPerSecond: number | null;

  /** Days for which ended runs are kept, unless a tenant says otherwise; 0 for ever. */
  readonly retentionDoneDays: number;
  readonly retentionAbortedDays: number;
  readonly retentionErrorDays: number;
  /** Of the full view; 0 for as long as the run. */
  readonly retentionFullDays: number;
  /** Checkpoints of each run of the built-in agent: the most recent ones; 0 for none. */
  readonly checkpointRetentionPerRun: number;
  /** Days for which a tree's checkpoints are kept after its end; 0 for as long as the run. */
  readonly checkpointRetentionDays: number;
  /** Checkpoints of each tenant, in MiB. */
  readonly checkpointQuotaMib: number;
}

/** What the log may tell of them: named one by one, so that a secret is never among them by chance. */
export function toldSettings({
  host,
  port,
  dataFolder,
  durability,
  log,
  graceMs,
}: Settings): Partial<Settings> {
  return { host, port, dataFolder, durability, log, graceMs };
}

export const defaultSettings: Settings = {
  host: "127.0.0.1",
  port: 4700,
  dataFolder: ".runwire",
  durability: "fsync",
  log: "warn",
  graceMs: 10_000,
  auth: "open",
  jwtSecret: null,
  jwksUrl: null,
  jwtIssuer: null,
  jwtAudience: null,
  jwtTenantClaim: "tenant",
  origins: [],
  tlsCert: null,
  tlsKey: null,
  redact: [],
  bodyBytesMax: limits.controlBytesMax,
  eventBytesMax: limits.eventBytesMax,
  batchEventsMax: limits.batchEventsMax,
  batchBytesMax: limits.batchBytesMax,
  lineBytesMax: limits.lineBytesMax,
  headerBytesMax: 16 * 1024,
  jsonDepthMax: limits.jsonDepthMax,
  jsonKeysMax: limits.jsonKeysMax,
  connectionsPerTenantMax: 10_000,
  liveRunsPerTenantMax: 100_000,
  requestsPerSecond: null,
  eventsPerSecond: null,
  retentionDoneDays: 90,
  retentionAbortedDays: 30,
  retentionErrorDays: 30,
  retentionFullDays: 0,
  checkpointRetentionPerRun: 10,
  checkpointRetentionDays: 7,
  checkpointQuotaMib: 500,
};

/** What one tenant may do to a server that it shares with others. */
export const tenantRates = { requestsPerSecond: 2000, eventsPerSecond: 20_000 };

/** Where everyone is one tenant, there is nobody to protect from it. */
export function quotasOf({ auth, connectionsPerTenantMax, ...given }: Settings): QuotaLimits {
  const preset = auth === "open" ? { requestsPerSecond: 0, eventsPerSecond: 0 } : tenantRates;
  return {
    connectionsPerTenantMax,
    requestsPerSecond: given.requestsPerSecond ?? preset.requestsPerSecond,
    eventsPerSecond: given.eventsPerSecond ?? preset.eventsPerSecond,
  };
}

export function retentionOf(settings: Settings): RetentionDays {
  const days = (count: number): number | null => (count === 0 ? null : count);
  return {
    done_days: days(settings.retentionDoneDays),
    aborted_days: days(settings.retentionAbortedDays),
    error_days: days(settings.retentionErrorDays),
    full_days: days(settings.retentionFullDays),
  };
}

const dayMs = 24 * 60 * 60 * 1000;
const bytesPerMib = 1024 * 1024;

export function checkpointLimitsOf(settings: Settings): CheckpointLimits {
  const { checkpointRetentionPerRun, checkpointRetentionDays, checkpointQuotaMib } = settings;
  return {
    perRunMax: checkpointRetentionPerRun,
    endedMsMax: checkpointRetentionDays === 0 ? Number.POSITIVE_INFINITY : checkpointRetentionDays * dayMs,
    tenantBytesMax: checkpointQuotaMib * bytesPerMib,
  };
}

const loopbackHosts = ["127.0.0.1", "::1", "localhost"];

/** Settings that contradict each other. Throws an Error with one line that says what to change. */
export function checkSettings(settings: Settings): void {
  const { auth, host, jwtSecret, jwksUrl, jwtIssuer, jwtAudience, tlsCert, tlsKey } = settings;
  if (auth === "open" && !loopbackHosts.includes(host)) {
    throw new Error(
      `an open server stays on loopback, and ${host} is not: choose --auth keys or --auth jwt, or a loopback --host`,
    );
  }
  if (auth === "jwt") {
    if ((jwtSecret === null) === (jwksUrl === null))
      throw new Error("--auth jwt needs either RUNWIRE_JWT_SECRET or --jwks-url");
    if (jwtIssuer === null || jwtAudience === null)
      throw new Error("--auth jwt needs --jwt-issuer and --jwt-audience: tokens made for others are refused");
  }
  if ((tlsCert === null) !== (tlsKey === null)) throw new Error("--tls-cert and --tls-key go together");
}
