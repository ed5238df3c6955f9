// What hot rows become: segments. Events move from one to the other in steps, each part of a commit; no reader
// may notice, whenever it reads, and a damaged segment is refused and takes nobody else with it.

import { closeSync, copyFileSync, existsSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync, type DatabaseSyncInstance } from "@photostructure/sqlite";
import { type Draft, isCore } from "@runwire/protocol";
import * as server from "@runwire/server";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { arbitraryRun } from "./arbitrary-runs.js";
import { openSqlite } from "./suites/store/server-module.js";
import { expectSoundTree, views, wholeLog } from "./suites/store/soundness.js";
import {
  caseCount,
  codeOf,
  freshIds,
  freshSpawn,
  lawMsMax,
  newRun,
  onTrial,
  type Trial,
} from "./suites/store/trial.js";
import type { Key, Open } from "./suites/store/under-test.js";

const hotEventsMax = 4;
const always = openSqlite(server, { hotEventsMax });

describe("segments", { timeout: lawMsMax }, () => {
  it("show a log that grows as it is, however often it is read in between", () =>
    onTrial(always, async (trial) => {
      const turn = fc.record({
        run: fc.nat(3),
        drafts: fc.integer({ min: 1, max: 9 }),
        reads: fc.nat(3),
        // A delta without text is in the full log only, so that the two logs are not compacted alike.
        quiet: fc.boolean(),
      });
      await fc.assert(
        fc.asyncProperty(fc.array(turn, { minLength: 5, maxLength: 30 }), async (turns) => {
          const keys = [await newRun(trial), await newRun(trial), await newRun(trial), await newRun(trial)];
          const said = keys.map((): number[] => []);
          for (const [i, { run, drafts, reads, quiet }] of turns.entries()) {
            const key = keys[run] as Key;
            const numbers = Array.from({ length: drafts }, (_, n) => i * 100 + n);
            said[run]?.push(...numbers);
            await trial.ingest.append(
              key,
              numbers.map(
                (n): Draft => (quiet ? { type: "tool.output", payload: { text: "", n } } : numbered(n)),
              ),
            );
            await compacted(trial, key);
            for (const at of keys.slice(0, reads)) await wholeLog(trial.store, at, "full");
          }
          for (const [run, key] of keys.entries()) {
            const events = (await wholeLog(trial.store, key, "full")).slice(2);
            expect(events.map(({ payload }) => (payload as { n: number }).n)).toEqual(said[run]);
            await expectSoundTree(trial.store, key);
          }
        }),
        caseCount(15),
      );
    }));

  it("never show what another run has said, also after it was erased", () =>
    onTrial(always, async (trial) => {
      for (let round = 0; round < 12; round++) {
        const [kept, erased] = [await newRun(trial), await newRun(trial, { tenant: "rival" })];
        await trial.ingest.append(kept, [numbered(round)]);
        await trial.ingest.append(
          erased,
          Array.from({ length: 20 }, () => secret),
        );
        await compacted(trial, kept);
        for (const view of views) await wholeLog(trial.store, erased, view);
        await trial.store.eraseTree(erased);
        await trial.ingest.append(
          kept,
          Array.from({ length: 10 }, (_, n) => numbered(n)),
        );
        await compacted(trial, kept);
        await expectSoundTree(trial.store, kept);
        for (const view of views) {
          const events = await wholeLog(trial.store, kept, view);
          expect(events.filter(({ payloadText }) => payloadText.includes("secret"))).toEqual([]);
        }
      }
    }));

  it("hold every event exactly once at every step of compaction, also for a server that died there", () =>
    onTrial(laterAlways(), async (trial) => {
      const keys: Key[] = [];
      for (let run = 0; run < 8; run++) {
        const key = await newRun(trial);
        keys.push(key);
        for (let turn = 0; turn < 4; turn++) {
          const { spawn, child_id } = freshSpawn();
          await trial.ingest.append(key, [spawn, text("a"), text("b"), { ...text("c"), child_id }]);
          trial.clock.pass(70);
        }
      }
      const before = await Promise.all(keys.map((key) => expectSoundTree(trial.store, key)));
      await trial.reopen();
      const copies: string[] = [];
      for (let steps = 0; steps < 40 && hotEvents(trial.folder) > hotEventsMax; steps++) {
        // An append that writes nothing still takes a step of compaction with it.
        await trial.store.append(keys[0] as Key, () => {});
        copies.push(copied(trial.folder));
        for (const [i, key] of keys.entries()) {
          expect(await expectSoundTree(trial.store, key)).toEqual(before[i]);
        }
      }
      expect(copies.length).toBeGreaterThan(3);
      for (const copy of copies) {
        const { store } = openSqlite(server)(copy, trial.clock);
        for (const [i, key] of keys.entries()) {
          expect(await expectSoundTree(store, key)).toEqual(before[i]);
        }
        await store.close();
        rmSync(copy, { recursive: true, force: true });
      }
    }));

  it("are merged while they are small", () =>
    onTrial(always, async (trial) => {
      const key = await newRun(trial);
      for (let n = 0; n < 120; n++) await trial.ingest.append(key, [numbered(n), numbered(n), numbered(n)]);
      await wholeLog(trial.store, key, "full");
      const rows = sql(trial.folder, (db) =>
        db
          .prepare("SELECT view, bytes FROM segments WHERE tenant = ? AND log = ? ORDER BY last_pos")
          .all(key.tenant, key.run_id),
      ) as { view: string; bytes: number }[];
      for (const view of views) {
        const sizes = rows.filter((row) => row.view === view).map(({ bytes }) => bytes);
        expect(sizes.length).toBeGreaterThan(0);
        for (const size of sizes.slice(0, -1)) expect(size).toBeGreaterThanOrEqual(64 * 1024);
      }
      await expectSoundTree(trial.store, key);
    }));

  it("are, with the hot rows, what the view agent_run_events shows: the full view's core events", () =>
    onTrial(openSqlite(server, { hotEventsMax: 15 }), async (trial) => {
      await fc.assert(
        fc.asyncProperty(arbitraryRun({ opening: false }), async (run) => {
          const key = await newRun(trial);
          await trial.ingest.append(key, freshIds(run.drafts));
          for (const { full } of (await expectSoundTree(trial.store, key)).values()) {
            const rows = sql(trial.folder, (db) =>
              db.prepare("SELECT * FROM agent_run_events WHERE run_id = ? ORDER BY seq").all(full[0]?.run_id),
            ) as { [column: string]: unknown }[];
            const core = full.filter(({ type }) => isCore(type));
            expect(
              rows.map(({ payload, ...row }) => ({ ...row, payload: JSON.parse(String(payload)) })),
            ).toEqual(
              core.map(({ id, run_id, child_id, seq, type, ts, payload }) => ({
                id,
                run_id,
                koder_user_id: key.tenant,
                child_id,
                seq,
                type,
                ts,
                payload,
              })),
            );
          }
        }),
        caseCount(15),
      );
    }));

  for (const column of ["body", "marks"]) {
    it(`with a flipped bit in their ${column} are refused, and other logs and writers go on`, () =>
      onTrial(always, async (trial) => {
        await fc.assert(
          fc.asyncProperty(fc.noBias(fc.nat(0xffff)), fc.nat(7), async (at, bit) => {
            const [damaged, whole] = [await newRun(trial), await newRun(trial)];
            for (const key of [damaged, whole]) {
              await trial.ingest.append(
                key,
                Array.from({ length: 30 }, (_, n) => numbered(n)),
              );
            }
            await trial.reopen();
            flipBit(trial.folder, damaged, column, at, bit);
            for (const view of views) {
              const read = wholeLog(trial.store, damaged, view);
              if (view === "full") await expect(read).rejects.toThrow(/damaged/);
              else expect(await read).toHaveLength(32);
            }
            // More compaction meets the damaged segment, which is small and would be merged.
            for (let n = 0; n < 8; n += 2) await trial.ingest.append(damaged, [numbered(n), numbered(n + 1)]);
            await trial.ingest.append(whole, [numbered(99)]);
            await expectSoundTree(trial.store, whole);
            expect((await trial.store.head(damaged))?.views.full.pos).toBe(40);
            const { events: tail } = await trial.store.read(damaged, "full", 39, 1 << 20);
            expect(tail.map(({ payload }) => payload)).toEqual([{ n: 7 }]);
          }),
          caseCount(6),
        );
      }));
  }

  it("with a damaged number let no cursor point to another event than it did", () =>
    onTrial(always, async (trial) => {
      const key = await newRun(trial);
      const batch = Array.from({ length: 10 }, () => text("x".repeat(16 * 1024)));
      for (let batches = 0; batches < 4; batches++) await trial.ingest.append(key, batch);
      await compacted(trial, key);
      const seqs = new Set((await wholeLog(trial.store, key, "full")).map(({ seq }) => seq));
      const placesNow = (): Promise<unknown[]> =>
        Promise.all(
          [...seqs].map((seq) =>
            trial.store.posOfSeq(key, "full", seq).catch(({ code }: { code: string }) => code),
          ),
        );
      const places = await placesNow();
      const segments = sql(trial.folder, (db) =>
        db.prepare("SELECT segment, last_seq FROM segments WHERE log = ? AND view = 'full'").all(key.run_id),
      ) as { segment: number; last_seq: number }[];
      expect(segments.length).toBeGreaterThan(2);
      for (const { segment, last_seq } of segments) {
        const setTo = (seq: number): void =>
          sql(trial.folder, (db) => {
            db.prepare("UPDATE segments SET last_seq = ? WHERE segment = ?").run(seq, segment);
          });
        for (const damaged of [0, last_seq - 1, last_seq + 1, 2 ** 20]) {
          setTo(damaged);
          for (const [i, place] of (await placesNow()).entries())
            expect([places[i], "KAI-SERVER-STORE-0003"]).toContain(place);
        }
        setTo(last_seq);
      }
      expect(await placesNow()).toEqual(places);
    }));

  it("on pages that are lost are refused as damaged, and who appends goes on", () =>
    onTrial(always, async (trial) => {
      const [lost, live] = [await newRun(trial), await newRun(trial)];
      await trial.ingest.append(
        lost,
        Array.from({ length: 500 }, (_, n) => numbered(n)),
      );
      await compacted(trial, lost);
      await trial.reopen(() => losePages(trial.folder));
      expect(await codeOf(wholeLog(trial.store, lost, "full"))).toBe("KAI-SERVER-STORE-0003");
      await trial.ingest.append(live, [numbered(1)]);
      expect((await wholeLog(trial.store, live, "full")).at(-1)?.payload).toEqual({ n: 1 });
    }));

  it("keep up with whoever appends, however fast and however much", () =>
    onTrial(openSqlite(server, { hotEventsMax: 10 }), async ({ folder, ingest, store }) => {
      const key = await newRun({ ingest });
      const large: Draft = { type: "custom", payload: { text: "x".repeat(16 * 1024) } };
      const batch = Array.from({ length: 200 }, () => large);
      for (let batches = 0; batches < 8; batches++) {
        await ingest.append(key, batch);
        expect(hotEvents(folder)).toBeLessThan(3 * batch.length);
      }
      expect(await wholeLog(store, key, "full")).toHaveLength(8 * batch.length + 2);
    }));

  it("keep up with whoever appends to many runs at once", () =>
    onTrial(openSqlite(server, { hotEventsMax: 20 }), async (trial) => {
      const { folder, ingest, store } = trial;
      const keys = await Promise.all(Array.from({ length: 60 }, () => newRun(trial)));
      const rounds = 40;
      for (let round = 0; round < rounds; round++) {
        await Promise.all(keys.map((key) => ingest.append(key, [numbered(round)])));
        expect(hotEvents(folder)).toBeLessThan(5 * keys.length);
      }
      for (const key of keys) expect(await wholeLog(store, key, "full")).toHaveLength(rounds + 2);
    }));

  it("of one run that cannot be written keep no other run's events in memory", () =>
    onTrial(openSqlite(server, { hotEventsMax: 10 }), async (trial) => {
      const [damaged, live] = [await newRun(trial), await newRun(trial)];
      sql(trial.folder, (db) =>
        db.exec(
          `CREATE TRIGGER no BEFORE INSERT ON segments WHEN NEW.log = '${damaged.run_id}'
           BEGIN SELECT RAISE(ABORT, 'damaged'); END`,
        ),
      );
      for (let n = 0; n < 20; n++) await trial.ingest.append(damaged, [numbered(n)]);
      for (let n = 0; n < 120; n++) {
        await trial.ingest.append(live, [numbered(n)]);
        trial.clock.pass(1000);
      }
      expect(hotEvents(trial.folder)).toBeLessThan(60);
      for (const key of [damaged, live]) await expectSoundTree(trial.store, key);
    }));

  it("begin while what is in memory is little, also where most of it is what events are about", () =>
    onTrial(openSqlite(server), async ({ ingest, store }) => {
      const key = await newRun({ ingest });
      const names = Array.from({ length: 32 }, (_, i) => [`${"n".repeat(60)}_${i}`, "x".repeat(128)]);
      const said: Draft = { ...numbered(1), scope: Object.fromEntries(names) };
      await ingest.append(key, Array(100).fill(said));
      expect((store as server.Store).levels().hotBytes).toBeGreaterThan(600_000);
      const { events } = await store.read(key, "full", 2, 64 * 1024);
      expect(events.length).toBeLessThan(12);
    }));

  it("that cannot be written keep no append waiting and no close", () =>
    onTrial(openSqlite(server, { hotEventsMax: 10 }), async (trial) => {
      const key = await newRun(trial);
      sql(trial.folder, (db) =>
        db.exec("CREATE TRIGGER no BEFORE INSERT ON segments BEGIN SELECT RAISE(ABORT, 'no room'); END"),
      );
      for (let n = 0; n < 30; n++) await trial.ingest.append(key, [numbered(n)]);
      await expectSoundTree(trial.store, key);
      await trial.reopen();
      await expectSoundTree(trial.store, key);
      sql(trial.folder, (db) => db.exec("DROP TRIGGER no"));
      trial.clock.pass(60_000);
      await trial.ingest.append(key, [numbered(30)]);
      await trial.reopen();
      await expectSoundTree(trial.store, key);
      expect(hotEvents(trial.folder)).toBeLessThanOrEqual(10);
    }));
});

