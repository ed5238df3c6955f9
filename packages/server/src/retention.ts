// How long trees are kept. The clock starts at the root's end, so a live run loses nothing. A tree goes as a whole and
// leaves tombstones; its full view may go earlier, and the default view then still answers.
//
//   plan   what would go now: the dry run
//   apply  lets it go
//   sweep  does so for all tenants, a little at a time
//
// Ages are the store's: no clock that jumps makes anything old.

import type { FinalState } from "@runwire/protocol";
import type { Clock } from "./clock.js";
import type { Report } from "./report.js";
import {
  type EndedTree,
  LeftBehind,
  type RetentionDays,
  type RunKey,
  type Store,
  type TreeQuery,
} from "./store.js";

export interface RetentionPlan {
  /** The first hundred; `totals` counts all. */
  readonly trees: readonly PlannedTree[];
  /** Trees that are kept and lose their full view. */
  readonly full_views: readonly PlannedTree[];
  readonly totals: RetentionTotals;
}

export type PlannedTree = Omit<EndedTree, "tenant">;

export interface RetentionTotals {
  readonly trees: Total;
  readonly full_views: Total;
}

export interface Total {
  readonly trees: number;
  readonly runs: number;
  readonly bytes: number;
}

export interface Retention {
  plan(tenant: string): Promise<RetentionPlan>;
  /** Throws what failed first, when all has gone that can. */
  apply(tenant: string): Promise<RetentionTotals>;
  /**
   * To be called every now and then; works at most once a minute, and then on a bounded part. Whoever is leaving
   * leaves the rest.
   */
  sweep(isLeaving?: () => boolean): Promise<void>;
}

const dayMs = 24 * 60 * 60 * 1000;
const sweepEveryMs = 60 * 1000;
const listedMax = 100;
/** Of one batch, during which nobody else writes. */
const batchTreesMax = 50;
const batchBytesMax = 64 * 1024 * 1024;
const batchesPerSweepMax = 20;
const sweptTenantsMax = 500;
const restMs = 60 * 60 * 1000;
const restingMax = 10_000;
const states: readonly FinalState[] = ["done", "aborted", "error"];

export function retention(store: Store, clock: Clock, report: Report, defaults: RetentionDays): Retention {
  let sweptMs = Number.NEGATIVE_INFINITY;
  let sweptTenant = "";
  /** Trees that could not go, and when they are tried again: until then they make room for others. */
  const resting = new Map<string, number>();

  async function queriesOf(tenant: string): Promise<Queries> {
    return queries((await store.tenantSettings(tenant))?.retention ?? defaults);
  }

  /** Everything that the queries find, page by page; others get their turn between two pages. */
  async function* found(tenant: string, asked: readonly Asked[], limit: number): AsyncGenerator<EndedTree> {
    for (const query of asked) {
      for (let cursor: TreeQuery["cursor"] | null; cursor !== null; ) {
        const page = await store.endedTrees(tenant, {
          ...query,
          limit,
          ...(cursor === undefined ? {} : { cursor }),
        });
        yield* page.trees;
        cursor = page.next;
        await new Promise((resolve) => setImmediate(resolve));
      }
    }
  }

  /** Takes what goes away in batches; what was taken, or could not be, is not found again. */
  async function inBatches(
    tenant: string,
    asked: readonly Asked[],
    kind: Kind,
    failures: unknown[],
  ): Promise<Total> {
    let total = nothing;
    let batch: EndedTree[] = [];
    let bytes = 0;
    const flush = async (): Promise<void> => {
      if (batch.length === 0) return;
      const failed = await letGo(batch, kind);
      if (failed === null) total = batch.reduce(plus, total);
      else failures.push(failed.error);
      if (failed?.isStuck === true) throw failures[0];
      batch = [];
      bytes = 0;
    };
    for await (const tree of found(tenant, asked, batchTreesMax)) {
      batch.push(tree);
      bytes += tree.bytes;
      if (batch.length >= batchTreesMax || bytes >= batchBytesMax) await flush();
    }
    await flush();
    return total;
  }

  async function planned(tenant: string, asked: readonly Asked[]): Promise<[readonly PlannedTree[], Total]> {
    const listed: PlannedTree[] = [];
    let total = nothing;
    for await (const { tenant: _, ...tree } of found(tenant, asked, listedMax)) {
      if (listed.length < listedMax) listed.push(tree);
      total = plus(total, tree);
    }
    return [listed, total];
  }

  // What cannot be read of a tree does not say that it is gone.
  const wholeTrees: Kind = {
    told: "retention erased",
    remove: store.eraseTrees,
    isGone: (tree) => store.isErased(tree).catch(() => false),
  };
  const fullViews: Kind = {
    told: "retention dropped full views",
    remove: store.dropFullViews,
    async isGone(tree) {
      const head = await store.head(tree).catch(() => null);
      return head === undefined || head?.fullGone === true;
    },
  };

  /** Null where all of the batch is gone, with all that goes with it. */
  async function letGo(batch: readonly EndedTree[], { remove, isGone }: Kind): Promise<Failed | null> {
    try {
      await remove(batch);
      return null;
    } catch (error) {
      // A disk that takes nothing, or somebody who reads the file for long, says nothing about the trees.
      if (store.levels().writing !== "ok") return { error, left: [], isStuck: true };
      const left = await without(batch, isGone);
      return { error, left, isStuck: left.length === 0 && !(error instanceof LeftBehind) };
    }
  }

  /** A batch of trees and one of full views, of as many tenants as it takes to fill one. Tells whether there may be more. */
  async function sweepBatch(failures: unknown[]): Promise<boolean> {
    const [trees, views]: [EndedTree[], EndedTree[]] = [[], []];
    const from = sweptTenant;
    const names = await store.tenants(from, sweptTenantsMax);
    sweptTenant = names.length < sweptTenantsMax ? "" : (names.at(-1) ?? "");
    for (const tenant of names) {
      try {
        const asked = await queriesOf(tenant);
        await fill(trees, found(tenant, asked.trees, batchTreesMax), resting);
        await fill(views, found(tenant, asked.fullViews, batchTreesMax), resting);
      } catch (error) {
        // What cannot be read of one tenant keeps nothing of another.
        failures.push(error);
      }
      if (isFull(trees) || isFull(views)) {
        // The next batch begins with the tenants that have not had their turn.
        sweptTenant = tenant;
        break;
      }
    }
    // Trees that cannot be erased are no reason to keep full views.
    let isStuck = false;
    const removed = async (batch: readonly EndedTree[], kind: Kind): Promise<void> => {
      if (batch.length === 0) return;
      const failed = await letGo(batch, kind);
      if (failed === null) {
        report("info", kind.told, { ...batch.reduce(plus, nothing) });
        return;
      }
      failures.push(failed.error);
      isStuck ||= failed.isStuck || resting.size >= restingMax;
      if (!isStuck) for (const tree of failed.left) resting.set(nameOf(tree), clock.monotonic() + restMs);
    };
    await removed(trees, wholeTrees);
    await removed(views, fullViews);
    return !isStuck && (isFull(trees) || isFull(views) || from !== "");
  }

  return {
    async plan(tenant) {
      const asked = await queriesOf(tenant);
      const [trees, treeTotal] = await planned(tenant, asked.trees);
      const [full_views, viewTotal] = await planned(tenant, asked.fullViews);
      return { trees, full_views, totals: { trees: treeTotal, full_views: viewTotal } };
    },
    async apply(tenant) {
      const asked = await queriesOf(tenant);
      const failures: unknown[] = [];
      const trees = await inBatches(tenant, asked.trees, wholeTrees, failures);
      const full_views = await inBatches(tenant, asked.fullViews, fullViews, failures);
      if (failures.length > 0) throw failures[0];
      return { trees, full_views };
    },
    async sweep(isLeaving = () => false) {
      if (clock.monotonic() - sweptMs < sweepEveryMs) return;
      sweptMs = clock.monotonic();
      for (const [name, againMs] of resting) if (againMs <= sweptMs) resting.delete(name);
      const failures: unknown[] = [];
      for (let batches = 0; batches < batchesPerSweepMax && !isLeaving(); batches++)
        if (!(await sweepBatch(failures))) break;
      if (failures.length > 0) throw failures[0];
    },
  };
}

