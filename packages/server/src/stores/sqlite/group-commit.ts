// Group commit: whatever waits is decided in order and written in one transaction.
//
//   append ─ waits ─▶ decide all, against the heads and what this batch wrote so far
//                  ─▶ one transaction on the writer thread (fsync)
//                  ─▶ install heads and hot events, ring, answer
//
// While a batch is on its way to the disk the next one gathers, so a flush is paid once per batch.

import { type IdSource, RunwireError } from "@runwire/protocol";
import type { Clock } from "../../clock.js";
import { type Commit, draftwork } from "../../log/commit.js";
import { endsBetween, type Head, isEnded } from "../../log/head.js";
import { type Allowance, isFeed, type Place, type Record } from "../../log/record.js";
import type { RunRecord } from "../../log/run-record.js";
import { type RunMap, runMap } from "../../run-map.js";
import type { RunKey, StoreObserver } from "../../store.js";
import type { AgeClock } from "./age-clock.js";
import type { Compaction, CompactionStep, HeadOf } from "./compaction.js";
import type { Hot } from "./hot.js";
import { addHot, type HotRow, hotRows } from "./hot-row.js";
import type { Write } from "./schema.js";
import type { Watch } from "./watch.js";
import type { Writer } from "./writer.js";

export interface GroupCommitParts {
  readonly clock: Clock;
  readonly age: AgeClock;
  readonly ids: IdSource;
  readonly heads: RunMap<Head>;
  readonly hot: Hot;
  readonly watch: Watch;
  readonly writer: Writer;
  readonly compact: Compaction;
  /** A head of any run, live or not. */
  readonly headOf: HeadOf;
  readonly isErased: (tenant: string, run_id: string) => boolean;
  readonly createdUnder: (tenant: string, key: string) => RunRecord | undefined;
  /** The last hot row that was ever given out. */
  readonly lastRow: number;
  readonly moved: (head: Head) => void;
  readonly observe?: StoreObserver | undefined;
}

export interface GroupCommit {
  /** Appends that wait for the next batch. */
  readonly waiting: number;
  /** Whether a run is created by the batch that is being written: the file may know it already, and nobody else may. */
  isArriving(tenant: string, run_id: string): boolean;
  /** How many of these runs are turns of a session. */
  turnsArriving(tenant: string, session_id: string): number;
  append<T>(tenant: string, decide: (commit: Commit) => T): Promise<T>;
  /** Writes rows that belong to no log, together with the next batch. None of them may break a rule of its table. */
  also(list: readonly Write[]): Promise<void>;
  /** Runs alone, between two batches, and is told the last hot row that was given out. */
  exclusively(job: (asOf: number) => Promise<void>): Promise<void>;
  /** Takes no more, and resolves when the last batch is written. */
  finish(): Promise<void>;
}

