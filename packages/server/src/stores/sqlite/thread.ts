// The writer thread: the only one that writes. Each message is one transaction and is answered after its
// commit, which with `synchronous=FULL` means after the fsync of the write-ahead log.

import { parentPort, workerData } from "node:worker_threads";
import type { Durability } from "../../store.js";
import { failedWith, filesOf, openDatabase } from "./open.js";
import type { Write } from "./schema.js";
import { emptyLog, leave, restartLog, transaction } from "./transaction.js";

export type Ask =
  | { readonly kind: "write"; readonly list: readonly Write[] }
  /** Empties the write-ahead log: it holds what was erased. */
  | { readonly kind: "truncate"; readonly waitMs: number }
  /** Begins it anew: it has grown because commits never paused. */
  | { readonly kind: "restart"; readonly waitMs: number }
  | { readonly kind: "close" };

export type Answer =
  | { readonly ok: true }
  | { readonly ok: false; readonly errcode: number; readonly message: string };

const { path, durability } = workerData as { path: string; durability: Durability };
const port = parentPort;
if (port === null) throw new Error("this file runs as a worker thread");

const db = openDatabase(path, durability);
const commit = transaction(db);
const checkFiles = filesOf(path);

port.on("message", (ask: Ask) => {
  try {
    if (ask.kind === "write") {
      // Before it too: what is committed to files that nobody will open again is seen by whoever reads them here.
      checkFiles();
      commit(ask.list);
      checkFiles();
    } else if (ask.kind === "truncate") emptyLog(db, ask.waitMs);
    else if (ask.kind === "restart") restartLog(db, ask.waitMs);
    else leave(db);
    port.postMessage({ ok: true } satisfies Answer);
  } catch (error) {
    port.postMessage(failedWith(error));
  }
  if (ask.kind === "close") port.close();
});
