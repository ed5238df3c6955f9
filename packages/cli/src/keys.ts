// `runwire keys`: makes, lists and revokes API keys. It works on the data folder; servers on it follow.

import { join } from "node:path";
import {
  createKey,
  isScope,
  isTenant,
  type KeyRecord,
  readKeys,
  revokeKey,
  type Scope,
  scopes,
  systemClock,
} from "@runwire/server/operate";
import type { Command } from "commander";
import { parseDuration } from "./duration.js";
import { readEach } from "./settings.js";
import { listing, printable, type Terminal } from "./terminal.js";

interface CreateFlags {
  readonly tenant: string;
  readonly scopes: string;
  readonly name: string;
  readonly expires?: string;
  readonly data?: string;
}

const nameLengthMax = 100;
const columns = ["ID", "TENANT", "SCOPES", "NAME", "STATE", "CREATED", "EXPIRES"];

const example = `
Example:
  KEY=$(runwire keys create --tenant acme --scopes read,write --expires 90d)
  curl -H "Authorization: Bearer $KEY" http://127.0.0.1:4700/v1/agent/runs`;

export function addKeys(program: Command): void {
  const keys = program
    .command("keys")
    .description("make, list and revoke API keys")
    .addHelpText("after", example);
  const data = ["--data <folder>", "the server's data folder (RUNWIRE_DATA, default .runwire)"] as const;

  keys
    .command("create")
    .description("make a key and print it, this once")
    .requiredOption("--tenant <name>", "whose runs it opens: a-z, 0-9, - and _")
    .requiredOption("--scopes <list>", `what it may do: ${scopes.join(", ")}, with commas between`)
    .option("--name <text>", "what it is for, to know it again in a list", "")
    .option("--expires <duration>", "how long it is good: 30m, 12h, 90d, 4w, 1y (default for ever)")
    .option(...data)
    .addHelpText("after", example)
    .action(create);

  keys
    .command("list")
    .description("list the keys, without their secrets")
    .option("--tenant <name>", "only those of one tenant")
    .option("--json", "as JSON")
    .option(...data)
    .action(list);

  keys
    .command("revoke")
    .description("take a key back; running servers drop it within two seconds")
    .argument("<id>", "its id, as in the list")
    .option(...data)
    .action(revoke);
}

function create(flags: CreateFlags): void {
  const path = keyFile(flags);
  const { key, record } = createKey(
    path,
    {
      tenant: tenantOf(flags.tenant),
      scopes: scopesOf(flags.scopes),
      name: nameOf(flags.name),
      lifeMs: lifeOf(flags.expires),
    },
    systemClock.now(),
  );
  const ends = record.expires_at === null ? "never expires" : `expires ${record.expires_at}`;
  // Only the key goes to stdout, so that a script can take it.
  process.stderr.write(
    `key ${record.id} of tenant ${record.tenant} may ${record.scopes.join(", ")}; it ${ends}.\n` +
      "It is shown this once, and only its hash is kept. Keep it secret:\n",
  );
  process.stdout.write(`${key}\n`);
}

function list(flags: { readonly tenant?: string; readonly json?: boolean; readonly data?: string }): void {
  const tenant = flags.tenant === undefined ? undefined : tenantOf(flags.tenant);
  const keys = readKeys(keyFile(flags)).filter((key) => tenant === undefined || key.tenant === tenant);
  if (flags.json) {
    const shown = keys.map(({ hash: _, ...key }) => ({ ...key, state: stateOf(key) }));
    process.stdout.write(`${JSON.stringify(shown, null, 2)}\n`);
    return;
  }
  if (keys.length === 0) process.stderr.write("there are no keys; `runwire keys create` makes one\n");
  process.stdout.write(`${listOf(keys, process.stdout, process.env)}\n`);
}

/** Those that open nothing any more are grey. */
export function listOf(keys: readonly KeyRecord[], to: Terminal, env: NodeJS.ProcessEnv): string {
  const rows = keys.map((key) => [
    key.id,
    key.tenant,
    key.scopes.join(","),
    key.name,
    stateOf(key),
    key.created_at.slice(0, 10),
    key.expires_at?.slice(0, 10) ?? "never",
  ]);
  const isActive = keys.map((key) => stateOf(key) === "active");
  return listing(columns, rows, { colourOf: (row) => (isActive[row] ? undefined : "grey"), to, env });
}

function revoke(given: string, flags: { readonly data?: string }): void {
  // Who has only the key may revoke it too; what was given is not said again, it may be a secret.
  const [, id] = /^(?:rw_|key:)?([a-z2-7]{12})(?:_[0-9A-Za-z]*)?$/.exec(given) ?? [];
  if (id === undefined) throw new Error("that is not the id of a key; `runwire keys list` shows them");
  const path = keyFile(flags);
  const before = readKeys(path).find((key) => key.id === id);
  if (before === undefined || revokeKey(path, id, systemClock.now()) === undefined) {
    throw new Error(`there is no key ${id} in ${path}; \`runwire keys list\` shows them`);
  }
  const was = before.revoked_at === null ? "is revoked" : `was revoked before, at ${before.revoked_at}`;
  process.stderr.write(`key ${id} of tenant ${before.tenant} ${was}\n`);
}

/** Only the data folder matters here: what else is set, for a server or for a client, is not looked at together. */
function keyFile({ data }: { readonly data?: string }): string {
  const { dataFolder } = readEach({ data }, { RUNWIRE_DATA: process.env.RUNWIRE_DATA });
  return join(dataFolder, "keys.json");
}

function tenantOf(text: string): string {
  if (isTenant(text)) return text;
  const takes = "1 to 63 of a-z, 0-9, - and _, and begins with a letter or digit";
  throw new Error(`--tenant: ${JSON.stringify(text)} is not possible; it takes ${takes}`);
}

function scopesOf(text: string): readonly Scope[] {
  const words = [...new Set(text.split(",").map((word) => word.trim()))];
  for (const word of words) {
    if (!isScope(word)) {
      throw new Error(`--scopes: there is no scope ${JSON.stringify(word)}; there are ${scopes.join(", ")}`);
    }
  }
  return scopes.filter((scope) => words.includes(scope));
}

function nameOf(text: string): string {
  if (text.length <= nameLengthMax && printable(text) === text) return text;
  throw new Error(`--name: it takes up to ${nameLengthMax} printable characters`);
}

function lifeOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const lifeMs = parseDuration(text);
  if (lifeMs !== undefined) return lifeMs;
  throw new Error(
    `--expires: ${JSON.stringify(text)} is not possible; it takes a duration up to 100y, as 30m, 12h, 90d, 4w or 1y`,
  );
}

function stateOf({ revoked_at, expires_at }: Omit<KeyRecord, "hash">): "active" | "revoked" | "expired" {
  if (revoked_at !== null) return "revoked";
  return expires_at !== null && Date.parse(expires_at) <= systemClock.now() ? "expired" : "active";
}
