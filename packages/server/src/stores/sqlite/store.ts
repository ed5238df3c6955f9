// The SQLite store: heads and hot events in memory, one writer thread, one transaction for all that waits.
//
//   append ─ waits ─▶ decide all, in order, against the heads and what this batch wrote so far
//                  ─▶ one transaction on the writer thread (fsync)
//                  ─▶ install heads and hot events, ring, answer
//
// While a batch is on its way to the disk the next one gathers, so a flush is paid once per batch.

import type { DatabaseSyncInstance } from "@photostructure/sqlite";
import { idSource, limits, RunwireError, type StoredEvent } from "@runwire/protocol";
import type { Clock } from "../../clock.js";
import { type Commit, draftwork } from "../../log/commit.js";
import { type Head, isEnded, type RunRecord } from "../../log/head.js";
import { isFeed, type Record, weightOf } from "../../log/record.js";
import type { DueRun, Moved, RunKey, Store } from "../../store.js";
import { catalogue } from "./catalogue.js";
import { type CompactionStep, compaction } from "./compaction.js";
import { hotIndex } from "./hot.js";
import { lockFile } from "./lock.js";
import { type Durability, openDatabase, openReader } from "./open.js";
import { recover } from "./recover.js";
import { formatVersion, schema, type Write } from "./schema.js";
import { segmentReader } from "./segment-reader.js";
import { writerThread } from "./writer.js";

export interface SqliteOptions {
  readonly path: string;
  readonly durability: Durability;
  readonly clock: Clock;
  /** Hot rows and bytes after which the oldest are compacted. */
  readonly hotRowsMax?: number;
  readonly hotBytesMax?: number;
}

