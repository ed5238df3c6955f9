// Group commit: whatever has come is decided in order, and is written in one transaction.
//
//   append ─ waits ─▶ decide, against the heads and all that is decided and not yet stored
//                  ─▶ gather while the batch before is on its way to the disk
//                  ─▶ one transaction on the writer thread (fsync)
//                  ─▶ install heads and hot events, hand the next batch over, answer, ring
//
// So a flush is paid once per batch, and neither the disk nor whoever decides waits for the other. What gathers rests
// on the batch that is being written: where that fails, it is decided anew. And nobody is refused because of something
// that is not stored: a refusal is told with the batch that it was decided in.

import { RunwireError } from "@runwire/protocol";
import type { Clock } from "../../clock.js";
import type { Commit } from "../../log/commit.js";
import type { Head } from "../../log/head.js";
import type { RunRecord } from "../../log/run-record.js";
import type { RunMap } from "../../run-map.js";
import { InDoubt, type StoreObserver } from "../../store.js";
import type { AgeClock } from "./age-clock.js";
import { type Batch, changesLogs, writesOf } from "./batch.js";
import type { Compaction, CompactionStep, HeadOf } from "./compaction.js";
import {
  type DecidingParts,
  decide,
  type Gathering,
  isDecided,
  isEmpty,
  newGathering,
  type OtherRows,
  type Waiting,
} from "./gathering.js";
import type { Hot } from "./hot.js";
import { type HotRow, hotRows } from "./hot-row.js";
import type { Write } from "./schema.js";
import type { Writer } from "./writer.js";

export interface GroupCommitParts extends DecidingParts {
  readonly clock: Clock;
  readonly age: AgeClock;
  readonly heads: RunMap<Head>;
  readonly hot: Hot;
  readonly writer: Writer;
  readonly compact: Compaction;
  /** The last hot row that was ever given out. */
  readonly lastRow: number;
  readonly moved: (head: Head) => void;
  readonly observe?: StoreObserver | undefined;
}

export interface GroupCommit {
  /** Appends that wait for the next batch. */
  readonly waiting: number;
  /** Whether a run is created by a batch that is being written, or that nobody knows to be stored. */
  isArriving(tenant: string, run_id: string): boolean;
  /** Those of these runs that are turns of a session. */
  turnsArriving(tenant: string, session_id: string): readonly string[];
  append<T>(tenant: string, decide: (commit: Commit) => T): Promise<T>;
  /** Writes rows that belong to no log, together with the next batch. None of them may break a rule of its table. */
  also(list: readonly Write[]): Promise<void>;
  /** Runs alone, between two batches, and is told the last hot row that was given out. */
  exclusively(job: (asOf: number) => Promise<void>): Promise<void>;
  /** Takes no more, and resolves when the last batch is written. */
  finish(): Promise<void>;
}

/** After a step of compaction that failed. */
const compactPauseMs = 10_000;

