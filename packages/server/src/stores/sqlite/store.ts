// The SQLite store: heads and hot events in memory, segments on disk behind them. Writing is group-commit.ts,
// starting is recover.ts; here is where the parts meet, and what is read.

import { existsSync, statfsSync, statSync } from "node:fs";
import { idSource, limits, RunwireError, type StoredEvent } from "@runwire/protocol";
import type { Clock } from "../../clock.js";
import { feedLog } from "../../log/feeds.js";
import { type Head, isEnded } from "../../log/head.js";
import { waitingIn } from "../../log/inbox.js";
import { isFeedLog, weightOf } from "../../log/record.js";
import { nothing, stretchOf } from "../../log/stretch.js";
import { runMap } from "../../run-map.js";
import type { RunKey, RunQuery, Session, Store, StoreLevels, StoreObserver } from "../../store.js";
import { ageClock } from "./age-clock.js";
import { keptAllowances } from "./allowances.js";
import { catalogue } from "./catalogue.js";
import { compaction } from "./compaction.js";
import { endedTrees } from "./ended.js";
import { eraser } from "./erase.js";
import { keptGrants } from "./grants.js";
import { groupCommit } from "./group-commit.js";
import { hotIndex } from "./hot.js";
import { lockFile } from "./lock.js";
import type { Durability } from "./open.js";
import { metaValue, prepareFile } from "./prepare.js";
import { openReader, type Reader } from "./reader.js";
import { recover } from "./recover.js";
import type { Write } from "./schema.js";
import { segmentReader } from "./segment-reader.js";
import { watch } from "./watch.js";
import { type Writer, writerThread } from "./writer.js";

export interface SqliteOptions {
  readonly path: string;
  readonly durability: Durability;
  readonly clock: Clock;
  /** Hot events and bytes after which the oldest are compacted. */
  readonly hotEventsMax?: number;
  readonly hotBytesMax?: number;
  readonly observe?: StoreObserver;
  /** Who writes; a thread of its own by default. */
  readonly openWriter?: (path: string, durability: Durability) => Writer;
}

/** Cuts of the hot part fall at multiples of this, so that readers share them. */
const cutEvents = 512;
/** The first turn nearly always has the title that is looked for. */
const turnsAtOnce = 10;
const pruneEveryMs = 10 * 60 * 1000;
/** The age clock, of which a crash may lose this much. */
const saveEveryMs = 60 * 1000;

export function sqliteStore(options: SqliteOptions): Store {
  const { path } = options;
  const unlock = lockFile(path);
  let reader: Reader | undefined;
  try {
    prepareFile(path, options.durability, options.clock);
    reader = openReader(path, options.observe?.readFailed);
    return openStore(options, reader, unlock);
  } catch (error) {
    reader?.close();
    unlock();
    throw error instanceof RunwireError ? error.at(path) : error;
  }
}

