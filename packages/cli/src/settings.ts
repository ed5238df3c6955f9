// Settings come from flags, then RUNWIRE_* variables, then runwire.config.json, then the defaults. A bad or
// unknown value stops the start with one line that names it.

import { readFileSync } from "node:fs";
import { isObject } from "@runwire/protocol";
import { checkSettings } from "@runwire/server/operate";
import { type AllSettings, allDefaults, type SettingRow, settingRows, variable } from "./setting-rows.js";

const configFile = "runwire.config.json";
/** What clients and the built-in agent read: in the shell of somebody who runs both, they are no mistake. */
const othersVariables: ReadonlySet<string> = new Set([
  "RUNWIRE_URL",
  "RUNWIRE_TOKEN",
  "RUNWIRE_NATS",
  "RUNWIRE_NATS_CREDS",
  "RUNWIRE_OPENAI_BASE_URL",
  "RUNWIRE_OPENAI_API_KEY",
  "RUNWIRE_MODEL",
]);

interface Flags {
  readonly [flag: string]: unknown;
}

/** Throws an Error with one line that names what is wrong. */
export function readSettings(flags: Flags, env: NodeJS.ProcessEnv): AllSettings {
  const settings = readEach(flags, env);
  checkSettings(settings);
  return settings;
}

/** The same for those who start no server: each setting is possible by itself. */
export function readEach(flags: Flags, env: NodeJS.ProcessEnv): AllSettings {
  const settings: { [name: string]: unknown } = { ...allDefaults };
  const rows = Object.entries(settingRows);
  const take = (text: unknown, name: string, row: SettingRow, from: string): void => {
    const isJson = isObject(text) || (Array.isArray(text) && text.some(isObject));
    // Nothing, or yes, is no name of a folder or a file.
    const isWord = text !== null && typeof text !== "boolean";
    const value = isWord ? readBy(row, isJson ? JSON.stringify(text) : String(text), from) : undefined;
    // A secret is not repeated, not even a wrong one.
    const given = row.secret === true ? "what was given" : JSON.stringify(text);
    if (value === undefined) throw new Error(`${from}: ${given} is not possible; it takes ${row.takes}`);
    settings[name] = value;
  };
  for (const [key, text] of Object.entries(readConfig())) {
    const found = rows.find(([, row]) => row.flag === key);
    if (found === undefined) throw new Error(`${configFile}: there is no setting ${JSON.stringify(key)}`);
    take(text, found[0], found[1], `${configFile}: ${key}`);
  }
  for (const [key, text] of Object.entries(env)) {
    if (!key.startsWith("RUNWIRE_") || othersVariables.has(key) || text === undefined) continue;
    const found = rows.find(([, row]) => variable(row) === key);
    if (found === undefined)
      throw new Error(`${key}: there is no such setting; \`runwire serve --help\` lists all`);
    take(text, found[0], found[1], key);
  }
  for (const [name, row] of rows) {
    const text = flags[row.flag.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase())];
    if (text !== undefined) take(text, name, row, `--${row.flag}`);
  }
  return settings as unknown as AllSettings;
}

function readBy(row: SettingRow, text: string, from: string): unknown {
  try {
    return row.read(text);
  } catch (cause) {
    throw new Error(`${from}: ${(cause as Error).message}`, { cause });
  }
}

function readConfig(): object {
  let text: string;
  try {
    // Some editors begin a file with a mark that JSON does not know.
    text = readFileSync(configFile, "utf8").replace(/^\uFEFF/, "");
  } catch (cause) {
    // There need not be one. One that cannot be read may be what keeps others out.
    if ((cause as NodeJS.ErrnoException).code === "ENOENT") return {};
    throw new Error(`${configFile}: ${(cause as Error).message}`, { cause });
  }
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  } catch (cause) {
    // Of the parser's own words only where it is: they quote the text, and that holds secrets.
    const [, before] = / at position ([0-9]+)/.exec((cause as Error).message) ?? [];
    const line = before === undefined ? "" : `, at line ${text.slice(0, Number(before)).split("\n").length}`;
    throw new Error(`${configFile}: is not JSON${line}`, { cause });
  }
  throw new Error(`${configFile}: must be a JSON object`);
}
