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

export const defaultSettings: Settings = {
  host: "127.0.0.1",
  port: 4700,
  dataFolder: ".runwire",
  durability: "fsync",
  log: "warn",
  graceMs: 10_000,
};
