import type { LogLevel } from "./report.js";
import type { Durability } from "./stores/sqlite/open.js";

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
};