interface Waiting {
  readonly tenant: string;
  readonly decide: (commit: Commit) => unknown;
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

/** Cuts of the hot part fall at multiples of this, so that readers share them. */
const cutEvents = 512;
const pruneEveryMs = 10 * 60 * 1000;
/** After a step that failed. */
const compactPauseMs = 10_000;

export function sqliteStore(options: SqliteOptions): Store {
  const { path, durability } = options;
  const unlock = lockFile(path);
  let reader: DatabaseSyncInstance | undefined;
  try {
    prepareFile(path, durability);
    reader = openReader(path);
    return openStore(options, reader, unlock);
  } catch (error) {
    reader?.close();
    unlock();
    throw error;
  }
}

function openStore(options: SqliteOptions, reader: DatabaseSyncInstance, unlock: () => void): Store {
  const { path, durability, clock } = options;
  const runs = catalogue(reader);
  const segments = segmentReader(reader);
  const hot = hotIndex();
  const ids = idSource(Math.random);
  // Every live run's head, and those of ended runs that still have hot events.
  const heads = new Map<string, Head>();
  let lastRow = recover({ reader, hot, heads, ids });
  const writer = writerThread(path, durability);
  const compact = compaction({
    hot,
    segments,
    heads,
    hotRowsMax: options.hotRowsMax ?? 50_000,
    hotBytesMax: options.hotBytesMax ?? 16 * 1024 * 1024,
  });
  const leases = new Map<string, number>();
  /** Runs with pending deltas or requests that expire. */
  const watched = new Set<string>();
  let heard: (moved: Moved) => void = () => {};
  let waiting: Waiting[] = [];
  const jobs: (() => Promise<void>)[] = [];
  let working: Promise<void> | undefined;
  let closed = false;
  let compactAfterMs = 0;
  let prunedMs = clock.monotonic();

  // A server that owns its store alone starts every lease anew.
  for (const [run_id, head] of heads) watch(run_id, head);

  function watch(run_id: string, head: Head): void {
    if (isEnded(head)) {
      leases.delete(run_id);
      watched.delete(run_id);
      return;
    }
    // A new run starts its lease; later ones are renewed by whoever writes it, not by what the server adds.
    if (!leases.has(run_id)) renew(run_id, head);
    const asks = Object.values(head.requests).some(
      ({ status, expires_at }) => status === "pending" && expires_at !== null,
    );
    if (head.groups.length > 0 || asks) watched.add(run_id);
    else watched.delete(run_id);
  }

  /** A parent's producer answers for its children. */
  function renew(run_id: string, head: Head | undefined): void {
    if (head === undefined || !head.run.external || isEnded(head)) return;
    leases.set(run_id, clock.monotonic() + head.run.lease_ms);
    for (const child of head.children) renew(child, heads.get(child));
  }

  const headOf = (log: string): Head | undefined => heads.get(log) ?? runs.head(log);

  function headFor({ tenant, run_id }: RunKey): Head | undefined {
    const head = headOf(run_id);
    return head?.run.tenant === tenant ? head : undefined;
  }

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
    const batch = waiting;
    waiting = [];
    const fresh = new Map<string, Head>();
    const now = (log: string): Head | undefined => fresh.get(log) ?? headOf(log);
    const isTaken = (run_id: string): boolean =>
      now(run_id) !== undefined || runs.tombstone(run_id) !== undefined;
    // Whoever wrote to it in this batch has renewed it.
    const leaseLost = (run_id: string): boolean =>
      !fresh.has(run_id) && (leases.get(run_id) ?? Number.POSITIVE_INFINITY) <= monotonicMs;
    const records: Record[] = [];
    const kept = new Set<string>();
    const created: RunRecord[] = [];
    const decided: { readonly of: Waiting; readonly value: unknown }[] = [];
    const nowMs = clock.now();
    const monotonicMs = clock.monotonic();
    for (const of of batch) {
      const mine = (log: string): Head | undefined => {
        const head = now(log);
        return head?.run.tenant === of.tenant ? head : undefined;
      };
      const draft = draftwork({ nowMs, ids, headOf: mine, isTaken, leaseLost });
      try {
        const value = of.decide(draft.commit);
        records.push(...draft.records);
        created.push(...draft.created);
        for (const log of draft.kept) kept.add(log);
        for (const [log, head] of draft.heads) fresh.set(log, head);
        decided.push({ of, value });
      } catch (error) {
        of.reject(error);
      }
    }
    const firstRow = lastRow + 1;
    const asOf = lastRow + records.length;
    const ended = [...fresh].filter(
      ([log, head]) => isEnded(head) && !isEnded(heads.get(log) ?? { ...head, state: null }),
    );
    for (const [log] of ended) kept.add(log);
    const list: Write[] = [
      ...created.map(addRun),
      ...records.flatMap((record, i) => addRecord(firstRow + i, record)),
      ...ended.map(([log, head]): Write => ["endRun", head.state, log]),
      ...[...kept].map((log): Write => ["keepHead", log, asOf, JSON.stringify(fresh.get(log))]),
    ];
    let step: CompactionStep | undefined;
    try {
      step = await commit(list, now, asOf);
    } catch (error) {
      for (const { of } of decided) of.reject(error);
      return;
    }
    lastRow = asOf;
    for (const [log, head] of fresh) {
      heads.set(log, head);
      watch(log, head);
    }
    for (const [i, record] of records.entries()) {
      hot.add(firstRow + i, heads.get(record.by)?.run.root_id ?? record.by, record);
    }
    step?.done();
    for (const { of, value } of decided) of.resolve(value);
    for (const [log, head] of fresh) heard({ tenant: head.run.tenant, log });
  }