const secret: Draft = { type: "custom", payload: { said: "a secret" } };

function numbered(n: number): Draft {
  return { type: "custom", payload: { n } };
}

/** Waits until compaction has nothing left to do. */
async function compacted({ store, folder }: Trial, key: Key): Promise<void> {
  for (let steps = 0; steps < 100 && hotEvents(folder) > hotEventsMax; steps++)
    await store.append(key, () => {});
  expect(hotEvents(folder)).toBeLessThanOrEqual(hotEventsMax);
}

function text(text: string): Draft {
  return { type: "text.delta", payload: { text } };
}

/** Compacts nothing until it is opened again, then all the time. */
function laterAlways(): Open {
  let opens = 0;
  return (...given) => (opens++ === 0 ? openSqlite(server) : always)(...given);
}

function sql<T>(folder: string, ask: (db: DatabaseSyncInstance) => T): T {
  const db = new DatabaseSync(join(folder, "runwire.db"), { timeout: 10_000 });
  try {
    return ask(db);
  } finally {
    db.close();
  }
}

function hotEvents(folder: string): number {
  const ask =
    "SELECT coalesce(sum(1 + length(body) - length(replace(body, char(30), ''))), 0) AS events FROM hot";
  return sql(folder, (db) => db.prepare(ask).get() as { events: number }).events;
}

