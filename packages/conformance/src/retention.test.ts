// Retention: what is old goes as a whole, what is young stays, and no clock can say otherwise.

import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import type { Draft } from "@runwire/protocol";
import * as server from "@runwire/server";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { append, createRun, lifecycle, text } from "./gateway/calls.js";
import { openSqlite } from "./suites/store/server-module.js";
import { expectSoundTree, wholeLog } from "./suites/store/soundness.js";
import {
  caseCount,
  freshSpawn,
  heldClock,
  lawMsMax,
  newRun,
  onTrial,
  type Trial,
} from "./suites/store/trial.js";
import type { Key } from "./suites/store/under-test.js";

const open = openSqlite(server);
const dayMs = 24 * 60 * 60 * 1000;
const yearMs = 365 * dayMs;
const defaults = { done_days: 90, aborted_days: 30, error_days: 30, full_days: null };
const states = ["done", "aborted", "error"] as const;
const days = fc.option(fc.integer({ min: 0, max: 120 }), { nil: null });
const settings = fc.record({ done_days: days, aborted_days: days, error_days: days, full_days: days });

describe("retention", { timeout: lawMsMax }, () => {
  it("erases what has been over for its days, by how it ended, and nothing else [RW-RETAIN-1]", () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ state: fc.constantFrom(...states, null), ageDays: fc.nat(130) }), {
          minLength: 1,
          maxLength: 12,
        }),
        fc.option(settings, { nil: null }),
        fc.boolean(),
        async (trees, set, sweeps) =>
          onTrial(open, async (trial) => {
            const { store, retained } = retainedOn(trial);
            if (set !== null) await store.setTenantSettings("acme", { retention: set });
            const kept = set ?? defaults;
            const runs: { key: Key; state: (typeof states)[number] | null; ageDays: number }[] = [];
            // The oldest first: a day passes between two ages.
            let left = 130;
            for (const { state, ageDays } of [...trees].sort((a, b) => b.ageDays - a.ageDays)) {
              trial.clock.pass((left - ageDays) * dayMs);
              left = ageDays;
              runs.push({ key: await tree(trial, state), state, ageDays });
            }
            trial.clock.pass(left * dayMs);
            const goes = ({ state, ageDays }: (typeof runs)[number]): boolean =>
              state !== null && ageDays >= (kept[`${state}_days`] ?? Number.POSITIVE_INFINITY);
            const loses = (run: (typeof runs)[number]): boolean =>
              run.state !== null && !goes(run) && run.ageDays >= (kept.full_days ?? Number.POSITIVE_INFINITY);
            const plan = await retained.plan("acme");
            const names = (some: typeof runs) => some.map(({ key }) => key.run_id).sort();
            expect(plan.trees.map(({ run_id }) => run_id).sort()).toEqual(names(runs.filter(goes)));
            expect(plan.full_views.map(({ run_id }) => run_id).sort()).toEqual(names(runs.filter(loses)));
            expect(plan.totals.trees).toMatchObject({
              trees: runs.filter(goes).length,
              runs: 2 * runs.filter(goes).length,
            });
            for (const { bytes, ended_at } of plan.trees) {
              expect(bytes).toBeGreaterThan(0);
              expect(Date.parse(ended_at)).toBeLessThanOrEqual(trial.clock.now());
            }
            if (sweeps) await retained.sweep();
            else expect(await retained.apply("acme")).toEqual(plan.totals);
            for (const run of runs) {
              expect(await trial.store.isErased(run.key)).toBe(goes(run));
              if (!goes(run)) expect((await trial.store.head(run.key))?.fullGone).toBe(loses(run));
            }
            const { totals } = await retained.plan("acme");
            expect([totals.trees.trees, totals.full_views.trees]).toEqual([0, 0]);
          }),
      ),
      caseCount(12),
    ));

  it("deletes nothing young, whatever the clocks say and however often the server starts [RW-RETAIN-2]", () => {
    const step = fc.oneof(
      fc.record({ pass: fc.nat(20 * dayMs) }),
      fc.record({ jump: fc.integer({ min: -10 * yearMs, max: 10 * yearMs }) }),
      fc.record({ closed: fc.integer({ min: -10 * yearMs, max: 10 * yearMs }) }),
      fc.constantFrom("end" as const, "end" as const, "sweep" as const),
    );
    return fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 25 }), async (steps) =>
        onTrial(open, async (trial) => {
          let passedMs = 0;
          let restarts = 0;
          const runs: { key: Key; endedMs: number; restarts: number }[] = [];
          const expectYoungKept = async () => {
            await retainedOn(trial).retained.apply("acme");
            for (const run of runs) {
              const surelyMs = passedMs - run.endedMs;
              const atMostMs = surelyMs + (restarts - run.restarts) * dayMs;
              if (atMostMs < 90 * dayMs) expect(await trial.store.isErased(run.key)).toBe(false);
            }
          };
          for (const taken of steps) {
            if (taken === "end") runs.push({ key: await tree(trial, "done"), endedMs: passedMs, restarts });
            else if (taken === "sweep") await expectYoungKept();
            else if ("closed" in taken) {
              restarts += 1;
              await trial.reopen(() => trial.clock.jump(taken.closed));
            } else if ("jump" in taken) trial.clock.jump(taken.jump);
            else {
              passedMs += taken.pass;
              trial.clock.pass(taken.pass);
            }
          }
          await expectYoungKept();
          // And what is old goes, though a clock was wrong when it ended.
          trial.clock.jump(-1);
          await retainedOn(trial).retained.plan("acme");
          // A clock that is set back may cost the stretch in which it is.
          for (let day = 0; day < 95; day++) {
            trial.clock.pass(dayMs);
            await trial.store.prune();
          }
          await retainedOn(trial).retained.apply("acme");
          for (const { key } of runs) expect(await trial.store.isErased(key)).toBe(true);
        }),
      ),
      caseCount(12),
    );
  });

  it("a clock that is ten years ahead, also at the next start, deletes nothing young [RW-RETAIN-2]", () =>
    onTrial(open, async (trial) => {
      const key = await tree(trial, "error");
      trial.clock.jump(10 * yearMs);
      await retainedOn(trial).retained.sweep();
      await trial.reopen();
      await retainedOn(trial).retained.sweep();
      await trial.reopen(() => trial.clock.jump(10 * yearMs));
      await retainedOn(trial).retained.sweep();
      expect(await trial.store.isErased(key)).toBe(false);
      trial.clock.jump(-20 * yearMs);
      // What passes while a clock is set back is not counted; it is looked at every minute.
      trial.clock.pass(60_000);
      await trial.store.prune();
      trial.clock.pass(30 * dayMs);
      await retainedOn(trial).retained.sweep();
      expect(await trial.store.isErased(key)).toBe(true);
    }));

  it("sweeps at most once a minute, in batches, every tenant in its turn", () =>
    onTrial(open, async (trial) => {
      const keys: Key[] = [];
      for (let i = 0; i < 70; i++) keys.push(await tree(trial, "error", i < 60 ? "acme" : `rival-${i}`));
      trial.clock.pass(30 * dayMs);
      const { store, retained } = retainedOn(trial);
      const batches: number[] = [];
      const counted = {
        ...store,
        eraseTrees: (roots: readonly Key[]) => {
          batches.push(roots.length);
          return store.eraseTrees(roots);
        },
      };
      const swept = server.retention(counted, trial.clock, () => {}, defaults);
      await Promise.all([swept.sweep(), swept.sweep()]);
      expect(batches).toEqual([50, 10, 10]);
      for (const key of keys) expect(await trial.store.isErased(key)).toBe(true);
      await retained.sweep();
      const late = await tree(trial, "error");
      await store.setTenantSettings("acme", { retention: { ...defaults, error_days: 0 } });
      await retained.sweep();
      expect(await trial.store.isErased(late)).toBe(false);
      trial.clock.pass(60_000);
      await retained.sweep();
      expect(await trial.store.isErased(late)).toBe(true);
    }));

  it("of a tree that is damaged keeps no other tree, nor its full view [RW-RETAIN-1]", () =>
    onTrial(open, async (trial) => {
      const { store } = retainedOn(trial);
      await store.setTenantSettings("acme", { retention: { ...defaults, full_days: 7 } });
      const old = [await tree(trial, "error"), await tree(trial, "error"), await tree(trial, "error")];
      trial.clock.pass(30 * dayMs);
      const views = [await tree(trial, "done"), await tree(trial, "done"), await tree(trial, "done")];
      trial.clock.pass(7 * dayMs);
      const [lost, unread] = [old[1] as Key, views[0] as Key];
      const refuse = (name: string, when: string) =>
        `CREATE TRIGGER ${name} BEFORE ${when} BEGIN SELECT RAISE(ABORT, 'damaged'); END`;
      sql(trial.folder, refuse("no_1", `DELETE ON runs WHEN OLD.run_id = '${lost.run_id}'`));
      sql(trial.folder, refuse("no_2", `INSERT ON segments WHEN NEW.log = '${unread.run_id}'`));
      const state = async () => ({
        kept: (await Promise.all(old.map(trial.store.isErased))).map((isErased) => !isErased),
        full: (await Promise.all(views.map(trial.store.head))).map((head) => head?.fullGone === false),
      });
      const swept = server.retention(store, trial.clock, () => {}, defaults);
      await expect(swept.sweep()).rejects.toThrow(/damaged/);
      expect(await state()).toEqual({ kept: [false, true, false], full: [true, false, false] });
      await trial.reopen();
      expect(await state()).toEqual({ kept: [false, true, false], full: [true, false, false] });
      for (const key of [lost, unread]) await expectSoundTree(trial.store, key);
      for (const name of ["no_1", "no_2"]) sql(trial.folder, `DROP TRIGGER ${name}`);
      await retainedOn(trial).retained.sweep();
      expect(await state()).toEqual({ kept: [false, false, false], full: [false, false, false] });
    }));

  it("of any number of trees that are damaged keeps no other [RW-RETAIN-1]", () =>
    onTrial(open, async (trial) => {
      const damaged: Key[] = [];
      for (let i = 0; i < 60; i++) damaged.push(await tree(trial, "error"));
      const ids = damaged.map(({ run_id }) => `'${run_id}'`);
      sql(
        trial.folder,
        `CREATE TRIGGER no BEFORE DELETE ON runs WHEN OLD.run_id IN (${ids.join()})
          BEGIN SELECT RAISE(ABORT, 'damaged'); END`,
      );
      const sound = await tree(trial, "error");
      trial.clock.pass(30 * dayMs);
      const { retained } = retainedOn(trial);
      const nextSweep = (): Promise<void> => {
        trial.clock.pass(60_000);
        return retained.sweep();
      };
      await expect(nextSweep()).rejects.toThrow(/damaged/);
      expect(await trial.store.isErased(sound)).toBe(true);
      // They are tried again, but not every time.
      sql(trial.folder, "DROP TRIGGER no");
      await nextSweep();
      expect(await trial.store.isErased(damaged[0] as Key)).toBe(false);
      trial.clock.pass(60 * 60_000);
      await nextSweep();
      for (const key of damaged) expect(await trial.store.isErased(key)).toBe(true);
    }));

  it("of damaged trees keeps no other, however many tenants there are [RW-RETAIN-1]", () =>
    onTrial(open, async (trial) => {
      for (let i = 0; i < 501; i++) await newRun(trial, { tenant: `a-${i}` });
      for (let i = 0; i < 60; i++) await tree(trial, "error", "z");
      const sound = await tree(trial, "error", "z");
      sql(
        trial.folder,
        `CREATE TRIGGER no BEFORE DELETE ON runs WHEN OLD.tenant = 'z' AND OLD.root_id <> '${sound.run_id}'
           BEGIN SELECT RAISE(ABORT, 'damaged'); END`,
      );
      trial.clock.pass(30 * dayMs);
      const { retained } = retainedOn(trial);
      for (let minutes = 0; minutes < 6; minutes++) {
        trial.clock.pass(60_000);
        await retained.sweep().catch(() => {});
      }
      expect(await trial.store.isErased(sound)).toBe(true);
    }));

  it("begins no other batch while somebody who reads the file keeps what was erased in it [RW-RETAIN-1]", () =>
    onTrial(open, async (trial) => {
      for (let i = 0; i < 120; i++) await tree(trial, "error");
      trial.clock.pass(30 * dayMs);
      const { store } = retainedOn(trial);
      let batches = 0;
      const read = {
        ...store,
        async eraseTrees(roots: readonly Key[]) {
          batches += 1;
          await store.eraseTrees(roots);
          throw new Error("in use");
        },
      };
      const retained = server.retention(read, trial.clock, () => {}, defaults);
      for (let sweeps = 1; sweeps <= 3; sweeps++) {
        await expect(retained.sweep()).rejects.toThrow("in use");
        expect(batches).toBe(sweeps);
        trial.clock.pass(60_000);
      }
      await retained.sweep();
      expect(batches).toBe(3);
      for (let i = 0; i < 60; i++) await tree(trial, "error");
      trial.clock.pass(30 * dayMs);
      await expect(retained.apply("acme")).rejects.toThrow("in use");
      expect(batches).toBe(4);
    }));

  it("of what goes with a tree, and cannot, keeps no other tree [RW-RETAIN-1]", () =>
    onTrial(open, async (trial) => {
      const { store, retained } = retainedOn(trial);
      await store.setTenantSettings("acme", { retention: { ...defaults, full_days: 7 } });
      const old: Key[] = [];
      for (let i = 0; i < 120; i++) old.push(await tree(trial, "error"));
      trial.clock.pass(30 * dayMs);
      const view = await tree(trial, "done");
      trial.clock.pass(7 * dayMs);
      store.onErased(async (roots) => {
        if (roots.length > 0) throw new server.LeftBehind(new Error("stuck"));
      });
      await expect(retained.sweep()).rejects.toThrow(server.LeftBehind);
      for (const key of old) expect(await store.isErased(key)).toBe(true);
      expect((await store.head(view))?.fullGone).toBe(true);
    }));

  it("that is asked for goes on past damaged trees too, and says so [RW-RETAIN-1]", () =>
    onTrial(open, async (trial) => {
      const { store, retained } = retainedOn(trial);
      await store.setTenantSettings("acme", { retention: { ...defaults, full_days: 7 } });
      const old: Key[] = [];
      for (let i = 0; i < 60; i++) old.push(await tree(trial, "error"));
      trial.clock.pass(30 * dayMs);
      const view = await tree(trial, "done");
      trial.clock.pass(7 * dayMs);
      const lost = old[0] as Key;
      sql(
        trial.folder,
        `CREATE TRIGGER no BEFORE DELETE ON runs WHEN OLD.run_id = '${lost.run_id}'
           BEGIN SELECT RAISE(ABORT, 'damaged'); END`,
      );
      await expect(retained.apply("acme")).rejects.toThrow(/damaged/);
      for (const key of old) expect(await store.isErased(key)).toBe(key !== lost);
      expect((await store.head(view))?.fullGone).toBe(true);
    }));

  it("of a tenant whose settings cannot be read keeps nothing of others [RW-RETAIN-1]", () =>
    onTrial(open, async (trial) => {
      const { store } = retainedOn(trial);
      await store.setTenantSettings("acme", { retention: defaults });
      await tree(trial, "error");
      const others: Key[] = [];
      for (let i = 0; i < 60; i++) others.push(await tree(trial, "error", "rival"));
      sql(trial.folder, "UPDATE tenants SET settings = '{' WHERE tenant = 'acme'");
      trial.clock.pass(30 * dayMs);
      let fails = true;
      const flaky = {
        ...store,
        async eraseTrees(roots: readonly Key[]) {
          if (fails) throw new Error("busy");
          await store.eraseTrees(roots);
        },
        async isErased() {
          throw new Error("damaged");
        },
      };
      const retained = server.retention(flaky, trial.clock, () => {}, defaults);
      await expect(retained.sweep()).rejects.not.toThrow(/^damaged$/);
      fails = false;
      trial.clock.pass(60 * 60_000);
      await expect(retained.sweep()).rejects.toThrow();
      for (const key of others) expect(await trial.store.isErased(key)).toBe(true);
    }));

  it("erases a tree whose head cannot be read, and what others have [RW-RETAIN-1]", () =>
    onTrial(openSqlite(server, { hotEventsMax: 4 }), async (trial) => {
      const { store } = retainedOn(trial);
      await store.setTenantSettings("acme", { retention: { ...defaults, full_days: 7 } });
      const old = [
        await tree(trial, "error"),
        await tree(trial, "error"),
        await tree(trial, "error", "rival"),
      ];
      trial.clock.pass(30 * dayMs);
      const views = [await tree(trial, "done"), await tree(trial, "done")];
      trial.clock.pass(7 * dayMs);
      const spoil = ({ run_id }: Key): void =>
        sql(trial.folder, `UPDATE heads SET head = '{' WHERE log = '${run_id}'`);
      // What is hot has its head in memory.
      await trial.reopen();
      for (const key of [old[0], views[0]]) spoil(key as Key);
      await expect(retainedOn(trial).retained.sweep()).rejects.toThrow();
      for (const key of old) expect(await trial.store.isErased(key)).toBe(true);
      expect((await trial.store.head(views[1] as Key))?.fullGone).toBe(true);
    }));

  for (const hotEventsMax of [100_000, 4]) {
    it(`leaves nothing of a full view in any file, with ${hotEventsMax} hot events [RW-RETAIN-3]`, () =>
      onTrial(openSqlite(server, { hotEventsMax }), async (trial) => {
        const { store, retained } = retainedOn(trial);
        await store.setTenantSettings("acme", { retention: { ...defaults, full_days: 7 } });
        const secret = "swordfish";
        const key = await tree(trial, "done", "acme", { type: "text.delta", payload: { text: "b", secret } });
        expect(filesWith(trial.folder, secret)).not.toEqual([]);
        const said = await wholeLog(trial.store, key, "default");
        trial.clock.pass(7 * dayMs - 1);
        expect((await retained.apply("acme")).full_views.trees).toBe(0);
        trial.clock.pass(1);
        expect((await retained.apply("acme")).full_views.trees).toBe(1);
        expect(filesWith(trial.folder, secret)).toEqual([]);
        expect(await wholeLog(trial.store, key, "default")).toEqual(said);
      }));
  }
});

