// A row that the disk gives back is the row that it got, or it is refused: each has a CRC of its columns, which the
// statement that writes it sets and the one that reads it compares. The key is among them, so that no row can stand for
// another. Two functions of SQL do it, where the values are at hand anyway; nothing in the file itself calls them, so that
// any program can read it.
//
// Rows of `hot` have a CRC that this server's main thread makes and compares (hot-row.ts), and what is in a segment one of
// its own (segments.ts). Of a tombstone nothing but its key is ever read.

import { crc32 } from "node:zlib";
import type { DatabaseSyncInstance } from "@photostructure/sqlite";

/** What is covered of each table; the first column names a row that is damaged. */
const covered = {
  runs: [
    ...["run_id", "tenant", "root_id", "parent_id", "session_id", "agent", "made_under"],
    ...["state", "ended_ms", "full_gone", "record"],
  ],
  heads: ["log", "tenant", "as_of", "head"],
  segments: ["log", "tenant", "view", "first_pos", "last_pos", "last_seq", "bytes", "crc"],
  feed: ["log", "tenant", "pos", "seq", "id", "ts", "type", "by_run", "payload"],
  snapshots: ["log", "tenant", "view", "pos", "transcript"],
  sessions: ["session_id", "tenant", "turns", "last_turn"],
  tenants: ["tenant", "settings"],
  grants: [
    ...[
      "tenant",
      "hash",
      "kind",
      "scopes",
      "credential",
      "resource",
      "made_ms",
      "used_ms",
      "ends_ms",
      "csrf",
    ],
  ],
  allowed: ["tool", "tenant", "session_id", "root_id", "run_id", "approval_id", "at"],
  blob_refs: ["ref", "tenant", "root_id", "media_type", "bytes"],
  meta: ["name", "value"],
} as const;

export type Covered = keyof typeof covered;

export const coveredTables = Object.keys(covered) as Covered[];

type Value = string | number | bigint | null | Uint8Array;

/** Columns as SQL says them. */
type Told = { readonly [column: string]: string };

/** Teaches a connection what the statements here ask for. */
export function addChecksums(db: DatabaseSyncInstance): void {
  // A number that is damaged may be larger than any number of JavaScript.
  const options = { varargs: true, deterministic: true, useBigIntArguments: true };
  db.function("crc_of", options, (...values: Value[]) => crcOf(values));
  db.function("damage_of", options, (table: string, crc: Value, ...values: Value[]) =>
    crc !== null && Number(crc) === crcOf([table, ...values])
      ? null
      : `${table} ${JSON.stringify(String(values[0]).slice(0, 200))} (its checksum differs)`,
  );
}

function crcOf(values: readonly Value[]): number {
  let text = "";
  for (const value of values) text += value === null ? "\x1e" : `\x1f${value}`;
  return crc32(text);
}

/** A row as it stands in its table, or with other values in some columns. */
export function crcSql(table: Covered, values: Told = {}): string {
  const columns: readonly string[] = covered[table];
  return `crc_of('${table}', ${columns.map((column) => values[column] ?? `${table}.${column}`).join(", ")})`;
}

/** Adds a row of these columns, in their order, and of others that are always the same. */
export function adding(verb: string, table: Covered, columns: readonly string[], always: Told = {}): string {
  const values: Told = {
    ...Object.fromEntries(columns.map((column, i) => [column, `?${i + 1}`])),
    ...always,
  };
  return `${verb} INTO ${table}(${Object.keys(values).join(", ")}, row_crc)
    VALUES (${Object.values(values).join(", ")}, ${crcSql(table, values)})`;
}

/** Sets columns of a row. One that is damaged stays so: a new checksum would say that it is whole. */
export function setting(table: Covered, values: Told): string {
  const sets = Object.entries(values).map(([column, value]) => `${column} = ${value}`);
  return `${sets.join(", ")}, row_crc = iif(${table}.row_crc IS ${crcSql(table)}, ${crcSql(table, values)}, ${table}.row_crc)`;
}

/** For rows that have none. */
export function settingFirst(table: Covered): string {
  return `UPDATE ${table} SET row_crc = ${crcSql(table)} WHERE row_crc IS NULL`;
}

/** What is wrong with a row, null where nothing is. A reader refuses rows in whose column `damage` something is. */
export function damageOf(table: Covered, as: string = table): string {
  return `damage_of('${table}', ${["row_crc", ...covered[table]].map((column) => `${as}.${column}`).join(", ")})`;
}
