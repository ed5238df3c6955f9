// Settings come from flags, then RUNWIRE_* variables, then runwire.config.json, then the defaults. A bad or
// unknown value stops the start with one line that names it.

import { readFileSync } from "node:fs";
import { defaultSettings, logLevels, type Settings } from "@runwire/server";

interface SettingRow {
  readonly flag: string;
  readonly takes: string;
  readonly does: string;
  read(text: string): unknown;
}

const wholeNumber = (min: number, max: number) => (text: string) => {
  const value = Number(text);
  return /^[0-9]+$/.test(text) && value >= min && value <= max ? value : undefined;
};
const oneOf =
  (...choices: string[]) =>
  (text: string) =>
    choices.find((choice) => choice === text);
const nonEmpty = (text: string) => (text === "" ? undefined : text);

export const settingRows: { readonly [S in keyof Settings]: SettingRow } = {
  port: {
    flag: "port",
    takes: "0 to 65535",
    does: "port to listen on; 0 picks a free one",
    read: wholeNumber(0, 65_535),
  },
  host: {
    flag: "host",
    takes: "127.0.0.1, ::1 or localhost (an open server stays on loopback)",
    does: "address to listen on",
    read: oneOf("127.0.0.1", "::1", "localhost"),
  },
  dataFolder: { flag: "data", takes: "a folder", does: "where runs are kept", read: nonEmpty },
  durability: {
    flag: "durability",
    takes: "fsync or os",
    does: "whether an answer waits for the disk",
    read: oneOf("fsync", "os"),
  },
  log: {
    flag: "log",
    takes: logLevels.join(", "),
    does: "the least urgent thing that is logged, on stderr",
    read: oneOf(...logLevels),
  },
  graceMs: {
    flag: "grace-ms",
    takes: "milliseconds from 0 to 600000",
    does: "how long a leaving server waits for its requests",
    read: wholeNumber(0, 600_000),
  },
};

const configFile = "runwire.config.json";

/** Throws an Error with one line that names what is wrong. */
export function readSettings(flags: { readonly [flag: string]: unknown }, env: NodeJS.ProcessEnv): Settings {
  const settings: { [name: string]: unknown } = { ...defaultSettings };
  const rows = Object.entries(settingRows);
  const take = (text: unknown, name: string, row: SettingRow, from: string): void => {
    const value = row.read(String(text));
    if (value === undefined)
      throw new Error(`${from}: ${JSON.stringify(text)} is not possible; it takes ${row.takes}`);
    settings[name] = value;
  };
  for (const [key, text] of Object.entries(readConfig())) {
    const found = rows.find(([, row]) => row.flag === key);
    if (found === undefined) throw new Error(`${configFile}: there is no setting ${JSON.stringify(key)}`);
    take(text, found[0], found[1], `${configFile}: ${key}`);
  }
  for (const [key, text] of Object.entries(env)) {
    if (!key.startsWith("RUNWIRE_") || text === undefined) continue;
    const found = rows.find(([, row]) => variable(row) === key);
    if (found === undefined)
      throw new Error(`${key}: there is no such setting; \`runwire serve --help\` lists all`);
    take(text, found[0], found[1], key);
  }
  for (const [name, row] of rows) {
    const text = flags[row.flag.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase())];
    if (text !== undefined) take(text, name, row, `--${row.flag}`);
  }
  return settings as unknown as Settings;
}

export function variable({ flag }: { readonly flag: string }): string {
  return `RUNWIRE_${flag.toUpperCase().replaceAll("-", "_")}`;
}

function readConfig(): object {
  let text: string;
  try {
    text = readFileSync(configFile, "utf8");
  } catch {
    // There need not be one.
    return {};
  }
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  } catch (cause) {
    throw new Error(`${configFile}: ${(cause as Error).message}`, { cause });
  }
  throw new Error(`${configFile}: must be a JSON object`);
}
