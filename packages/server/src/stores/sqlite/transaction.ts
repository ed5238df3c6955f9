// A list of writes as one transaction: all of them are stored, or none.

import type { DatabaseSyncInstance, StatementSyncInstance } from "@photostructure/sqlite";
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

/** A server that stops leaves everything in one file, to be copied as it is. */
export function leave(db: DatabaseSyncInstance): void {
  try {
    db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  } finally {
    db.close();
  }
}
