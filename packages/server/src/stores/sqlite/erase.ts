// What removes events: whole trees, or the full view of trees that have ended. Both run between two batches, and
// are done when no table, free page or write-ahead log holds what was removed.

import type { Clock } from "../../clock.js";
import { type Head, isEnded } from "../../log/head.js";
import type { RunMap } from "../../run-map.js";
import type { RunKey } from "../../store.js";
import type { Catalogue } from "./catalogue.js";
import type { Compaction, HeadOf } from "./compaction.js";
import type { GroupCommit } from "./group-commit.js";
import type { Hot } from "./hot.js";
import type { Write } from "./schema.js";
import type { Watch } from "./watch.js";
import type { Writer } from "./writer.js";

export interface EraserParts {
  readonly clock: Clock;
  readonly commits: GroupCommit;
  readonly runs: Catalogue;
  readonly hot: Hot;
  readonly heads: RunMap<Head>;
  readonly headOf: HeadOf;
  readonly watch: Watch;
  readonly writer: Writer;
  readonly compact: Compaction;
  readonly moved: (log: RunKey) => void;
  /** Is awaited after the rows are gone and before that is answered. */
  readonly unreferred: (tenant: string, refs: readonly string[]) => Promise<void>;
  readonly erased: (roots: readonly RunKey[]) => Promise<void>;
  readonly fullDropped: (roots: readonly RunKey[]) => void;
}

interface Tree {
  /** As it was asked for. */
  readonly root: RunKey;
  readonly members: readonly RunKey[];
}

/** Roots that stay, and why. */
type Failures = Map<RunKey, unknown>;

/** What cannot be removed keeps nothing else from going, and is told when that has gone. */
export interface Eraser {
  eraseTrees(roots: readonly RunKey[]): Promise<void>;
  dropFullViews(roots: readonly RunKey[]): Promise<void>;
  /** Tries again where what was removed could not be removed from the write-ahead log. */
  finish(): Promise<void>;
}

