// What can be said about a data folder's database from outside, next to a running server or without one. Only reads.

import { statSync } from "node:fs";
import { DatabaseSync, type DatabaseSyncInstance } from "@photostructure/sqlite";
import { sqliteBusy } from "./open.js";
import { formatVersion } from "./schema.js";

export interface DatabaseFacts {
  readonly bytes: number;
  readonly walBytes: number;
  readonly format: string;
  readonly formatWanted: string;
  /** When the newest event was stored; undefined where there is none. */
  readonly newestMs: number | undefined;
  /** What SQLite finds wrong with the file's structure; undefined where it was not looked for. */
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
    const format = one(db, "SELECT value AS it FROM meta WHERE name = 'format'");
    return {
      bytes,
      walBytes: bytesOf(`${path}-wal`) ?? 0,
      format: String(format),
      formatWanted: String(formatVersion),
      newestMs: newest(db),
      damage: lookForDamage ? damageOf(db) : undefined,
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

function damageOf(db: DatabaseSyncInstance): readonly string[] {
  const rows = db.prepare("PRAGMA quick_check(10)").all() as { quick_check: string }[];
  return rows.map(({ quick_check }) => quick_check).filter((text) => text !== "ok");
}

function one(db: DatabaseSyncInstance, sql: string): unknown {
  return (db.prepare(sql).get() as { it: unknown } | undefined)?.it;
}

function bytesOf(path: string): number | undefined {
  return statSync(path, { throwIfNoEntry: false })?.size;
}