interface Waiting {
  readonly tenant: string;
  readonly sinceMs: number;
  readonly decide: (commit: Commit) => unknown;
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

interface OtherRows {
  readonly list: readonly Write[];
  resolve(): void;
  reject(error: unknown): void;
}

/** What a batch came to: everything that is written and installed together. */
interface Batch {
  readonly records: Record[];
  readonly allowed: { readonly tenant: string; readonly allowance: Allowance }[];
  readonly created: RunRecord[];
  /** Of these, the ones that were created under a key, by it. */
  readonly keyed: RunMap<RunRecord>;
  /** By how much a tenant has more live runs than before. */
  readonly born: Map<string, number>;
  /** Heads as this batch leaves them. */
  readonly fresh: RunMap<Head>;
  /** Of these, the ones that are stored themselves. */
  readonly kept: RunMap<RunKey>;
  readonly decided: { readonly of: Waiting; readonly value: unknown }[];
}

/** After a step of compaction that failed. */
const compactPauseMs = 10_000;

export function groupCommit(parts: GroupCommitParts): GroupCommit {
  const { clock, age, ids, heads, hot, watch, writer, compact, headOf, isErased, moved, observe } = parts;
  let { lastRow } = parts;
  let waiting: Waiting[] = [];
  let others: OtherRows[] = [];
  let arriving: readonly RunRecord[] = [];
  const jobs: (() => Promise<void>)[] = [];
  let working: Promise<void> | undefined;
  let closed = false;
  let compactAfterMs = 0;

  const compactionIsDue = (): boolean => clock.monotonic() >= compactAfterMs && compact.isDue();

  function work(): void {
    if (working !== undefined || closed) return;
    if (waiting.length === 0 && others.length === 0 && jobs.length === 0 && !compactionIsDue()) return;
    // After the poll phase: everything that arrived in this turn of the loop goes into one transaction.
    working = new Promise((resolve) => {
      setImmediate(async () => {
        await (jobs.shift() ?? flush)();
        working = undefined;
        resolve();
        work();
      });
    });
  }

  async function flush(): Promise<void> {
    const asked = waiting;
    const also = others;
    waiting = [];
    others = [];
    const batch = decideAll(asked);
    const rows = hotRows(
      batch.records,
      lastRow + 1,
      ({ tenant, by }) => batch.fresh.get(tenant, by)?.run.root_id ?? by,
    );
    const asOf = lastRow + rows.length;
    const beganMs = clock.monotonic();
    arriving = batch.created;
    let step: CompactionStep | undefined;
    try {
      const list = writesOf(batch, rows, asOf, age.now());
      for (const { list: more } of also) list.push(...more);
      step = await write(list, batch, rows, asOf);
    } catch (error) {
      arriving = [];
      observe?.commitFailed(error);
      for (const { reject } of also) reject(error);
      for (const { of } of batch.decided) of.reject(error);
      return;
    }
    // One that stored nothing, like a tick with nothing due, is none.
    if (batch.records.length > 0 || batch.kept.values().next().done !== true) {
      observe?.committed({
        appends: batch.decided.length,
        events: batch.records.length,
        waitedMs: beganMs - (asked[0]?.sinceMs ?? beganMs),
        writeMs: clock.monotonic() - beganMs,
      });
    }
    arriving = [];
    for (const head of batch.fresh.values()) {
      heads.set(head.run.tenant, head.run.run_id, head);
      watch.see(head);
    }
    for (const row of rows) hot.add(row);
    lastRow = asOf;
    step?.done();
    for (const { resolve } of also) resolve();
    for (const { of, value } of batch.decided) of.resolve(value);
    for (const head of batch.fresh.values()) moved(head);
  }

  function decideAll(asked: readonly Waiting[]): Batch {
    const batch: Batch = {
      records: [],
      created: [],
      allowed: [],
      keyed: runMap(),
      born: new Map(),
      fresh: runMap(),
      kept: runMap(),
      decided: [],
    };
    const { fresh, kept, keyed, born } = batch;
    const nowMs = clock.now();
    for (const of of asked) {
      const { tenant } = of;
      const now = (log: string): Head | undefined => fresh.get(tenant, log) ?? headOf(tenant, log);
      const keep = (log: string): void => kept.set(tenant, log, { tenant, run_id: log });
      const draft = draftwork({
        nowMs,
        ids,
        headOf: now,
        isTaken: (run_id) => now(run_id) !== undefined || isErased(tenant, run_id),
        // Whoever wrote to it in this batch has renewed it.
        leaseLost: (run_id) => !fresh.has(tenant, run_id) && watch.leaseLost(tenant, run_id),
        createdUnder: (key) => keyed.get(tenant, key) ?? parts.createdUnder(tenant, key),
        liveRuns: () => watch.liveRuns(tenant) + (born.get(tenant) ?? 0),
      });
      try {
        const value = of.decide(draft.commit);
        // An ended run is stored as such, with its head, in the commit that ends it. Looked for before anything is taken
        // over: a head that cannot be read refuses this append as a whole.
        const ended = [...draft.heads].filter(([log, head]) => endsBetween(now(log), head));
        for (const record of draft.records) batch.records.push(record);
        for (const run of draft.created) {
          batch.created.push(run);
          if (run.idempotency !== null) keyed.set(tenant, run.idempotency.key, run);
        }
        for (const allowance of draft.allowed) batch.allowed.push({ tenant, allowance });
        for (const log of draft.kept) keep(log);
        for (const [log] of ended) keep(log);
        for (const [log, head] of draft.heads) fresh.set(tenant, log, head);
        const more = draft.created.length - ended.length;
        if (more !== 0) born.set(tenant, (born.get(tenant) ?? 0) + more);
        batch.decided.push({ of, value });
      } catch (error) {
        of.reject(error);
      }
    }
    return batch;
  }

  /** Writes a batch and, where one is due, a step of compaction with it. A step that fails fails alone. */
  async function write(
    list: readonly Write[],
    batch: Batch,
    rows: readonly HotRow[],
    asOf: number,
  ): Promise<CompactionStep | undefined> {
    if (compactionIsDue()) {
      try {
        const headAfter: HeadOf = (tenant, log) => batch.fresh.get(tenant, log) ?? headOf(tenant, log);
        const step = compact.step(headAfter, asOf, rows);
        if (step !== undefined) {
          await writer.write([...list, ...step.writes]);
          return step;
        }
      } catch (error) {
        observe?.compactionFailed(error);
        // No room for it, or a row that cannot be read: what is hot stays hot, where it is as safe.
        compactAfterMs = clock.monotonic() + compactPauseMs;
      }
    }
    if (list.length > 0) await writer.write(list);
    return undefined;
  }

  return {
    get waiting() {
      return waiting.length;
    },
    isArriving: (tenant, run_id) => arriving.some((run) => run.run_id === run_id && run.tenant === tenant),
    turnsArriving: (tenant, session_id) =>
      arriving.filter(
        (run) => run.parent_id === null && run.session_id === session_id && run.tenant === tenant,
      ).length,
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
    async finish() {
      while (waiting.length > 0 || others.length > 0 || jobs.length > 0 || working !== undefined)
        await working;
      closed = true;
    },
  };
}

function writesOf(
  { records, created, allowed, fresh, kept }: Batch,
  rows: readonly HotRow[],
  asOf: number,
  ageMs: number,
): Write[] {
  const list: Write[] = created.map(addRun);
  for (const row of rows) list.push(addHot(row));
  for (const record of records) {
    for (const place of record.places) if (isFeed(place)) list.push(addFeed(record, place));
    for (const { ref, media_type, bytes } of record.blobs) {
      const { tenant, root_id } = (fresh.get(record.tenant, record.by) as Head).run;
      list.push(["addBlobRef", tenant, ref, root_id, media_type, bytes]);
    }
  }
  for (const { tenant, allowance } of allowed) {
    const { session_id, tool, run_id, approval_id, at } = allowance;
    const { root_id } = (fresh.get(tenant, run_id) as Head).run;
    list.push(["allow", tenant, session_id ?? "", tool, root_id, run_id, approval_id, at]);
  }
  for (const { tenant, run_id } of kept.values()) {
    const head = fresh.get(tenant, run_id);
    if (head === undefined) continue;
    list.push(["keepHead", tenant, run_id, asOf, JSON.stringify(head)]);
    if (isEnded(head)) list.push(["endRun", head.state, ageMs, tenant, run_id]);
  }
  return list;
}

function addRun(run: RunRecord): Write {
  const { run_id, tenant, root_id, parent_id, session_id, agent, idempotency } = run;
  const made_under = idempotency?.key ?? null;
  return ["addRun", tenant, run_id, root_id, parent_id, session_id, agent, made_under, JSON.stringify(run)];
}

function addFeed({ id, ts, type, tenant, by, payloadText }: Record, place: Place): Write {
  const { log, defaultPos, defaultSeq, shown = payloadText } = place;
  return ["addFeed", tenant, log, defaultPos, defaultSeq, id, ts, type, by, shown];
}
