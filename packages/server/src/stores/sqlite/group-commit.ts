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
import { type Head, isEnded, type RunRecord } from "../../log/head.js";
import { isFeed, type Record } from "../../log/record.js";
import type { Compaction, CompactionStep } from "./compaction.js";
import type { Hot } from "./hot.js";
import type { Write } from "./schema.js";
import type { Watch } from "./watch.js";
import type { Writer } from "./writer.js";

export interface GroupCommitParts {
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly heads: Map<string, Head>;
  readonly hot: Hot;
  readonly watch: Watch;
  readonly writer: Writer;
  readonly compact: Compaction;
  /** A head of any run, live or not. */
  readonly headOf: (log: string) => Head | undefined;
  readonly isErased: (run_id: string) => boolean;
  /** The last hot row that was ever given out. */
  readonly lastRow: number;
  readonly moved: (head: Head) => void;
}

export interface GroupCommit {
  append<T>(tenant: string, decide: (commit: Commit) => T): Promise<T>;
  /** Runs alone, between two batches. */
  exclusively(job: () => Promise<void>): Promise<void>;
  /** Takes no more, and resolves when the last batch is written. */
  finish(): Promise<void>;
}

interface Waiting {
  readonly tenant: string;
  readonly decide: (commit: Commit) => unknown;
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

/** What a batch came to: everything that is written and installed together. */
interface Batch {
  readonly records: Record[];
  readonly created: RunRecord[];
  /** Heads as this batch leaves them. */
  readonly fresh: Map<string, Head>;
  /** Of these, the ones that are stored themselves. */
  readonly kept: Set<string>;
  readonly decided: { readonly of: Waiting; readonly value: unknown }[];
}

/** After a step of compaction that failed. */
const compactPauseMs = 10_000;

export function groupCommit(parts: GroupCommitParts): GroupCommit {
  const { clock, ids, heads, hot, watch, writer, compact, headOf, isErased, moved } = parts;
  let { lastRow } = parts;
  let waiting: Waiting[] = [];
  const jobs: (() => Promise<void>)[] = [];
  let working: Promise<void> | undefined;
  let closed = false;
  let compactAfterMs = 0;

  const compactionIsDue = (): boolean => clock.monotonic() >= compactAfterMs && compact.isDue();

  function work(): void {
    if (working !== undefined || closed) return;
    if (waiting.length === 0 && jobs.length === 0 && !compactionIsDue()) return;
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
    waiting = [];
    const batch = decideAll(asked);
    const asOf = lastRow + batch.records.length;
    let step: CompactionStep | undefined;
    try {
      step = await write(batch, asOf);
    } catch (error) {
      for (const { of } of batch.decided) of.reject(error);
      return;
    }
    for (const [log, head] of batch.fresh) {
      heads.set(log, head);
      watch.see(head);
    }
    for (const record of batch.records) {
      lastRow += 1;
      hot.add(lastRow, heads.get(record.by)?.run.root_id ?? record.by, record);
    }
    step?.done();
    for (const { of, value } of batch.decided) of.resolve(value);
    for (const head of batch.fresh.values()) moved(head);
  }

  function decideAll(asked: readonly Waiting[]): Batch {
    const batch: Batch = { records: [], created: [], fresh: new Map(), kept: new Set(), decided: [] };
    const { fresh } = batch;
    const nowMs = clock.now();
    const monotonicMs = clock.monotonic();
    const now = (log: string): Head | undefined => fresh.get(log) ?? headOf(log);
    const isTaken = (run_id: string): boolean => now(run_id) !== undefined || isErased(run_id);
    // Whoever wrote to it in this batch has renewed it.
    const leaseLost = (run_id: string): boolean => !fresh.has(run_id) && watch.leaseLost(run_id, monotonicMs);
    for (const of of asked) {
      const mine = (log: string): Head | undefined => {
        const head = now(log);
        return head?.run.tenant === of.tenant ? head : undefined;
      };
      const draft = draftwork({ nowMs, ids, headOf: mine, isTaken, leaseLost });
      try {
        const value = of.decide(draft.commit);
        for (const record of draft.records) batch.records.push(record);
        batch.created.push(...draft.created);
        for (const log of draft.kept) batch.kept.add(log);
        for (const [log, head] of draft.heads) {
          // An ended run is stored as such, with its head, in the commit that ends it.
          if (isEnded(head) && !isEnded(now(log) ?? { ...head, state: null })) batch.kept.add(log);
          fresh.set(log, head);
        }
        batch.decided.push({ of, value });
      } catch (error) {
        of.reject(error);
      }
    }
    return batch;
  }

  /** Writes a batch and, where one is due, a step of compaction with it. A step that fails fails alone. */
  async function write(batch: Batch, asOf: number): Promise<CompactionStep | undefined> {
    const list = writesOf(batch, lastRow + 1, asOf);
    if (compactionIsDue()) {
      try {
        const step = compact.step((log) => batch.fresh.get(log) ?? headOf(log), asOf);
        if (step !== undefined) {
          await writer.write([...list, ...step.writes]);
          return step;
        }
      } catch {
        // No room for it, or a row that cannot be read: what is hot stays hot, where it is as safe.
        compactAfterMs = clock.monotonic() + compactPauseMs;
      }
    }
    if (list.length > 0) await writer.write(list);
    return undefined;
  }

  return {
    append<T>(tenant: string, decide: (commit: Commit) => T): Promise<T> {
      if (closed) return Promise.reject(new RunwireError("KAI-STREAM-LEAVING-0001"));
      return new Promise<T>((resolve, reject) => {
        waiting.push({ tenant, decide, resolve: resolve as (value: unknown) => void, reject });
        work();
      });
    },
    exclusively: (job) =>
      new Promise((resolve, reject) => {
        jobs.push(() => job().then(resolve, reject));
        work();
      }),
    async finish() {
      while (waiting.length > 0 || working !== undefined) await working;
      closed = true;
    },
  };
}

function writesOf(
  { records, created, fresh, kept }: Batch,
  firstRow: number,
  asOf: number,
): readonly Write[] {
  const list: Write[] = created.map(addRun);
  for (const [i, record] of records.entries()) {
    list.push(addHot(firstRow + i, record));
    for (const place of record.places) if (isFeed(place)) list.push(addFeed(record, place));
    for (const { ref, media_type, bytes } of record.blobs) {
      const { tenant, root_id } = (fresh.get(record.by) as Head).run;
      list.push(["addBlobRef", tenant, ref, root_id, media_type, bytes]);
    }
  }
  for (const log of kept) {
    const head = fresh.get(log);
    if (head === undefined) continue;
    list.push(["keepHead", log, asOf, JSON.stringify(head)]);
    if (isEnded(head)) list.push(["endRun", head.state, log]);
  }
  return list;
}

function addRun(run: RunRecord): Write {
  const { run_id, tenant, root_id, parent_id, session_id, agent } = run;
  return ["addRun", run_id, tenant, root_id, parent_id, session_id, agent, JSON.stringify(run)];
}

function addHot(row: number, record: Record): Write {
  const { id, ts, type, by, payloadText, scopeText, covers, producer } = record;
  const places = record.places
    .map((p) => `["${p.log}",${p.defaultPos},${p.defaultSeq},${p.fullPos},${p.fullSeq}]`)
    .join(",");
  const mark =
    producer === null ? null : JSON.stringify([producer.log, producer.id, producer.epoch, producer.seq]);
  return ["addHot", row, id, ts, type, by, payloadText, scopeText, `[${places}]`, covers, mark];
}

function addFeed({ id, ts, type, by, payloadText }: Record, place: Record["places"][number]): Write {
  return ["addFeed", place.log, place.defaultPos, place.defaultSeq, id, ts, type, by, payloadText];
}