export function eraser(parts: EraserParts): Eraser {
  const { clock, commits, runs, hot, heads, headOf, watch, writer, compact, moved } = parts;
  const { unreferred, erased, fullDropped } = parts;
  let isInLog = false;

  /** What is done for each of them; one for which it fails is left out, and told of. */
  async function forEach<T>(
    roots: readonly RunKey[],
    failures: Failures,
    act: (root: RunKey) => T | Promise<T>,
  ): Promise<readonly T[]> {
    const done: T[] = [];
    for (const root of roots) {
      try {
        done.push(await act(root));
      } catch (error) {
        // Also where the disk takes nothing more: what is gone by then must be known to be.
        failures.set(root, error);
      }
    }
    return done;
  }

  /** With all its runs, of which one that is not there has none. */
  function treeOf(root: RunKey): Tree {
    const { tenant, run_id } = root;
    return { root, members: runs.tree(tenant, run_id).map((member) => ({ tenant, run_id: member })) };
  }

  /** Writes what removes them: together or, where that fails, one by one. What is damaged of one keeps no other. */
  async function remove<T extends Tree>(
    trees: readonly T[],
    failures: Failures,
    writesOf: (tree: T) => readonly Write[],
  ): Promise<readonly T[]> {
    const there = new Map(trees.filter(({ members }) => members.length > 0).map((tree) => [tree.root, tree]));
    try {
      const writes = [...there.values()].flatMap(writesOf);
      if (writes.length > 0) await writer.write(writes);
      return [...there.values()];
    } catch (error) {
      if (writer.condition !== "ok") throw error;
    }
    return forEach([...there.keys()], failures, async (root) => {
      const tree = there.get(root) as T;
      await writer.write(writesOf(tree));
      return tree;
    });
  }

  async function eraseTrees(roots: readonly RunKey[]): Promise<void> {
    const blobs = new Map<string, string[]>();
    const failures: Failures = new Map();
    await commits.exclusively(async () => {
      const trees = await forEach(roots, failures, (root) => ({
        ...treeOf(root),
        refs: runs.blobsOf(root.tenant, root.run_id),
      }));
      const erasedAt = new Date(clock.now()).toISOString();
      const gone = await remove(trees, failures, ({ root: { tenant, run_id: root_id }, members }) => [
        ["dropHot", JSON.stringify(hot.rowsOf(tenant, root_id))],
        ["dropBlobRefs", tenant, root_id],
        ["disallowBy", tenant, root_id],
        ...members.flatMap((run) => erasing(run, erasedAt)),
      ]);
      for (const { root, members, refs } of gone) {
        blobs.set(root.tenant, [...(blobs.get(root.tenant) ?? []), ...refs]);
        hot.dropTree(root.tenant, root.run_id);
        for (const run of members) {
          heads.delete(run.tenant, run.run_id);
          watch.forget(run.tenant, run.run_id);
          moved(run);
        }
      }
    });
    // The rows are gone, so nobody can erase the tree again: what fails here keeps nothing else from going.
    await doEach([
      ...[...blobs].map(
        ([tenant, refs]) =>
          () =>
            unreferred(tenant, refs),
      ),
      () => erased(roots.filter((root) => !failures.has(root))),
      emptyLog,
      () => tell([...failures.values()]),
    ]);
  }

  /** What was removed must not wait in the write-ahead log either. */
  async function emptyLog(): Promise<void> {
    isInLog = true;
    await writer.truncate();
    isInLog = false;
  }

  async function dropFullViews(roots: readonly RunKey[]): Promise<void> {
    const failures: Failures = new Map();
    await commits.exclusively(async (asOf) => {
      const cold = await forEach(roots, failures, async (root) => {
        const head = headOf(root.tenant, root.run_id);
        if (head === undefined || !isEnded(head) || head.fullGone) return { root, members: [] };
        await makeCold(root, asOf);
        return treeOf(root);
      });
      const gone = await remove(cold, failures, ({ root: { tenant, run_id: root_id }, members }) => [
        ["dropFull", tenant, root_id],
        ...members.flatMap(({ run_id }): Write[] => {
          const head: Head = { ...(headOf(tenant, run_id) as Head), fullGone: true };
          return [
            ["keepHead", tenant, run_id, asOf, JSON.stringify(head)],
            ["dropFullSegments", tenant, run_id],
            ["dropFullSnapshots", tenant, run_id],
          ];
        }),
      ]);
      for (const run of gone.flatMap(({ members }) => members)) {
        heads.delete(run.tenant, run.run_id);
        moved(run);
      }
      fullDropped(gone.map(({ root }) => root));
    });
    await doEach([emptyLog, () => tell([...failures.values()])]);
  }

  /** A hot row holds an event for both views: the tree becomes segments first, of which one view's are dropped. */
  async function makeCold(root: RunKey, asOf: number): Promise<void> {
    for (let step = compact.stepOf(root, headOf, asOf); step !== undefined; ) {
      await writer.write(step.writes);
      step.done();
      step = compact.stepOf(root, headOf, asOf);
    }
  }

  return {
    eraseTrees,
    dropFullViews,
    async finish() {
      if (isInLog) await emptyLog();
    },
  };
}

/** Does each in turn, whatever becomes of those before it, and throws what failed first. */
async function doEach(steps: readonly (() => Promise<void>)[]): Promise<void> {
  const failures: unknown[] = [];
  for (const step of steps) await step().catch((error: unknown) => failures.push(error));
  await tell(failures);
}

async function tell(failures: readonly unknown[]): Promise<void> {
  if (failures.length > 0) throw failures[0];
}

/** Every table that holds something of a run has its line here. */
function erasing({ tenant, run_id }: RunKey, erasedAt: string): Write[] {
  return [
    ["dropTurn", tenant, run_id],
    ["dropEmptySession", tenant],
    ["dropRun", tenant, run_id],
    ["dropHead", tenant, run_id],
    ["dropSegments", tenant, run_id],
    ["dropSnapshots", tenant, run_id],
    ["blankFeedOf", tenant, run_id],
    ["addTombstone", tenant, run_id, erasedAt],
  ];
}
