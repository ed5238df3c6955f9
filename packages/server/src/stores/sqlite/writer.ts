// Who writes to the database: a thread of its own, to which the main one keeps this handle. One transaction at a time,
// in order.

import { Worker } from "node:worker_threads";
import { RunwireError } from "@runwire/protocol";
import { type Durability, InDoubt, type StoreLevels } from "../../store.js";
import { failedWith, isFull, isIoError, openDatabase } from "./open.js";
import type { Write } from "./schema.js";
import type { Answer, Ask } from "./thread.js";
import { emptyLog, leave, transaction } from "./transaction.js";

export interface Writer {
  /** Resolves once the list is committed and durable; rejects when nothing of it was stored, or with `InDoubt`. */
  write(list: readonly Write[]): Promise<void>;
  /** Whether the last write was stored: not on a full disk, nor ever again after a failed flush. */
  readonly condition: StoreLevels["writing"];
  /** Empties the write-ahead log into the database; rejects where somebody who reads it is in the way. */
  truncate(): Promise<void>;
  close(): Promise<void>;
}

/** How long somebody who reads the file is waited for, and nothing is committed, so that what was erased is gone. */
const eraseMsMax = 2000;
/** The same where the write-ahead log only takes room. Who reads for long, as a backup does, is asked about each second. */
const roomMsMax = 20;

export function writerThread(path: string, durability: Durability): Writer {
  const workerData = { path, durability };
  // How the program itself was started is not for them: a thread refuses some flags, and `--input-type` breaks it.
  const execArgv: string[] = [];
  const thread = new Worker(new URL("./thread.js", import.meta.url), { workerData, execArgv });
  const checkpoints = new Worker(new URL("./checkpoint-thread.js", import.meta.url), {
    workerData,
    execArgv,
  });
  const waiting: { kind: Ask["kind"]; resolve: () => void; reject: (error: Error) => void }[] = [];
  const disk = diskState();

  thread.on("message", (answer: Answer) => {
    const asked = waiting.shift();
    const refusal = disk.answered(asked?.kind, answer);
    if (refusal === undefined) asked?.resolve();
    else asked?.reject(refusal);
  });
  for (const worker of [thread, checkpoints]) {
    worker.on("error", ({ message }) => {
      disk.breakOff(new RunwireError("KAI-SERVER-STORE-0001", message));
      // The other thread may still commit what it was given.
      for (const asked of waiting.splice(0)) asked.reject(new InDoubt(message));
    });
  }
  const exits = [thread, checkpoints].map(
    (worker) => new Promise<void>((resolve) => worker.once("exit", () => resolve())),
  );
  let isMakingRoom = false;
  // It says one thing: that the log has grown large.
  checkpoints.on("message", () => {
    if (isMakingRoom) return;
    isMakingRoom = true;
    // Whoever reads the file, or a full disk, fails this; the next round asks again.
    ask({ kind: "restart", waitMs: roomMsMax })
      .catch(() => {})
      .finally(() => {
        isMakingRoom = false;
      });
  });

  function ask(message: Ask): Promise<void> {
    if (disk.broken !== undefined) return Promise.reject(disk.broken);
    return new Promise((resolve, reject) => {
      waiting.push({ kind: message.kind, resolve, reject });
      thread.postMessage(message);
    });
  }

  return {
    get condition() {
      return disk.condition;
    },
    write: (list) => ask({ kind: "write", list }),
    truncate: () => ask({ kind: "truncate", waitMs: eraseMsMax }),
    async close() {
      disk.breakOff(disk.broken ?? new RunwireError("KAI-STREAM-LEAVING-0001"));
      checkpoints.postMessage("close");
      thread.postMessage({ kind: "close" } satisfies Ask);
      await Promise.all(exits);
    },
  };
}

interface DiskState extends Pick<Writer, "condition"> {
  /** What everything is refused with from now on. */
  readonly broken: RunwireError | undefined;
  breakOff(why: RunwireError): void;
  /** What whoever asked is to be told; nothing where it was done. */
  answered(kind: Ask["kind"] | undefined, answer: Answer): RunwireError | undefined;
}

/** What an answer of the database says about the disk, and about what was asked. */
function diskState(): DiskState {
  // After a failed fsync nobody knows what is on disk: nothing is written until a restart has read it back.
  let broken: RunwireError | undefined;
  let diskFull = false;
  return {
    get broken() {
      return broken;
    },
    get condition() {
      return broken === undefined ? (diskFull ? "full" : "ok") : "broken";
    },
    breakOff(why) {
      broken = why;
    },
    answered(kind, answer) {
      const full = !answer.ok && isFull(answer.errcode);
      // A log that could be emptied, or not, says nothing about room for the next write.
      if (kind === "write") diskFull = full;
      if (answer.ok) return undefined;
      const { errcode, message } = answer;
      if (isIoError(errcode)) {
        // What is refused from now on is certainly not stored.
        broken = new RunwireError("KAI-SERVER-STORE-0001", message);
        return new InDoubt(message);
      }
      return new RunwireError(full ? "KAI-SERVER-STORE-0002" : "KAI-SERVER-STORE-0001", message);
    },
  };
}

/** Lets a commit happen, now or later, or fails in its place as a database does, with an `errcode`. */
export type Through = (commit: () => void, list: readonly Write[]) => Promise<void>;

/**
 * The same on the calling thread, for whoever must know in which order things happen, or has a disk that fails when it is
 * told to.
 */
export function writerHere(
  path: string,
  durability: Durability,
  through: Through = async (commit) => commit(),
): Writer {
  const db = openDatabase(path, durability);
  const commit = transaction(db);
  const disk = diskState();
  async function ask(kind: Ask["kind"], act: () => Promise<void>): Promise<void> {
    if (disk.broken !== undefined) throw disk.broken;
    const answer = await act().then((): Answer => ({ ok: true }), failedWith);
    const refusal = disk.answered(kind, answer);
    if (refusal !== undefined) throw refusal;
  }
  return {
    get condition() {
      return disk.condition;
    },
    write: (list) => ask("write", () => through(() => commit(list), list)),
    truncate: () => ask("truncate", async () => emptyLog(db, eraseMsMax)),
    close: async () => leave(db),
  };
}
