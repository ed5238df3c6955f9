// Loaded by the threads that write, so it imports little: they start with every server.

import { statSync } from "node:fs";
import { basename } from "node:path";
import { DatabaseSync, type DatabaseSyncInstance } from "@photostructure/sqlite";

/** Whether a commit waits for the disk. */
export type Durability = "fsync" | "os";

/** How long a connection waits for another one's lock. */
export const busyMsMax = 10_000;

/**
 * Opens a connection that writes as durably as it says. `synchronous` is set and read back on every open,
 * because a second open silently starts with less.
 */
export function openDatabase(path: string, durability: Durability): DatabaseSyncInstance {
  const db = new DatabaseSync(path, { timeout: busyMsMax });
  db.exec("PRAGMA journal_mode=WAL");
  db.exec("PRAGMA wal_autocheckpoint=0");
  // Erased is erased: what is deleted is overwritten, and not left in free pages.
  db.exec("PRAGMA secure_delete=ON");
  const wanted = durability === "fsync" ? 2 : 1;
  db.exec(`PRAGMA synchronous=${wanted}`);
  const { synchronous } = db.prepare("PRAGMA synchronous").get() as { synchronous: number };
  const { journal_mode } = db.prepare("PRAGMA journal_mode").get() as { journal_mode: string };
  if (synchronous !== wanted || journal_mode !== "wal") {
    throw new Error(`${path}: SQLite runs with synchronous=${synchronous} and journal_mode=${journal_mode}`);
  }
  return db;
}

export const sqliteBusy = 5;
const sqliteIoErr = 10;
const sqliteFull = 13;

export function isFull(errcode: number | undefined): boolean {
  return errcode === sqliteFull;
}

/** A read, write or flush that failed. */
export function isIoError(errcode: number | undefined): boolean {
  return ((errcode ?? 0) & 0xff) === sqliteIoErr;
}

/**
 * Throws once the files of an open database are no longer where they were: a file that somebody removed or replaced
 * still takes writes, and they are gone with the process.
 */
export function filesOf(path: string): () => void {
  const paths = [path, `${path}-wal`];
  const inodes = (): readonly (number | undefined)[] =>
    paths.map((file) => statSync(file, { throwIfNoEntry: false })?.ino);
  const opened = inodes();
  return () => {
    const lost = inodes().findIndex((inode, i) => inode !== opened[i]);
    if (lost === -1) return;
    throw Object.assign(new Error(`${basename(paths[lost] ?? "")} was removed or replaced`), {
      errcode: sqliteIoErr,
    });
  };
}