export function groupCommit(parts: GroupCommitParts): GroupCommit {
  const { clock, age, heads, hot, watch, writer, compact, headOf, moved, observe } = parts;
  let { lastRow } = parts;
  let waiting: Waiting[] = [];
  let others: OtherRows[] = [];
  let gathering = newGathering();
  let writing: Gathering | undefined;
  /** Is stored, and nobody has been told yet. */
  let untold: Gathering | undefined;
  /** May be stored or not: who reads the file may see what the next start does not. Nothing is written after it. */
  let doubtful: Gathering | undefined;
  const jobs: (() => Promise<void>)[] = [];
  let isAlone = false;
  let isCalled = false;
  let closed = false;
  let rest = (): void => {};
  let compactAfterMs = 0;

  const compactionIsDue = (): boolean => clock.monotonic() >= compactAfterMs && compact.isDue();

  const isAtRest = (): boolean =>
    writing === undefined &&
    !isAlone &&
    jobs.length === 0 &&
    waiting.length === 0 &&
    others.length === 0 &&
    isEmpty(gathering);

  function work(): void {
    if (isCalled) return;
    isCalled = true;
    // After the poll phase: everything that arrived in this turn of the loop is decided together.
    setImmediate(() => {
      isCalled = false;
      turn();
    });
  }

  /** Runs that the file may know, and nobody else may. */
  function arriving(): readonly RunRecord[] {
    return [...(writing?.created ?? []), ...(doubtful?.created ?? [])];
  }

  function turn(): void {
    if (closed || isAlone) return;
    gather();
    if (writing !== undefined) return;
    const job = isEmpty(gathering) ? jobs.shift() : undefined;
    if (job !== undefined) {
      isAlone = true;
      void job().then(() => {
        isAlone = false;
        work();
      });
    } else if (!isEmpty(gathering) || compactionIsDue()) void flush();
    else if (isAtRest()) rest();
  }

  /** Decides what waits. A job changes what decisions rest on, so none is made while one is to run. */
  function gather(): void {
    if (jobs.length > 0) return;
    const asked = waiting;
    waiting = [];
    for (const rows of others.splice(0)) {
      gathering.also.push(rows);
      for (const row of rows.list) gathering.others.push(row);
    }
    if (writer.condition === "broken") {
      // Refusals rest on what is stored as answers do, and nobody knows that any more. The writer says why.
      writer.write([]).catch((why: unknown) => {
        for (const { reject } of asked) reject(why);
      });
      return;
    }
    const nowMs = clock.now();
    for (const of of asked) decide(of, { gathering, writing, untold }, parts, nowMs);
  }

  async function flush(): Promise<void> {
    const batch = gathering;
    gathering = newGathering();
    writing = batch;
    const { records, fresh, asked, also } = batch;
    const rows = hotRows(records, lastRow + 1, ({ tenant, by }) => fresh.get(tenant, by)?.run.root_id ?? by);
    const asOf = lastRow + rows.length;
    const beganMs = clock.monotonic();
    let step: CompactionStep | undefined;
    try {
      step = await write(writesOf(batch, rows, asOf, age.now()), batch, rows, asOf);
    } catch (error) {
      fail(batch, error);
      return;
    }
    // One that stored nothing, like a tick with nothing due, is none.
    if (changesLogs(batch)) {
      observe?.committed({
        appends: asked.filter(isDecided).length,
        events: records.length,
        waitedMs: beganMs - (asked[0]?.of.sinceMs ?? beganMs),
        writeMs: clock.monotonic() - beganMs,
      });
    }
    writing = undefined;
    for (const head of fresh.values()) {
      heads.set(head.run.tenant, head.run.run_id, head);
      watch.see(head);
    }
    for (const row of rows) hot.add(row);
    lastRow = asOf;
    step?.done();
    // The next one first: telling everybody takes its time, and the disk is free.
    untold = batch;
    gather();
    untold = undefined;
    if (!isEmpty(gathering)) void flush();
    for (const { resolve } of also) resolve();
    for (const one of asked) {
      if (isDecided(one)) one.of.resolve(one.value);
      else one.of.reject(one.error);
    }
    for (const head of fresh.values()) moved(head);
    work();
  }

  function fail(batch: Gathering, error: unknown): void {
    observe?.commitFailed(error);
    // What was decided after it rests on it, and so does whom it has refused.
    const again = [...batch.asked.filter((one) => !isDecided(one)), ...gathering.asked];
    waiting = [...again.map(({ of }) => of), ...waiting];
    others = [...gathering.also, ...others];
    gathering = newGathering();
    writing = undefined;
    if (error instanceof InDoubt) doubtful = batch;
    for (const { reject } of batch.also) reject(error);
    for (const { of } of batch.asked.filter(isDecided)) of.reject(error);
    work();
  }

  /** Writes a batch and, where one is due, a step of compaction with it. A step that fails fails alone. */
  async function write(
    list: readonly Write[],
    batch: Batch,
    rows: readonly HotRow[],
    asOf: number,
  ): Promise<CompactionStep | undefined> {
    if (compactionIsDue()) {
      let step: CompactionStep | undefined;
      try {
        const headAfter: HeadOf = (tenant, log) => batch.fresh.get(tenant, log) ?? headOf(tenant, log);
        step = compact.step(headAfter, asOf, rows);
        if (step !== undefined) {
          await writer.write([...list, ...step.writes]);
          return step;
        }
      } catch (error) {
        observe?.compactionFailed(error);
        // Without the step it would only be refused: whether it is stored is what nobody knows.
        if (error instanceof InDoubt) throw error;
        if (writer.condition === "ok") step?.failed();
      }
      // No room for it, or a row that cannot be read: what is hot stays hot, where it is as safe.
      compactAfterMs = clock.monotonic() + compactPauseMs;
    }
    // One that writes nothing rests on what is stored, of which nobody knows any more once the writer is broken.
    if (list.length > 0 || writer.condition === "broken") await writer.write(list);
    return undefined;
  }

  return {
    get waiting() {
      return waiting.length + gathering.asked.length;
    },
    isArriving: (tenant, run_id) => arriving().some((run) => run.run_id === run_id && run.tenant === tenant),
    turnsArriving: (tenant, session_id) =>
      arriving()
        .filter((run) => run.parent_id === null && run.session_id === session_id && run.tenant === tenant)
        .map(({ run_id }) => run_id),
    append<T>(tenant: string, decide: (commit: Commit) => T): Promise<T> {
      if (closed) return Promise.reject(new RunwireError("KAI-STREAM-LEAVING-0001"));
      return new Promise<T>((resolve, reject) => {
        const sinceMs = clock.monotonic();
        waiting.push({ tenant, sinceMs, decide, resolve: resolve as (value: unknown) => void, reject });
        work();
      });
    },
    also(list) {
      if (closed) return Promise.reject(new RunwireError("KAI-STREAM-LEAVING-0001"));
      return new Promise((resolve, reject) => {
        others.push({ list, resolve, reject });
        work();
      });
    },
    exclusively(job) {
      if (closed) return Promise.reject(new RunwireError("KAI-STREAM-LEAVING-0001"));
      return new Promise((resolve, reject) => {
        jobs.push(() => job(lastRow).then(resolve, reject));
        work();
      });
    },
    finish() {
      return new Promise((resolve) => {
        rest = () => {
          closed = true;
          resolve();
        };
        if (isAtRest()) rest();
      });
    },
  };
}
