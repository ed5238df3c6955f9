import type { DatabaseSyncInstance } from "@photostructure/sqlite";
import type { Clock } from "../../clock.js";
import type { Durability } from "../../store.js";
import { isFull, openDatabase } from "./open.js";
import type { Reader } from "./reader.js";
import { formatVersion, schema } from "./schema.js";

/**
 * Makes the file what this server reads, and sees that it can be written: a server that could not is not ready. Only on
 * a full disk it is, for its readers.
 */
export function prepareFile(path: string, durability: Durability, clock: Clock): void {
  let db: DatabaseSyncInstance | undefined;
  try {
    db = openDatabase(path, durability);
    const tables = db.prepare("SELECT count(*) AS count FROM sqlite_schema").get() as { count: number };
    if (tables.count === 0) {
      db.exec(
        `BEGIN; ${schema}; INSERT INTO meta(name, value) VALUES ('format', '${formatVersion}'); COMMIT`,
      );
    }
    const found = db.prepare("SELECT value FROM meta WHERE name = 'format'").get() as
      | { value: string }
      | undefined;
    if (found?.value !== String(formatVersion)) {
      throw new ForeignFormat(
        `it has format ${found?.value ?? "unknown"}, and this server reads format ${formatVersion}`,
      );
    }
    // Tables and indexes that an older server of this format did not have.
    db.exec(schema);
    sayOpened(db, new Date(clock.now()).toISOString());
  } catch (cause) {
    const { errcode, message } = cause as { errcode?: number; message: string };
    const isForeign = cause instanceof ForeignFormat;
    const mend = isFull(errcode)
      ? "free some room"
      : isForeign
        ? "run the version that wrote it"
        : "restore this one";
    throw new Error(`${path} cannot be used: ${message}; choose another data folder, or ${mend}`, { cause });
  } finally {
    db?.close();
  }
}

class ForeignFormat extends Error {}

function sayOpened(db: DatabaseSyncInstance, at: string): void {
  try {
    db.prepare("INSERT OR REPLACE INTO meta(name, value) VALUES ('opened', ?)").run(at);
  } catch (error) {
    if (!isFull((error as { errcode?: number }).errcode)) throw error;
  }
}

export function metaValue(reader: Reader, name: string): string | undefined {
  const row = reader.prepare("SELECT value FROM meta WHERE name = ?").get(name);
  return (row as { value: string } | undefined)?.value;
}
