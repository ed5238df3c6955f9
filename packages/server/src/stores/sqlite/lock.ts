// One server owns a data folder. The lock is SQLite's own, on a file beside the data, so the system frees it
// when the process dies, however it dies.

import { DatabaseSync, type DatabaseSyncInstance } from "@photostructure/sqlite";
import { isFull, sqliteBusy } from "./open.js";

/** Throws one clear line where another process has the lock; returns what frees it. */
export function lockFile(path: string): () => void {
  let db: DatabaseSyncInstance | undefined;
  try {
    db = new DatabaseSync(`${path}.lock`, { timeout: 0 });
    // Nothing is ever written to it, and so it needs no room on a full disk.
    db.exec("PRAGMA journal_mode=MEMORY");
    db.exec("BEGIN EXCLUSIVE");
    const held = db;
    return () => held.close();
  } catch (cause) {
    db?.close();
    const { errcode, message } = cause as { errcode?: number; message: string };
    throw new Error(`${path} ${whyNot(errcode, message)}, or choose another data folder`, { cause });
  }
}

function whyNot(errcode: number | undefined, message: string): string {
  if (errcode === sqliteBusy) return "is in use by another server; stop it";
  if (isFull(errcode)) return "is on a full disk, and a start needs some room; free some";
  return `cannot be locked (${message}); make it writable`;
}