  /** Writes a batch and, where one is due, a step of compaction with it. A step that fails fails alone. */
  async function commit(
    list: readonly Write[],
    now: (log: string) => Head | undefined,
    asOf: number,
  ): Promise<CompactionStep | undefined> {
    if (compactionIsDue()) {
      try {
        const step = compact.step(now, asOf);
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

  function compactionIsDue(): boolean {
    return clock.monotonic() >= compactAfterMs && compact.isDue();
  }

  /** Runs alone, between two batches. */
  function exclusively(job: () => Promise<void>): Promise<void> {
    return new Promise((resolve, reject) => {
      jobs.push(() => job().then(resolve, reject));
      work();
    });
  }

  return {
    append<T>({ tenant }: RunKey, decide: (commit: Commit) => T): Promise<T> {
      if (closed) return Promise.reject(new RunwireError("KAI-STREAM-LEAVING-0001"));
      return new Promise<T>((resolve, reject) => {
        waiting.push({ tenant, decide, resolve: resolve as (value: unknown) => void, reject });
        work();
      });
    },

    async read(key, view, after, bytesMax) {
      const head = headFor(key);
      if (head === undefined || after >= head.views[view].pos) return [];
      if (key.run_id.startsWith("feed:")) return runs.feedEvents(key.run_id, after, cutEvents);
      const events = hot.events(key.run_id, view);
      const first = events[0]?.pos ?? head.views[view].pos + 1;
      if (after + 1 < first) return segments.read(key.run_id, view, after);
      return cut(events, after + 1 - first, after, bytesMax);
    },

    head: async (key) => headFor(key),
    isErased: async ({ tenant, run_id }) => runs.tombstone(run_id)?.tenant === tenant,

    async posOfSeq(key, view, seq) {
      const head = headFor(key);
      if (head === undefined) return 0;
      const events = hot.events(key.run_id, view);
      const first = events[0];
      if (first === undefined || first.seq >= seq) {
        const cold = segments.posOfSeq(key.run_id, view, seq);
        if (cold !== undefined) return cold;
      }
      return events[lowestWithSeq(events, seq)]?.pos ?? head.views[view].pos;
    },

    async listRuns(tenant, query) {
      const found: Head[] = [];
      let below = query.cursor ?? "\uffff";
      for (;;) {
        const page = runs.roots(tenant, query, below);
        for (const stored of page) {
          const head = heads.get(stored.run.run_id) ?? stored;
          below = stored.run.run_id;
          if (query.state !== undefined && head.state !== query.state) continue;
          found.push(head);
          if (found.length === query.limit) return { heads: found, next: below };
        }
        if (page.length < query.limit) return { heads: found, next: null };
      }
    },

    async tree(key) {
      const head = headFor(key);
      return head === undefined ? [] : runs.tree(head.run.root_id);
    },

    eraseTree: (root) =>
      exclusively(async () => {
        // Another tenant's run, and one that is not there, has nothing to erase.
        if (headFor(root) === undefined) return;
        const members = runs.tree(root.run_id);
        const erasedAt = new Date(clock.now()).toISOString();
        const rows = hot.rowsOf(root.run_id);
        await writer.write([
          ["dropHot", JSON.stringify(rows)],
          ...members.flatMap(({ run_id, tenant }): Write[] => [
            ["dropRun", run_id],
            ["dropHead", run_id],
            ["dropSegments", run_id],
            ["dropSnapshots", run_id],
            ["blankFeedOf", run_id],
            ["addTombstone", run_id, tenant, erasedAt],
          ]),
        ]);
        hot.dropTree(root.run_id);
        for (const { run_id } of members) {
          heads.delete(run_id);
          leases.delete(run_id);
          watched.delete(run_id);
          heard({ tenant: root.tenant, log: run_id });
        }
      }),

    async keepSnapshot(key, view, pos, transcriptText) {
      if (headFor(key) !== undefined)
        await writer.write([["keepSnapshot", view, pos, transcriptText, key.run_id]]);
    },
    snapshotBefore: async (key, view, pos) =>
      headFor(key) === undefined ? undefined : runs.snapshotBefore(key.run_id, view, pos),

    oldest: async ({ run_id }) => (run_id.startsWith("feed:") ? runs.oldestOfFeed(run_id) : 1),

    async prune() {
      const now = clock.monotonic();
      if (now - prunedMs < pruneEveryMs) return;
      prunedMs = now;
      const before = new Date(clock.now() - limits.feedAgeMs).toISOString();
      const list = [...heads].flatMap(([log, { views }]): Write[] => {
        const { pos } = views.default;
        return log.startsWith("feed:") ? [["pruneFeed", log, pos, pos - limits.feedEntriesMax, before]] : [];
      });
      if (list.length > 0) await writer.write(list);
    },

    renew(key) {
      // Whoever writes a child is there for its ancestors too, and their leases are their children's.
      const root_id = headFor(key)?.run.root_id;
      if (root_id !== undefined) renew(root_id, heads.get(root_id));
    },

    async due() {
      const found: DueRun[] = [];
      const now = clock.now();
      const monotonic = clock.monotonic();
      for (const [run_id, untilMs] of leases) {
        const head = heads.get(run_id);
        if (head !== undefined && untilMs <= monotonic) found.push({ why: "lease", key: keyOf(head) });
      }
      for (const run_id of watched) {
        const head = heads.get(run_id);
        if (head === undefined) continue;
        const quietMs = now - head.tickMs;
        if (head.groups.length > 0 && (quietMs < 0 || quietMs >= limits.tickMs))
          found.push({ why: "deltas", key: keyOf(head) });
        for (const [request_id, { status, expires_at }] of Object.entries(head.requests)) {
          if (status !== "pending" || expires_at === null || Date.parse(expires_at) > now) continue;
          found.push({ why: "request", key: keyOf(head), request_id });
        }
      }
      return found;
    },

    onMoved(hear) {
      heard = hear;
    },

    async close() {
      while (waiting.length > 0 || working !== undefined) await working;
      closed = true;
      await writer.close();
      reader.close();
      unlock();
    },
  };
}

function prepareFile(path: string, durability: Durability): void {
  const db = openDatabase(path, durability);
  try {
    db.exec(schema);
    const found = db.prepare("SELECT value FROM meta WHERE name = 'format'").get() as
      | { value: string }
      | undefined;
    if (found === undefined)
      db.prepare("INSERT INTO meta(name, value) VALUES ('format', ?)").run(String(formatVersion));
    else if (found.value !== String(formatVersion)) {
      throw new Error(`${path} has format ${found.value}; this server reads format ${formatVersion}`);
    }
  } finally {
    db.close();
  }
}

function addRun(run: RunRecord): Write {
  const { run_id, tenant, root_id, parent_id, session_id, agent } = run;
  return ["addRun", run_id, tenant, root_id, parent_id, session_id, agent, JSON.stringify(run)];
}

function addRecord(row: number, record: Record): Write[] {
  const { id, ts, type, by, payloadText, scopeText, covers, producer } = record;
  const places = record.places
    .map((p) => `["${p.log}",${p.defaultPos},${p.defaultSeq},${p.fullPos},${p.fullSeq}]`)
    .join(",");
  const mark =
    producer === null ? null : JSON.stringify([producer.log, producer.id, producer.epoch, producer.seq]);
  const list: Write[] = [
    ["addHot", row, id, ts, type, by, payloadText, scopeText, `[${places}]`, covers, mark],
  ];
  for (const place of record.places) {
    if (isFeed(place))
      list.push(["addFeed", place.log, place.defaultPos, place.defaultSeq, id, ts, type, by, payloadText]);
  }
  return list;
}

function keyOf({ run: { tenant, run_id } }: Head): RunKey {
  return { tenant, run_id };
}

function cut(
  events: readonly StoredEvent[],
  from: number,
  after: number,
  bytesMax: number,
): readonly StoredEvent[] {
  const end = Math.min(events.length, from + cutEvents - (after % cutEvents));
  let bytes = 0;
  for (let i = from; i < end; i++) {
    bytes += weightOf(events[i] as StoredEvent);
    if (bytes > bytesMax && i > from) return events.slice(from, i);
  }
  return events.slice(from, end);
}

/** The index of the first event with at least this `seq`. */
function lowestWithSeq(events: readonly StoredEvent[], seq: number): number {
  let low = 0;
  let high = events.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((events[middle]?.seq ?? 0) < seq) low = middle + 1;
    else high = middle;
  }
  return low;
}
