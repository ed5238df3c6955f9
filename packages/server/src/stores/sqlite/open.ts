// Loaded by the threads that write, so it imports little: they start with every server.

import { statSync } from "node:fs";
import { basename } from "node:path";
import { DatabaseSync, type DatabaseSyncInstance } from "@photostructure/sqlite";
import type { Durability } from "../../store.js";
import { addChecksums } from "./checksum.js";
import type { Answer } from "./thread.js";

/** What the write-ahead log may grow to; longer only while somebody who reads the file is in the way. */
export const walBytesMax = 64 * 1024 * 1024;

/** How long a connection waits for another one's lock. */
export const busyMsMax = 10_000;

/**
 * Opens a connection that writes as durably as it says. `synchronous` is set and read back on every open,
 * because a second open silently starts with less.
 */
export function openDatabase(path: string, durability: Durability): DatabaseSyncInstance {
  const db = new DatabaseSync(path, { timeout: busyMsMax });
  addChecksums(db);
  db.exec("PRAGMA journal_mode=WAL");
  db.exec("PRAGMA wal_autocheckpoint=0");
  db.exec(`PRAGMA journal_size_limit=${walBytesMax}`);
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

/** What the database says of what it could not do. */
export function failedWith(error: unknown): Answer {
  const { errcode = 0, message } = error as { errcode?: number; message: string };
  return { ok: false, errcode, message };
}

/** A read, write or flush that failed. */
export function isIoError(errcode: number | undefined): boolean {
  return ((errcode ?? 0) & 0xff) === sqliteIoErr;
}

/**
 * Throws once the files of an open database are no longer where they were: a file that somebody removed or replaced
 * still takes writes, and they are gone with the process. One that cannot be looked at may be another as well.
 */
export function filesOf(path: string): () => void {
  const paths = [path, `${path}-wal`];
  const inodeOf = (file: string): number | undefined => statSync(file, { throwIfNoEntry: false })?.ino;
  const opened = paths.map(inodeOf);
  const lose = (file: string, how: string): never => {
    throw Object.assign(new Error(`${basename(file)} ${how}`), { errcode: sqliteIoErr });
  };
  return () => {
    for (const [i, file] of paths.entries()) {
      let inode: number | undefined;
      try {
        inode = inodeOf(file);
      } catch (error) {
        lose(file, `cannot be looked at: ${(error as Error).message}`);
      }
      if (inode !== opened[i]) lose(file, "was removed or replaced");
    }
  };
}
