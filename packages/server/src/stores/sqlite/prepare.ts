import type { DatabaseSyncInstance } from "@photostructure/sqlite";
import type { Clock } from "../../clock.js";
import type { Durability } from "../../store.js";
import { damageOf } from "./checksum.js";
import { isFull, openDatabase } from "./open.js";
import type { Reader } from "./reader.js";
import { formatVersion, schema, upgradableVersion, upgrade, writes } from "./schema.js";

/**
 * Makes the file what this server reads, and sees that it can be written: a server that could not is not ready. Only on
 * a full disk it is, for its readers.
 */
export function prepareFile(path: string, durability: Durability, clock: Clock): void {
  let db: DatabaseSyncInstance | undefined;
  try {
    db = openDatabase(path, durability);
    const named = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all();
    const tables = (named as { name: string }[]).map(({ name }) => name);
    if (tables.length === 0) {
      db.exec(`BEGIN; ${schema}`);
      db.prepare(writes.setMeta).run("format", String(formatVersion));
      db.exec("COMMIT");
    }
    const format = formatOf(db);
    if (format === String(upgradableVersion))
      db.exec(`BEGIN IMMEDIATE; ${upgrade.before(tables)}; ${schema}; ${upgrade.after}; COMMIT`);
    else if (format !== String(formatVersion)) {
      throw new ForeignFormat(
        `it has format ${format ?? "unknown"}, and this server reads format ${formatVersion}`,
      );
    }
    // Indexes that an older server of this format did not have.
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

function formatOf(db: DatabaseSyncInstance): string | undefined {
  const row = db.prepare("SELECT value FROM meta WHERE name = 'format'").get();
  return (row as { value: string } | undefined)?.value;
}

function sayOpened(db: DatabaseSyncInstance, at: string): void {
  try {
    db.prepare(writes.setMeta).run("opened", at);
  } catch (error) {
    if (!isFull((error as { errcode?: number }).errcode)) throw error;
  }
}

export function metaValue(reader: Reader, name: string): string | undefined {
  const row = reader
    .prepare(`SELECT value, ${damageOf("meta")} AS damage FROM meta WHERE name = ?`)
    .get(name);
  return (row as { value: string } | undefined)?.value;
}
