// The writer thread: the only one that writes. Each message is one transaction and is answered after its
// commit, which with `synchronous=FULL` means after the fsync of the write-ahead log.

import { parentPort, workerData } from "node:worker_threads";
import type { StatementSyncInstance } from "@photostructure/sqlite";
import { hotChecksum } from "./hot-checksum.js";
import { openDatabase } from "./open.js";
import { type Write, writes } from "./schema.js";

export type Ask =
  | { readonly kind: "write"; readonly list: readonly Write[] }
  /** Empties the write-ahead log, which has grown because commits never paused. */
  | { readonly kind: "truncate" }
  | { readonly kind: "close" };

export type Answer =
  | { readonly ok: true }
  | { readonly ok: false; readonly errcode: number; readonly message: string };

const { path, durability } = workerData as { path: string; durability: "fsync" | "os" };
const port = parentPort;
if (port === null) throw new Error("this file runs as a worker thread");

const db = openDatabase(path, durability);
const statements = new Map<string, StatementSyncInstance>();

function statement(name: keyof typeof writes): StatementSyncInstance {
  let prepared = statements.get(name);
  if (prepared === undefined) {
    prepared = db.prepare(writes[name]);
    statements.set(name, prepared);
  }
  return prepared;
}

function commit(list: readonly Write[]): void {
  db.exec("BEGIN IMMEDIATE");
  for (const [name, ...values] of list) {
    // Made here and not on the main thread, which has more to do.
    if (name === "addHot") values.push(hotChecksum(values));
    statement(name).run(...values);
  }
  db.exec("COMMIT");
}

/** A server that stops leaves everything in one file, to be copied as it is. */
function leave(): void {
  try {
    db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  } finally {
    db.close();
  }
}

port.on("message", (ask: Ask) => {
  try {
    if (ask.kind === "write") commit(ask.list);
    else if (ask.kind === "truncate") db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    else leave();
    port.postMessage({ ok: true } satisfies Answer);
  } catch (error) {
    if (db.isOpen && db.isTransaction) db.exec("ROLLBACK");
    const { errcode, message } = error as { errcode?: number; message: string };
    port.postMessage({ ok: false, errcode: errcode ?? 0, message } satisfies Answer);
  }
  if (ask.kind === "close") port.close();
});