describe("a gateway", () => {
  it("forgets what readers of a full view have shared once that is no longer kept [RW-RETAIN-3]", async () => {
    const folder = mkdtempSync(join(tmpdir(), "runwire-retention-"));
    let store: server.Store | undefined;
    const gateway = await server.startGateway(
      { port: 0, dataFolder: folder, log: "error" },
      undefined,
      undefined,
      (options) => {
        store = server.sqliteStore(options);
        return store;
      },
    );
    try {
      const run_id = await createRun(gateway.url);
      await append(gateway.url, run_id, text("one"), text("two"), lifecycle("done"));
      const cached = async (): Promise<number> => {
        const told = await (await fetch(`${gateway.url}/metrics`)).text();
        return Number(/^runwire_ranges_cached_bytes (\S+)$/m.exec(told)?.[1]);
      };
      await (await fetch(`${gateway.url}/v1/agent/runs/${run_id}/stream?detail=full`)).text();
      expect(await cached()).toBeGreaterThan(0);
      await store?.dropFullViews([{ tenant: "default", run_id }]);
      expect(await cached()).toBe(0);
    } finally {
      await gateway.close();
      rmSync(folder, { recursive: true, force: true });
    }
  });

  it("answers 410 for a full view that is no longer kept, and 200 for the default one [RW-RETAIN-3]", async () => {
    const folder = mkdtempSync(join(tmpdir(), "runwire-retention-"));
    const clock = heldClock();
    const path = join(folder, "runwire.db");
    const store = server.sqliteStore({ path, durability: "os", clock });
    await store.setTenantSettings("default", { retention: { ...defaults, full_days: 0 } });
    const ingest = server.ingest(store, server.transcripts(store));
    const key = await newRun({ ingest }, { tenant: "default" });
    await ingest.append(key, [
      { type: "text.delta", payload: { text: "a" } },
      { type: "run.lifecycle", payload: { state: "done" } },
    ]);
    await store.dropFullViews([key]);
    ingest.close();
    await store.close();
    const gateway = await server.startGateway({ port: 0, dataFolder: folder, log: "error" }, clock);
    try {
      const run = `${gateway.url}/v1/agent/runs/${key.run_id}`;
      for (const what of ["stream", "events", "replay.jsonl", "snapshot"]) {
        const full = await fetch(`${run}/${what}?detail=full`);
        expect([what, full.status]).toEqual([what, 410]);
        expect(await full.json()).toMatchObject({ error: { code: "KAI-STREAM-CONN-0002" } });
        const shown = await fetch(`${run}/${what}`);
        expect([what, shown.status]).toEqual([what, 200]);
        await shown.body?.cancel();
      }
      const many = await fetch(`${gateway.url}/v1/agent/stream?runs=${key.run_id}&detail=full`);
      expect(many.status).toBe(410);
    } finally {
      await gateway.close();
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

function retainedOn(trial: Trial): { store: server.Store; retained: ReturnType<typeof server.retention> } {
  const store = trial.store as unknown as server.Store;
  return { store, retained: server.retention(store, trial.clock, () => {}, defaults) };
}

/** A root with a child, in this state; null for one that goes on. */
async function tree(
  trial: Trial,
  state: (typeof states)[number] | null,
  tenant = "acme",
  more: Draft = { type: "text.delta", payload: { text: "b" } },
): Promise<Key> {
  const key = await newRun(trial, { tenant });
  const { spawn } = freshSpawn();
  await trial.ingest.append(key, [spawn, { type: "text.delta", payload: { text: "a" } }, more]);
  if (state !== null) await trial.ingest.append(key, [{ type: "run.lifecycle", payload: { state } }]);
  return key;
}

function sql(folder: string, command: string): void {
  const db = new DatabaseSync(join(folder, "runwire.db"), { timeout: 10_000 });
  try {
    db.exec(command);
  } finally {
    db.close();
  }
}

function filesWith(folder: string, word: string): readonly string[] {
  return readdirSync(folder).filter((file) => readFileSync(join(folder, file)).includes(word));
}
