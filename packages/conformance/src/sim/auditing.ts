// What is true after every step, looked at as soon as it could be otherwise. Whoever reads a log later can only say that
// it is wrong; here it is known since when.
//
//   kept      what could once be read is there for good, under the same number, also after a crash
//   numbers   pos 1, 2, 3 …; seq counts core events; ids ascend; nothing follows the end
//   mirrors   an ancestor has as many events of a run as the run itself, and the same last one
//   shape     the default log says what the full one says, and in time (suites/store/shaping.ts)
//   tenants   a run holds nothing of another tenant's
//   answers   a request is resolved once
//
// The rest of what is true of a tree (suites/store/soundness.ts) costs a whole reading, and is looked at now and then.

import { endsRun, isCore, type StoredEvent, type View } from "@runwire/protocol";
import { expect } from "vitest";
import { type Shaping, shaping } from "../suites/store/shaping.js";
import { views } from "../suites/store/soundness.js";
import { treeOf } from "../suites/store/tree.js";
import type { Key, StoreUnderTest } from "../suites/store/under-test.js";

export interface Auditor {
  /** A log has moved; it is read at the next look. */
  moved(key: Key): void;
  look(store: StoreUnderTest): Promise<void>;
  /** Reads these trees, and all that was known, from the start, as whoever comes after a restart. */
  lookAgain(store: StoreUnderTest, roots: readonly Key[]): Promise<void>;
  /** What is known of a log; nothing where it never was, or was erased. */
  log(key: Key, view: View): readonly StoredEvent[];
}

interface Known {
  events: StoredEvent[];
  seq: number;
  /** How many are the run's own, and how many of each run below it; and the last of these. */
  readonly by: Map<string | null, { count: number; lastId: string }>;
}

interface KnownRun {
  readonly key: Key;
  readonly parent_id: string | null;
  readonly views: { readonly [V in View]: Known };
  readonly resolved: Set<string>;
  readonly shaping: Shaping;
}

const readBytes = 256 * 1024;
const nothing: readonly StoredEvent[] = [];
/** What the default log says must have been said. */
const fullFirst: readonly View[] = ["full", "default"];

/** Ids are a tenant's own. */
const nameOf = ({ tenant, run_id }: Key): string => `${tenant}/${run_id}`;

export function auditor(): Auditor {
  const runs = new Map<string, KnownRun>();
  const moved = new Map<string, Key>();

  async function readOn(store: StoreUnderTest, key: Key): Promise<void> {
    const head = await store.head(key);
    if (head === undefined) {
      // It was erased, or what had been begun was not stored after all: then nobody can have read it.
      if (runs.has(nameOf(key))) expect(await store.isErased(key), `${nameOf(key)} is gone`).toBe(true);
      runs.delete(nameOf(key));
      return;
    }
    const known = runs.get(nameOf(key)) ?? begun(key, head.run.parent_id);
    runs.set(nameOf(key), known);
    for (const view of fullFirst) {
      const { events } = known.views[view];
      for (;;) {
        const { events: cut } = await store.read(key, view, events.length, readBytes);
        if (cut.length === 0) break;
        for (const e of cut) take(known, view, e);
      }
      expect(events.length, `${nameOf(key)}, ${view}: its head agrees`).toBe(head.views[view].pos);
    }
    known.shaping.expectPending(head.groups);
  }

  function take(known: KnownRun, view: View, e: StoredEvent): void {
    const log = known.views[view];
    const last = log.events.at(-1);
    if (isCore(e.type)) log.seq += 1;
    const isNext = e.pos === log.events.length + 1 && e.seq === log.seq && e.id > (last?.id ?? "");
    if (!isNext || e.run_id !== known.key.run_id || (last !== undefined && endsRun(last)))
      throw new Error(
        `${nameOf(known.key)}, ${view}: ${e.type} ${e.pos}/${e.seq} ${e.id} after ${last?.type} ${last?.pos}/${last?.seq} ${last?.id}`,
      );
    expectOwn(known.key, e);
    known.shaping.take(view, e);
    log.events.push(e);
    const by = log.by.get(e.child_id);
    log.by.set(e.child_id, { count: (by?.count ?? 0) + 1, lastId: e.id });
    if (view === "full" && e.child_id === null) answered(known, e);
  }

  function answered({ key, resolved }: KnownRun, { type, payload }: StoredEvent): void {
    const { approval_id, clarify_id } = payload as { approval_id?: string; clarify_id?: string };
    const id = approval_id ?? clarify_id;
    if (!type.endsWith(".resolved") || id === undefined) return;
    expect(resolved.has(id), `${id} of ${nameOf(key)} is resolved twice`).toBe(false);
    resolved.add(id);
  }

  function expectMirrored(run: KnownRun): void {
    for (let at = run.parent_id; at !== null; ) {
      const above = runs.get(nameOf({ ...run.key, run_id: at }));
      if (above === undefined) throw new Error(`${nameOf(run.key)} is below ${at}, which is not there`);
      for (const view of views)
        expect(above.views[view].by.get(run.key.run_id), `${nameOf(run.key)} in ${at}, ${view}`).toEqual(
          run.views[view].by.get(null),
        );
      at = above.parent_id;
    }
  }

  async function look(store: StoreUnderTest): Promise<void> {
    if (moved.size === 0) return;
    const keys = [...moved.values()].filter(({ run_id }) => !run_id.startsWith("feed:"));
    moved.clear();
    for (const key of keys) await readOn(store, key);
    for (const key of keys) {
      const run = runs.get(nameOf(key));
      if (run !== undefined) expectMirrored(run);
    }
  }

  return {
    moved: (key) => void moved.set(nameOf(key), key),
    look,
    async lookAgain(store, roots) {
      const before = new Map(runs);
      runs.clear();
      // Some of what was stored last, nobody has been told of.
      for (const root of roots)
        for (const { tenant, run_id } of await treeOf(store, root)) {
          const key = { tenant, run_id };
          moved.set(nameOf(key), key);
        }
      for (const [name, { key }] of before) moved.set(name, key);
      await look(store);
      for (const [name, known] of before) {
        if (await store.isErased(known.key)) continue;
        for (const view of views) {
          const once = known.views[view].events.map(({ id }) => id);
          const now = (runs.get(name)?.views[view].events ?? []).slice(0, once.length);
          expect(
            now.map(({ id }) => id),
            `${name}, ${view}: what was once there`,
          ).toEqual(once);
        }
      }
    },
    log: (key, view) => runs.get(nameOf(key))?.views[view].events ?? nothing,
  };
}

function begun(key: Key, parent_id: string | null): KnownRun {
  const none = (): Known => ({ events: [], seq: 0, by: new Map() });
  return {
    key,
    parent_id,
    views: { default: none(), full: none() },
    resolved: new Set(),
    shaping: shaping(nameOf(key), false),
  };
}

/** What a producer says names its tenant (see `own` in producing.ts). */
function expectOwn(key: Key, { id, type, payload }: StoredEvent): void {
  const { whose = key.tenant } = payload as { whose?: unknown };
  if (whose !== key.tenant) throw new Error(`${nameOf(key)} has ${type} ${id} of ${whose}`);
}
