// A list of writes as one transaction: all of them are stored, or none.

import type { DatabaseSyncInstance, StatementSyncInstance } from "@photostructure/sqlite";
import { busyMsMax, sqliteBusy } from "./open.js";
import { type Write, writes } from "./schema.js";

export function transaction(db: DatabaseSyncInstance): (list: readonly Write[]) => void {
  const statements = new Map<string, StatementSyncInstance>();

  function statement(name: keyof typeof writes): StatementSyncInstance {
    let prepared = statements.get(name);
    if (prepared === undefined) {
      prepared = db.prepare(writes[name]);
      statements.set(name, prepared);
    }
    return prepared;
  }

  return (list) => {
    try {
      db.exec("BEGIN IMMEDIATE");
      for (const [name, ...values] of list) statement(name).run(...values);
      db.exec("COMMIT");
    } catch (error) {
      if (db.isOpen && db.isTransaction) db.exec("ROLLBACK");
      throw error;
    }
  };
}

/** Empties the write-ahead log into the database, so that the file of the log holds nothing. */
export function emptyLog(db: DatabaseSyncInstance, waitMs: number): void {
  checkpoint(db, "TRUNCATE", waitMs);
}

/** Lets the log begin anew in the file that it has: to give that back, and have it again, takes tens of milliseconds. */
export function restartLog(db: DatabaseSyncInstance, waitMs: number): void {
  checkpoint(db, "RESTART", waitMs);
}

/**
 * SQLite answers rather than throws where somebody is in the way: a program that reads the file, for whom it waits, or the
 * thread that moves the log, for which it does not.
 */
function checkpoint(db: DatabaseSyncInstance, how: "TRUNCATE" | "RESTART", waitMs: number): void {
  const moving = db.prepare(`PRAGMA wal_checkpoint(${how})`);
  const untilMs = performance.now() + waitMs;
  db.exec(`PRAGMA busy_timeout=${waitMs}`);
  try {
    while ((moving.get() as { busy: number }).busy !== 0) {
      if (performance.now() >= untilMs)
        throw Object.assign(new Error("the write-ahead log is in use"), { errcode: sqliteBusy });
      Atomics.wait(nothing, 0, 0, emptyAgainMs);
    }
  } finally {
    db.exec(`PRAGMA busy_timeout=${busyMsMax}`);
  }
}

const emptyAgainMs = 10;
const nothing = new Int32Array(new SharedArrayBuffer(4));

/** A server that stops leaves everything in one file, to be copied as it is. */
export function leave(db: DatabaseSyncInstance): void {
  try {
    db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  } finally {
    db.close();
  }
}
