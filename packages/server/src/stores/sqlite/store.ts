// The SQLite store: heads and hot events in memory, segments on disk behind them. Writing is group-commit.ts, reading
// events.ts and lists.ts, starting recover.ts; here is where the parts meet.

import { existsSync, statfsSync, statSync } from "node:fs";
import { idSource, limits, RunwireError } from "@runwire/protocol";
import type { Clock } from "../../clock.js";
import { feedLog } from "../../log/feeds.js";
import { type Head, isEnded } from "../../log/head.js";
import { waitingIn } from "../../log/inbox.js";
import { isFeedLog } from "../../log/record.js";
import { runMap } from "../../run-map.js";
import type { Durability, RunKey, Store, StoreLevels, StoreObserver } from "../../store.js";
import { ageClock } from "./age-clock.js";
import { keptAllowances } from "./allowances.js";
import { catalogue } from "./catalogue.js";
import { compaction } from "./compaction.js";
import { endedTrees } from "./ended.js";
import { eraser } from "./erase.js";
import { events } from "./events.js";
import { keptGrants } from "./grants.js";
import { groupCommit } from "./group-commit.js";
import { hotIndex } from "./hot.js";
import { lists } from "./lists.js";
import { lockFile } from "./lock.js";
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
  let fullDropped: (roots: readonly RunKey[]) => void = () => {};
  const age = ageClock(clock, metaValue(reader, "age"));
  const ended = endedTrees(reader, hot, age);
  const compact = compaction({
    clock,
    hot,
    segments,
    heads,
    hotEventsMax: options.hotEventsMax ?? 50_000,
    hotBytesMax: options.hotBytesMax ?? 16 * 1024 * 1024,
    failed: options.observe?.compactionFailed,
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
    fullDropped: (roots) => fullDropped(roots),
  });
  let prunedMs = clock.monotonic();
  let savedMs = prunedMs;

  const headFor = ({ tenant, run_id }: RunKey): Head | undefined => headOf(tenant, run_id);

  return {
    append: ({ tenant }, decide) => commits.append(tenant, decide),
    ...events({ runs, segments, hot, headOf }),
    ...lists({ runs, heads, commits }),

    head: async (key) => headFor(key),
    isErased: async ({ tenant, run_id }) => runs.isErased(tenant, run_id),

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
      // Whoever writes a child is there for its ancestors too, and for all that is below these.
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
    onFullDropped(hear) {
      fullDropped = hear;
    },

    levels(): StoreLevels {
      const isThere = existsSync(path);
      return {
        writing: isThere ? writer.condition : "broken",
        runsLive: watched.liveRuns(),
        appendsWaiting: commits.waiting,
        hotEvents: hot.records,
        hotBytes: hot.bytes,
        databaseBytes: looked(() => statSync(path).size),
        walBytes: looked(() => statSync(`${path}-wal`).size),
        diskFreeBytes: looked(() => freeBytes(path)),
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

function looked(bytes: () => number): number {
  try {
    return bytes();
  } catch {
    // Files that are not there, or cannot be looked at: that nothing is written says so.
    return 0;
  }
}
