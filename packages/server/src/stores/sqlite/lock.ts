// One server owns a data folder. The lock is SQLite's own, on a file beside the data, so the system frees it
// when the process dies, however it dies.

import { DatabaseSync } from "@photostructure/sqlite";

/** Throws one clear line where another process has the lock; returns what frees it. */
export function lockFile(path: string): () => void {
  const db = new DatabaseSync(`${path}.lock`, { timeout: 0 });
  try {
    db.exec("PRAGMA journal_mode=DELETE");
    db.exec("BEGIN EXCLUSIVE");
  } catch (cause) {
    db.close();
    throw new Error(`${path} is in use by another server; stop it, or choose another data folder`, { cause });
  }
  return () => db.close();
}
