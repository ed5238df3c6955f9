// Moves the write-ahead log into the database from a thread of its own: inside a commit it would cost
// tens of milliseconds. A passive checkpoint blocks nobody.

import { statSync } from "node:fs";
import { parentPort, workerData } from "node:worker_threads";
import type { Durability } from "../../store.js";
import { isIoError, openDatabase, walBytesMax } from "./open.js";

const { path, durability } = workerData as { path: string; durability: Durability };
const port = parentPort;
if (port === null) throw new Error("this file runs as a worker thread");

const everyMs = 1000;
const walBytesMin = 4 * 1024 * 1024;
/** A page, and what the log says of it. */
const frameBytes = 4096 + 24;

const db = openDatabase(path, durability);

const timer = setInterval(() => {
  const walBytes = statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0;
  if (walBytes < walBytesMin) return;
  let frames = 0;
  try {
    frames = (db.prepare("PRAGMA wal_checkpoint(PASSIVE)").get() as { log: number }).log;
  } catch (error) {
    // The end of this thread, and with it of all writing: as after a commit, nobody knows what is on disk.
    if (isIoError((error as { errcode?: number }).errcode)) throw error;
    // Busy, or a full disk: the log of record is the WAL itself, and the next round tries again.
    return;
  }
  // The rest is small now; the writer finishes it between two commits.
  if (frames * frameBytes > walBytesMax) port.postMessage("restart");
}, everyMs);

port.on("message", () => {
  clearInterval(timer);
  db.close();
  port.close();
});
