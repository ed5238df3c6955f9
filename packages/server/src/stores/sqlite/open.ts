import { statSync } from "node:fs";
import { basename } from "node:path";
import { DatabaseSync, type DatabaseSyncInstance } from "@photostructure/sqlite";
import { RunwireError } from "@runwire/protocol";

/** Whether a commit waits for the disk. */
export type Durability = "fsync" | "os";

/**
 * Opens a connection that writes as durably as it says. `synchronous` is set and read back on every open,
 * because a second open silently starts with less.
 */
export function openDatabase(path: string, durability: Durability): DatabaseSyncInstance {
  const db = new DatabaseSync(path, { timeout: 10_000 });
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

/** What is asked of the file on the main thread. A disk that does not give it is the store's trouble, and no bug. */
export interface Reader {
  prepare(sql: string): Query;
  /** To be told of what came back and is not what was stored. */
  failed(error: unknown): void;
  close(): void;
}

export interface Query {
  get(...values: (string | number | null)[]): unknown;
  all(...values: (string | number | null)[]): unknown[];
  iterate(): Iterable<unknown>;
}

/** A connection that only reads. SQLite takes a page that the disk cannot read for one that is damaged. */
export function openReader(path: string, failed: (error: unknown) => void = () => {}): Reader {
  const db = new DatabaseSync(path, { timeout: 10_000, readOnly: true });
  // Of what is asked for wrongly SQLite says so too; that stays what it is, a bug.
  const told = (cause: unknown): unknown => {
    const { message } = cause as Error;
    const isDamaged = /malformed|not a database/.test(message);
    if (!isDamaged && !/I\/O error|unable to open|is locked|out of memory|is closed/.test(message))
      return cause;
    const error = new RunwireError(isDamaged ? "KAI-SERVER-STORE-0003" : "KAI-SERVER-STORE-0001", message, {
      cause,
    });
    failed(error);
    return error;
  };
  return {
    prepare(sql) {
      const statement = db.prepare(sql);
      return {
        get(...values) {
          try {
            return statement.get(...values);
          } catch (error) {
            throw told(error);
          }
        },
        all(...values) {
          try {
            return statement.all(...values);
          } catch (error) {
            throw told(error);
          }
        },
        *iterate() {
          try {
            yield* statement.iterate();
          } catch (error) {
            throw told(error);
          }
        },
      };
    },
    failed,
    close: () => db.close(),
  };
}

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
