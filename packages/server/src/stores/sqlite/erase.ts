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
}

export interface Eraser {
  eraseTrees(roots: readonly RunKey[]): Promise<void>;
  dropFullViews(roots: readonly RunKey[]): Promise<void>;
  /** Tries again where what was removed could not be removed from the write-ahead log. */
  finish(): Promise<void>;
}

export function eraser(parts: EraserParts): Eraser {
  const { clock, commits, runs, hot, heads, headOf, watch, writer, compact, moved, unreferred, erased } =
    parts;
  let isInLog = false;

  /** All the runs of these trees; a root that is not there has none. */
  function membersOf(roots: readonly RunKey[]): readonly RunKey[] {
    return roots.flatMap(({ tenant, run_id: root_id }) =>
      runs.tree(tenant, root_id).map(({ run_id }) => ({ tenant, run_id })),
    );
  }

  async function eraseTrees(roots: readonly RunKey[]): Promise<void> {
    const blobs = new Map<string, string[]>();
    await commits.exclusively(async () => {
      const gone = membersOf(roots);
      if (gone.length === 0) return;
      for (const { tenant, run_id } of roots)
        blobs.set(tenant, [...(blobs.get(tenant) ?? []), ...runs.blobsOf(tenant, run_id)]);
      const erasedAt = new Date(clock.now()).toISOString();
      const rows = roots.flatMap(({ tenant, run_id }) => hot.rowsOf(tenant, run_id));
      await writer.write([
        ["dropHot", JSON.stringify(rows)],
        ...roots.flatMap(({ tenant, run_id }): Write[] => [
          ["dropBlobRefs", tenant, run_id],
          ["disallowBy", tenant, run_id],
        ]),
        ...gone.flatMap((run) => erasing(run, erasedAt)),
      ]);
      for (const { tenant, run_id } of roots) hot.dropTree(tenant, run_id);
      for (const run of gone) {
        heads.delete(run.tenant, run.run_id);
        watch.forget(run.tenant, run.run_id);
        moved(run);
      }
    });
    // The rows are gone, so nobody can erase the tree again: what fails here keeps nothing else from going.
    await doEach([
      ...[...blobs].map(
        ([tenant, refs]) =>
          () =>
            unreferred(tenant, refs),
      ),
      () => erased(roots),
      emptyLog,
    ]);
  }

  /** What was removed must not wait in the write-ahead log either. */
  async function emptyLog(): Promise<void> {
    isInLog = true;
    await writer.truncate();
    isInLog = false;
  }

  async function dropFullViews(roots: readonly RunKey[]): Promise<void> {
    await commits.exclusively(async (asOf) => {
      const ended = roots.filter(({ tenant, run_id }) => {
        const head = headOf(tenant, run_id);
        return head !== undefined && isEnded(head) && !head.fullGone;
      });
      if (ended.length === 0) return;
      // A hot row holds an event for both views: the tree becomes segments first, of which one view's are dropped.
      for (const root of ended) {
        for (let step = compact.stepOf(root, headOf, asOf); step !== undefined; ) {
          await writer.write(step.writes);
          step.done();
          step = compact.stepOf(root, headOf, asOf);
        }
      }
      const members = membersOf(ended);
      await writer.write([
        ...ended.map(({ tenant, run_id }): Write => ["dropFull", tenant, run_id]),
        ...members.flatMap(({ tenant, run_id }): Write[] => {
          const head: Head = { ...(headOf(tenant, run_id) as Head), fullGone: true };
          return [
            ["keepHead", tenant, run_id, asOf, JSON.stringify(head)],
            ["dropFullSegments", tenant, run_id],
            ["dropFullSnapshots", tenant, run_id],
          ];
        }),
      ]);
      for (const run of members) {
        heads.delete(run.tenant, run.run_id);
        moved(run);
      }
    });
    await emptyLog();
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
