// One server owns a data folder. The lock is SQLite's own, on a file beside the data, so the system frees it
// when the process dies, however it dies.

import { DatabaseSync, type DatabaseSyncInstance } from "@photostructure/sqlite";

const sqliteBusy = 5;

/** Throws one clear line where another process has the lock; returns what frees it. */
export function lockFile(path: string): () => void {
  let db: DatabaseSyncInstance | undefined;
  try {
    db = new DatabaseSync(`${path}.lock`, { timeout: 0 });
    db.exec("PRAGMA journal_mode=DELETE");
    db.exec("BEGIN EXCLUSIVE");
    const held = db;
    return () => held.close();
  } catch (cause) {
    db?.close();
    const { errcode, message } = cause as { errcode?: number; message: string };
    const why =
      errcode === sqliteBusy
        ? "is in use by another server; stop it"
        : `cannot be locked (${message}); make it writable`;
    throw new Error(`${path} ${why}, or choose another data folder`, { cause });
  }
}