/** What goes: whole trees, or full views. */
interface Kind {
  /** What the log calls it. */
  readonly told: string;
  readonly remove: Store["eraseTrees"];
  readonly isGone: (tree: RunKey) => Promise<boolean>;
}

interface Failed {
  readonly error: unknown;
  /** Of a batch. */
  readonly left: readonly EndedTree[];
  /** What failed is not the trees: the next batch would fail as well. */
  readonly isStuck: boolean;
}

type Asked = Pick<TreeQuery, "state" | "ageMsMin" | "ageMsMax" | "full">;

interface Queries {
  readonly trees: readonly Asked[];
  /** Without the trees that go as a whole. */
  readonly fullViews: readonly Asked[];
}

function queries(days: RetentionDays): Queries {
  const keptMs = (state: FinalState): number => (days[`${state}_days`] ?? Number.POSITIVE_INFINITY) * dayMs;
  const fullMs = (days.full_days ?? Number.POSITIVE_INFINITY) * dayMs;
  return {
    trees: states
      .filter((state) => Number.isFinite(keptMs(state)))
      .map((state) => ({ state, ageMsMin: keptMs(state), full: false })),
    fullViews: states
      .filter((state) => fullMs < keptMs(state))
      .map((state) => ({ state, ageMsMin: fullMs, ageMsMax: keptMs(state), full: true })),
  };
}

async function fill(
  batch: EndedTree[],
  from: AsyncIterable<EndedTree>,
  resting: ReadonlyMap<string, unknown>,
): Promise<void> {
  if (isFull(batch)) return;
  for await (const tree of from) {
    if (resting.has(nameOf(tree))) continue;
    batch.push(tree);
    if (isFull(batch)) return;
  }
}

async function without(
  batch: readonly EndedTree[],
  isGone: (tree: RunKey) => Promise<boolean>,
): Promise<readonly EndedTree[]> {
  const left: EndedTree[] = [];
  for (const tree of batch) if (!(await isGone(tree))) left.push(tree);
  return left;
}

function isFull(batch: readonly EndedTree[]): boolean {
  return batch.length >= batchTreesMax || batch.reduce((sum, { bytes }) => sum + bytes, 0) >= batchBytesMax;
}

function nameOf({ tenant, run_id }: RunKey): string {
  return `${tenant}/${run_id}`;
}

const nothing: Total = { trees: 0, runs: 0, bytes: 0 };

function plus(total: Total, { runs, bytes }: Pick<EndedTree, "runs" | "bytes">): Total {
  return { trees: total.trees + 1, runs: total.runs + runs, bytes: total.bytes + bytes };
}