function openStore(options: SqliteOptions, reader: Reader, unlock: () => void): Store {
  const { path, durability, clock } = options;
  const runs = catalogue(reader);
  const segments = segmentReader(reader);
  const hot = hotIndex();
  const ids = idSource(Math.random);
  // Every live run's head, and those of ended runs that still have hot events.
  const heads = runMap<Head>();
  const headOf = (tenant: string, log: string): Head | undefined =>
    heads.get(tenant, log) ?? (commits.isArriving(tenant, log) ? undefined : runs.head(tenant, log));
  const lastRow = recover({ reader, hot, heads, ids });
  const watched = watch(clock, heads);
  for (const head of heads.values()) watched.see(head);
  const writer = (options.openWriter ?? writerThread)(path, durability);
  let heard: (log: RunKey) => void = () => {};
  let unreferred: (tenant: string, refs: readonly string[]) => Promise<void> = async () => {};
  let erased: (roots: readonly RunKey[]) => Promise<void> = async () => {};
  const age = ageClock(clock, metaValue(reader, "age"));
  const ended = endedTrees(reader, hot, age);
  const compact = compaction({
    hot,
    segments,
    heads,
    hotEventsMax: options.hotEventsMax ?? 50_000,
    hotBytesMax: options.hotBytesMax ?? 16 * 1024 * 1024,
  });
  const commits = groupCommit({
    clock,
    age,
    ids,
    heads,
    hot,
    watch: watched,
    writer,
    compact,
    headOf,
    isErased: runs.isErased,
    createdUnder: runs.createdUnder,
    lastRow,
    observe: options.observe,
    moved: ({ run }) => heard({ tenant: run.tenant, run_id: run.run_id }),
  });
  const erasing = eraser({
    clock,
    commits,
    runs,
    hot,
    heads,
    headOf,
    watch: watched,
    writer,
    compact,
    moved: (log) => heard(log),
    unreferred: (tenant, refs) => unreferred(tenant, refs),
    erased: (roots) => erased(roots),
  });
  let prunedMs = clock.monotonic();
  let savedMs = prunedMs;

  /** Roots below the cursor, newest first, a page at a time. */
  function* roots(tenant: string, query: RunQuery): Generator<Head> {
    let below = query.cursor ?? "\uffff";
    for (;;) {
      const page = runs.roots(tenant, query, below);
      for (const stored of page) {
        below = stored.run.run_id;
        if (!commits.isArriving(tenant, below)) yield heads.get(tenant, below) ?? stored;
      }
      if (page.length < query.limit) return;
    }
  }

  function sessionOf(tenant: string, session_id: string, limit: number): Session | undefined {
    const turns: Head[] = [];
    for (const head of roots(tenant, { session_id, limit })) if (turns.push(head) === limit) break;
    if (turns.length === 0) return undefined;
    const turns_total = runs.turnsTotal(tenant, session_id) - commits.turnsArriving(tenant, session_id);
    return { session_id, title: firstTitle(tenant, session_id), turns: turns.reverse(), turns_total };
  }

  function firstTitle(tenant: string, session_id: string): string | null {
    for (let above = ""; ; ) {
      const turns = runs.turns(tenant, session_id, turnsAtOnce, above);
      for (const { run, title: stored } of turns) {
        const title = heads.get(tenant, run.run_id)?.title ?? stored;
        if (title !== null) return title;
        above = run.run_id;
      }
      if (turns.length < turnsAtOnce) return null;
    }
  }

  const headFor = ({ tenant, run_id }: RunKey): Head | undefined => headOf(tenant, run_id);

  return {
    append: ({ tenant }, decide) => commits.append(tenant, decide),

    async read(key, view, after, bytesMax) {
      const { tenant, run_id } = key;
      // Whoever has far to go lets others come first: what is in memory would be read to its end in one turn of the loop.
      let head = headFor(key);
      if ((head?.views[view].pos ?? 0) - after > cutEvents) {
        await new Promise((resolve) => setImmediate(resolve));
        head = headFor(key);
      }
      if (head === undefined || after >= head.views[view].pos) return nothing;
      if (isFeedLog(run_id)) {
        const entries = runs.feedEvents(tenant, run_id, after, cutEvents, bytesMax);
        // Whoever is that far behind what is kept begins anew, and is told so.
        return entries[0]?.pos === after + 1 ? stretchOf(entries) : nothing;
      }
      const events = hot.events(tenant, run_id, view);
      const first = events[0]?.pos ?? head.views[view].pos + 1;
      if (after + 1 < first) return segments.read(tenant, run_id, view, after);
      return stretchOf(cut(events, after + 1 - first, after, bytesMax));
    },

    head: async (key) => headFor(key),
    isErased: async ({ tenant, run_id }) => runs.isErased(tenant, run_id),

    async posOfSeq(key, view, seq) {
      const { tenant, run_id } = key;
      const head = headFor(key);
      if (head === undefined) return 0;
      const events = hot.events(tenant, run_id, view);
      const first = events[0];
      if (first === undefined || first.seq >= seq) {
        const cold = segments.posOfSeq(tenant, run_id, view, seq);
        if (cold !== undefined) return cold;
      }
      return events[lowestWithSeq(events, seq)]?.pos ?? head.views[view].pos;
    },

    async listRuns(tenant, query) {
      const found: Head[] = [];
      for (const head of roots(tenant, query)) {
        if (query.state !== undefined && head.state !== query.state) continue;
        if (found.push(head) === query.limit) return { heads: found, next: head.run.run_id };
      }
      return { heads: found, next: null };
    },

    session: async (tenant, session_id, limit) => sessionOf(tenant, session_id, limit),

    async listSessions(tenant, { limit, cursor = "\uffff" }) {
      const page = runs.sessions(tenant, limit, cursor);
      const next = page.length < limit ? null : (page.at(-1)?.run_id ?? null);
      return { sessions: page.flatMap(({ session_id }) => sessionOf(tenant, session_id, 1) ?? []), next };
    },

    liveRuns: async () =>
      [...heads.values()]
        .filter((head) => !isFeedLog(head.run.run_id) && !isEnded(head))
        .map(({ run }) => run),

    async inbox(tenant, limit) {
      // All of it in one turn of the loop: the items are those of the position.
      const all = [...watched.waiting(tenant)].flatMap(({ run_id }) => {
        const head = heads.get(tenant, run_id);
        return head === undefined ? [] : waitingIn(head, heads.get(tenant, head.run.root_id)?.title ?? null);
      });
      all.sort((a, b) => (a.since < b.since ? -1 : 1));
      const items = all.slice(0, limit).map(({ item }) => item);
      const pos = heads.get(tenant, feedLog(tenant, "inbox"))?.views.default.pos ?? 0;
      return { pos, items, total: all.length };
    },

    async tree(key) {
      const head = headFor(key);
      if (head === undefined) return [];
      const { tenant } = key;
      return runs.tree(tenant, head.run.root_id).filter(({ run_id }) => !commits.isArriving(tenant, run_id));
    },

    eraseTree: (root) => erasing.eraseTrees([root]),
    eraseTrees: erasing.eraseTrees,
    dropFullViews: erasing.dropFullViews,

    endedTrees: async (tenant, query) => ended.trees(tenant, query),
    endedMs: async ({ tenant, run_id }) => ended.agoMs(tenant, run_id),
    tenants: async (after, limit) => ended.tenants(after, limit),
    tenantSettings: async (tenant) => ended.settings(tenant),
    setTenantSettings: (tenant, settings) =>
      commits.also([
        settings === null ? ["dropTenant", tenant] : ["setTenant", tenant, JSON.stringify(settings)],
      ]),

    ...keptAllowances(reader, commits.also),

    blob: async (tenant, ref) => runs.blob(tenant, ref),

    async keepSnapshot(key, view, pos, transcriptText) {
      if (headFor(key) !== undefined)
        await writer.write([["keepSnapshot", view, pos, transcriptText, key.tenant, key.run_id]]);
    },
    snapshotBefore: async (key, view, pos) =>
      headFor(key) === undefined ? undefined : runs.snapshotBefore(key.tenant, key.run_id, view, pos),

    grants: keptGrants(reader, commits.also, clock),

    oldest: async ({ tenant, run_id }) => (isFeedLog(run_id) ? runs.oldestOfFeed(tenant, run_id) : 1),

    async prune() {
      const now = clock.monotonic();
      if (now - savedMs >= saveEveryMs) {
        savedMs = now;
        await commits.also([age.save()]);
        await erasing.finish();
      }
      if (now - prunedMs < pruneEveryMs) return;
      prunedMs = now;
      const before = new Date(clock.now() - limits.feedAgeMs).toISOString();
      const feeds = [...heads.values()].flatMap(({ run: { tenant, run_id }, views }): Write[] => {
        const { pos } = views.default;
        if (!isFeedLog(run_id)) return [];
        return [["pruneFeed", tenant, run_id, pos, pos - limits.feedEntriesMax, before]];
      });
      await commits.also([...feeds, ["pruneGrants", clock.now()]]);
    },

    renew(key) {
      // Whoever writes a child is there for its ancestors too, and their leases are their children's.
      const root_id = headFor(key)?.run.root_id;
      if (root_id !== undefined) watched.renew(heads.get(key.tenant, root_id));
    },
    due: async () => watched.due(),

    onMoved(hear) {
      heard = hear;
    },
    onUnreferred(hear) {
      unreferred = hear;
    },
    onErased(hear) {
      erased = hear;
    },

    levels(): StoreLevels {
      const isThere = existsSync(path);
      return {
        writing: isThere ? writer.condition : "broken",
        runsLive: watched.liveRuns(),
        appendsWaiting: commits.waiting,
        hotEvents: hot.records,
        hotBytes: hot.bytes,
        databaseBytes: bytesOf(path),
        walBytes: bytesOf(`${path}-wal`),
        diskFreeBytes: isThere ? freeBytes(path) : 0,
      };
    },

    async close() {
      await commits.finish();
      // On a full disk some age is lost: what is kept is kept a little longer.
      await writer.write([age.save()]).catch(() => {});
      await writer.close();
      reader.close();
      unlock();
    },
  };
}

function freeBytes(path: string): number {
  const { bavail, bsize } = statfsSync(path);
  return bavail * bsize;
}

function bytesOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
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
