// A batch while it gathers: whatever has come is decided in order, each on top of those before it. What a draft has
// decided is taken over as a whole, or it is refused and nothing of it is.

import type { IdSource } from "@runwire/protocol";
import { type Commit, draftwork } from "../../log/commit.js";
import { endsBetween, type Head } from "../../log/head.js";
import type { Record } from "../../log/record.js";
import type { RunRecord } from "../../log/run-record.js";
import { type Batch, changesLogs, type KeptHead, newBatch } from "./batch.js";
import type { HeadOf } from "./compaction.js";
import type { Write } from "./schema.js";
import type { Watch } from "./watch.js";

export interface Waiting {
  readonly tenant: string;
  readonly sinceMs: number;
  readonly decide: (commit: Commit) => unknown;
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

export interface OtherRows {
  readonly list: readonly Write[];
  resolve(): void;
  reject(error: unknown): void;
}

interface Decided {
  readonly of: Waiting;
  readonly value: unknown;
}

interface Refused {
  readonly of: Waiting;
  readonly error: unknown;
}

/** A batch, and who waits for it. */
export interface Gathering extends Batch {
  readonly asked: (Decided | Refused)[];
  readonly also: OtherRows[];
}

/** What decisions rest on, beside the heads that are installed. */
interface Batches {
  readonly gathering: Gathering;
  readonly writing: Gathering | undefined;
  /** Is stored, and nobody has been told yet. */
  readonly untold: Gathering | undefined;
}

export interface DecidingParts {
  readonly ids: IdSource;
  readonly watch: Watch;
  /** A head of any run, live or not. */
  readonly headOf: HeadOf;
  readonly isErased: (tenant: string, run_id: string) => boolean;
  readonly createdUnder: (tenant: string, key: string) => RunRecord | undefined;
}

export function newGathering(): Gathering {
  return { ...newBatch(), asked: [], also: [] };
}

/**
 * Decides one that waits, against the heads, the batch that is being written and what its own batch wrote so far: what
 * it comes to is in `gathering` then.
 */
export function decide(
  of: Waiting,
  { gathering, writing, untold }: Batches,
  parts: DecidingParts,
  nowMs: number,
): void {
  const { tenant } = of;
  const { ids, watch, headOf, isErased, createdUnder } = parts;
  const { records, created, allowed, keyed, born, fresh, kept, asked } = gathering;
  const now = (log: string): Head | undefined =>
    fresh.get(tenant, log) ?? writing?.fresh.get(tenant, log) ?? headOf(tenant, log);
  const bornIn = (batch: Batch | undefined): number => batch?.born.get(tenant) ?? 0;
  const isWritten = (log: string): boolean =>
    fresh.has(tenant, log) || writing?.fresh.has(tenant, log) === true;
  const by = (run_id: string) => (record: Record) => record.by === run_id && record.tenant === tenant;
  const draft = draftwork({
    nowMs,
    ids,
    headOf: now,
    storedHeadOf: (log) => headOf(tenant, log),
    unstoredOf: (run_id) =>
      isWritten(run_id) ? [...(writing?.records ?? []), ...records].filter(by(run_id)) : [],
    isTaken: (run_id) => now(run_id) !== undefined || isErased(tenant, run_id),
    // Whoever has just written to it has renewed it, or does so when told that it is stored.
    leaseLost: (run_id) =>
      !isWritten(run_id) && untold?.fresh.has(tenant, run_id) !== true && watch.leaseLost(tenant, run_id),
    createdUnder: (key) =>
      keyed.get(tenant, key) ?? writing?.keyed.get(tenant, key) ?? createdUnder(tenant, key),
    liveRuns: () => watch.liveRuns(tenant) + bornIn(writing) + bornIn(gathering),
  });
  try {
    const value = of.decide(draft.commit);
    // An ended run is stored as such, with its head, in the commit that ends it. Looked for before anything is taken
    // over: a head that cannot be read, or made a text, refuses this append as a whole.
    const keeping: KeptHead[] = [];
    let ended = 0;
    for (const [log, head] of draft.heads) {
      const ends = endsBetween(now(log), head);
      if (ends) ended += 1;
      if (ends || draft.kept.has(log) || kept.has(tenant, log))
        keeping.push({ head, text: JSON.stringify(head) });
    }
    for (const record of draft.records) records.push(record);
    for (const run of draft.created) {
      created.push(run);
      if (run.idempotency !== null) keyed.set(tenant, run.idempotency.key, run);
    }
    for (const allowance of draft.allowed) allowed.push({ tenant, allowance });
    for (const one of keeping) kept.set(tenant, one.head.run.run_id, one);
    for (const [log, head] of draft.heads) fresh.set(tenant, log, head);
    const more = draft.created.length - ended;
    if (more !== 0) born.set(tenant, bornIn(gathering) + more);
    asked.push({ of, value });
  } catch (error) {
    // Told at once where it rests on nothing that may fail: a disk that fails every batch would keep it for ever.
    if (writing === undefined && !changesLogs(gathering)) of.reject(error);
    else asked.push({ of, error });
  }
}

/** Whether nobody waits for it. */
export function isEmpty({ asked, also }: Gathering): boolean {
  return asked.length === 0 && also.length === 0;
}

export function isDecided(one: Decided | Refused): one is Decided {
  return "value" in one;
}