/** The files as a crash would leave them. */
function copied(folder: string): string {
  const copy = mkdtempSync(join(tmpdir(), "runwire-copy-"));
  for (const name of ["runwire.db", "runwire.db-wal"]) {
    if (existsSync(join(folder, name))) copyFileSync(join(folder, name), join(copy, name));
  }
  return copy;
}

/** The pages that only segments are on. */
function losePages(folder: string): void {
  const pages = sql(folder, (db) => db.prepare("SELECT pageno FROM dbstat WHERE name = 'segments'").all());
  const file = openSync(join(folder, "runwire.db"), "r+");
  for (const { pageno } of pages as { pageno: number }[]) {
    writeSync(file, Buffer.alloc(4096), 0, 4096, (pageno - 1) * 4096);
  }
  closeSync(file);
}

function flipBit(folder: string, key: Key, column: string, at: number, bit: number): void {
  sql(folder, (db) => {
    const row = db
      .prepare(
        `SELECT segment, ${column} AS bytes FROM segments WHERE tenant = ? AND log = ? AND view = 'full'`,
      )
      .get(key.tenant, key.run_id) as { segment: number; bytes: Uint8Array };
    const bytes = Uint8Array.from(row.bytes);
    const i = at % bytes.length;
    bytes[i] = (bytes[i] ?? 0) ^ (1 << bit);
    db.prepare(`UPDATE segments SET ${column} = ? WHERE segment = ?`).run(bytes, row.segment);
  });
}
