// What can be said about a data folder's database from outside, next to a running server or without one. Only reads.

import { statSync } from "node:fs";
import { DatabaseSync, type DatabaseSyncInstance } from "@photostructure/sqlite";
import { messageOf } from "@runwire/protocol";
import { addChecksums, coveredTables, damageOf } from "./checksum.js";
import { recordsIn, type StoredRow } from "./hot-row.js";
import { sqliteBusy } from "./open.js";
import { formatVersion, upgradableVersion } from "./schema.js";
import { fromSegment, type Segment } from "./segments.js";

export interface DatabaseFacts {
  readonly bytes: number;
  readonly walBytes: number;
  readonly format: string;
  readonly formatWanted: string;
  /** One that a server makes the wanted one of when it starts. */
  readonly formatBefore: string;
  /** When the newest event was stored; undefined where there is none. */
  readonly newestMs: number | undefined;
  /** What is wrong with the file's structure, or else with its rows; undefined where it was not looked for. */
  readonly damage: readonly string[] | undefined;
}

/** Whether a server has the data. */
export function isLocked(path: string): boolean {
  const lockPath = `${path}.lock`;
  if (bytesOf(lockPath) === undefined) return false;
  // A read waits for the server's exclusive lock, and takes none that a server would not get past.
  const db = new DatabaseSync(lockPath, { timeout: 0, readOnly: true });
  try {
    db.prepare("SELECT count(*) FROM sqlite_schema").get();
    return false;
  } catch (error) {
    if ((error as { errcode?: number }).errcode === sqliteBusy) return true;
    throw error;
  } finally {
    db.close();
  }
}

/** Undefined where there is no database yet. Throws what SQLite says where it cannot be read. */
export function inspectDatabase(path: string, lookForDamage: boolean): DatabaseFacts | undefined {
  const bytes = bytesOf(path);
  if (bytes === undefined) return undefined;
  const db = new DatabaseSync(path, { timeout: 10_000, readOnly: true });
  try {
    const format = String(one(db, "SELECT value AS it FROM meta WHERE name = 'format'"));
    return {
      bytes,
      walBytes: bytesOf(`${path}-wal`) ?? 0,
      format,
      formatWanted: String(formatVersion),
      formatBefore: String(upgradableVersion),
      newestMs: newest(db),
      damage: lookForDamage ? damageIn(db, format) : undefined,
    };
  } finally {
    db.close();
  }
}

function newest(db: DatabaseSyncInstance): number | undefined {
  const ts =
    // The second of a record's texts.
    one(db, "SELECT substr(body, instr(body, char(10)) + 1, 24) AS it FROM hot ORDER BY row DESC LIMIT 1") ??
    one(
      db,
      "SELECT json_extract(CAST(body AS TEXT), '$[#-1].ts') AS it FROM segments ORDER BY segment DESC LIMIT 1",
    );
  return typeof ts === "string" ? Date.parse(ts) : undefined;
}

function damageIn(db: DatabaseSyncInstance, format: string): readonly string[] {
  const rows = db.prepare("PRAGMA quick_check(10)").all() as { quick_check: string }[];
  const structure = rows.map(({ quick_check }) => quick_check).filter((text) => text !== "ok");
  // Files of the format before have no checksums.
  return structure.length > 0 || format !== String(formatVersion) ? structure : rowsDamaged(db);
}

/** Of each table the first row that is not what was stored. */
function rowsDamaged(db: DatabaseSyncInstance): readonly string[] {
  addChecksums(db);
  const found = coveredTables.map((table) =>
    one(db, `SELECT it FROM (SELECT ${damageOf(table)} AS it FROM ${table}) WHERE it IS NOT NULL LIMIT 1`),
  );
  const hot = "SELECT row, body, crc FROM hot";
  found.push(firstDamage<StoredRow>(db, hot, (row) => recordsIn(row)));
  const segments = "SELECT log, first_pos, marks, body, crc FROM segments";
  found.push(
    firstDamage<Segment & { readonly log: string }>(db, segments, (row) => fromSegment(row.log, row)),
  );
  return found.filter((text) => typeof text === "string");
}

/** What the first row that is refused is refused with. */
function firstDamage<R>(db: DatabaseSyncInstance, sql: string, read: (row: R) => void): string | undefined {
  for (const row of db.prepare(sql).iterate() as Iterable<R>) {
    try {
      read(row);
    } catch (error) {
      return messageOf(error);
    }
  }
  return undefined;
}

function one(db: DatabaseSyncInstance, sql: string): unknown {
  return (db.prepare(sql).get() as { it: unknown } | undefined)?.it;
}

function bytesOf(path: string): number | undefined {
  return statSync(path, { throwIfNoEntry: false })?.size;
}
