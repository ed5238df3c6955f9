import type { DatabaseSyncInstance } from "@photostructure/sqlite";
import type { Clock } from "../../clock.js";
import { type Durability, openDatabase } from "./open.js";
import { formatVersion, schema } from "./schema.js";

/** Makes the file what this server reads, and sees that it can be written: a server that could not is not ready. */
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
      throw new Error(
        `it has format ${found?.value ?? "unknown"}, and this server reads format ${formatVersion}`,
      );
    }
    // Tables and indexes that an older server of this format did not have.
    db.exec(schema);
    db.prepare("INSERT OR REPLACE INTO meta(name, value) VALUES ('opened', ?)").run(
      new Date(clock.now()).toISOString(),
    );
  } catch (cause) {
    const { message } = cause as Error;
    throw new Error(`${path} cannot be used: ${message}; choose another data folder, or restore this one`, {
      cause,
    });
  } finally {
    db?.close();
  }
}

export function metaValue(reader: DatabaseSyncInstance, name: string): string | undefined {
  const row = reader.prepare("SELECT value FROM meta WHERE name = ?").get(name);
  return (row as { value: string } | undefined)?.value;
}
