// LOG: append is atomic over its writer, numbers are consecutive under many writers, read gives back what was
// appended, nothing follows the end, ids ascend whatever the clock does.

import type { Draft } from "@runwire/protocol";
import fc from "fast-check";
import { expect, it } from "vitest";
import { arbitraryFacts } from "../../arbitrary-json.js";
import { arbitraryRun } from "../../arbitrary-runs.js";
import { expectSoundTree, views, wholeLog } from "./soundness.js";
import {
  asked,
  caseCount,
  codeOf,
  freshIds,
  freshSpawn,
  newRun,
  onTrial,
  type Trial,
  tenant,
} from "./trial.js";
import type { Key, Open } from "./under-test.js";

export function logLaws(open: Open): void {
  it("a writer that throws stores nothing and takes nothing from the others of its commit [RW-LOG-2]", () =>
    onTrial(open, async (trial) => {
      const writer = fc.record({ drafts: fc.array(arbitraryFacts, { maxLength: 4 }), throws: fc.boolean() });
      await fc.assert(
        fc.asyncProperty(fc.array(writer, { minLength: 1, maxLength: 12 }), async (writers) => {
          const key = await newRun(trial);
          // All of them are asked in one turn of the loop, so a store that commits in groups has them in one.
          const answers = await Promise.allSettled(
            writers.map(({ drafts, throws }, i) =>
              trial.store.append(key, (commit) => {
                for (const payload of drafts) commit.write(key.run_id, { type: "custom", payload });
                if (throws) throw new Error(`writer ${i}`);
                return i;
              }),
            ),
          );
          expect(answers.map(({ status }) => status === "rejected")).toEqual(
            writers.map(({ throws }) => throws),
          );
          const kept = writers.filter(({ throws }) => !throws).flatMap(({ drafts }) => drafts);
          for (const view of views) {
            const events = (await wholeLog(trial.store, key, view)).slice(2);
            expect(events.map(({ payloadText }) => payloadText)).toEqual(
              kept.map((facts) => JSON.stringify(facts)),
            );
          }
          await expectSoundTree(trial.store, key);
        }),
        caseCount(25),
      );
    }));

  it("fifty writers on one run get consecutive numbers, each its own drafts in its own order [RW-LOG-1]", () =>
    onTrial(open, async (trial) => {
      const key = await newRun(trial);
      const appendsEach = 8;
      const answers = await Promise.all(
        Array.from({ length: 50 }, async (_, writer) => {
          const mine: { readonly at: number; readonly drafts: readonly Draft[] }[] = [];
          for (let turn = 0; turn < appendsEach; turn++) {
            const drafts = batchOf(writer, turn);
            const { first_pos, last_pos } = await trial.ingest.append(key, drafts);
            expect(last_pos - (first_pos ?? 0) + 1).toBe(drafts.length);
            // Answered means there: the writer reads back what it wrote at once.
            const [read] = (await trial.store.read(key, "full", last_pos - 1, 1 << 20)).events;
            expect(read?.payload).toEqual(drafts.at(-1)?.payload);
            expect(first_pos ?? 0).toBeGreaterThan(mine.at(-1)?.at ?? 0);
            mine.push({ at: first_pos ?? 0, drafts });
          }
          return mine;
        }),
      );
      const inOrder = answers.flat().sort((a, b) => a.at - b.at);
      const events = await wholeLog(trial.store, key, "full");
      expect(events.slice(2).map(({ payload }) => payload)).toEqual(
        inOrder.flatMap(({ drafts }) => drafts.map(({ payload }) => payload)),
      );
      await expectSoundTree(trial.store, key);
    }));

  it("read gives the rest of the log for every cursor and cut, in both views, also after a restart [RW-LOG-3]", () =>
    onTrial(open, async (trial) => {
      await fc.assert(
        fc.asyncProperty(arbitraryRun({ opening: false, childLevels: 1 }), async ({ drafts }) => {
          const key = await newRun(trial);
          await trial.ingest.append(key, freshIds(drafts));
          const before = await expectEveryCursor(trial, key);
          await trial.reopen();
          expect(await expectEveryCursor(trial, key)).toEqual(before);
        }),
        caseCount(8),
      );
    }));

  it("read gives whole batches back for every cursor of a long log [RW-LOG-3]", () =>
    onTrial(open, async (trial) => {
      const key = await newRun(trial);
      for (let turn = 0; turn < 20; turn++) {
        await trial.ingest.append(key, [...batchOf(1, turn), ...batchOf(2, turn), ...batchOf(3, turn + 2)]);
        trial.clock.pass(turn * 10);
      }
      await trial.ingest.change(key, (commit) => commit.tick(key.run_id));
      const before = await expectEveryCursor(trial, key);
      await trial.reopen();
      expect(await expectEveryCursor(trial, key)).toEqual(before);
    }));

  it("whoever reads a long log lets others come in between", () =>
    onTrial(open, async (trial) => {
      const { store } = trial;
      const key = await newRun(trial);
      await store.append(key, (commit) => {
        for (let i = 0; i < 5000; i++) commit.write(key.run_id, { type: "custom", payload: { i } });
      });
      const { full } = (await store.head(key))?.views ?? { full: { pos: 0 } };
      let turns = 0;
      const turn = (): void => {
        turns += 1;
        if (turns < 1000) setImmediate(turn);
      };
      setImmediate(turn);
      let reads = 0;
      for (let at = 0; at < full.pos; reads += 1)
        at = (await store.read(key, "full", at, 1e9)).events.at(-1)?.pos ?? full.pos;
      expect(turns).toBeGreaterThanOrEqual(reads - 1);
      expect(reads).toBeGreaterThan(4);
    }));

  it("a feed is read by its bytes too, however few entries those are", () =>
    onTrial(open, async (trial) => {
      const bytesMax = 256 * 1024;
      const content = "x".repeat(200 * 1024);
      for (let runs = 0; runs < 10; runs++)
        await trial.ingest.create(tenant, { ...asked(), messages: [{ role: "user", content }] });
      let entries = 0;
      for (;;) {
        const { events } = await trial.store.read(runsFeed(tenant), "default", entries, bytesMax);
        if (events.length === 0) break;
        expect(events.map(({ pos }) => pos)).toEqual(events.map((_, i) => entries + i + 1));
        const bytes = events.reduce((sum, { payloadText }) => sum + payloadText.length, 0);
        expect(bytes).toBeLessThanOrEqual(bytesMax);
        entries += events.length;
      }
      expect(entries).toBe(20);
    }));

  it("a transcript is kept only beyond the last one: whoever asks backwards leaves none at every position", () =>
    onTrial(open, async (trial) => {
      const key = await newRun(trial);
      const keptAt = async (pos: number) => (await trial.store.snapshotBefore(key, "full", pos))?.pos;
      for (const pos of [9, 8, 7, 2, 9, 12, 11]) await trial.store.keepSnapshot(key, "full", pos, "{}");
      const kept = await Promise.all([1, 8, 9, 11, 12, 100].map(keptAt));
      expect(kept).toEqual([undefined, undefined, 9, 9, 12, 12]);
      expect(await trial.store.snapshotBefore(key, "default", 100)).toBeUndefined();
      await trial.store.keepSnapshot(key, "default", 3, "{}");
      expect(await trial.store.snapshotBefore(key, "default", 100)).toMatchObject({ pos: 3 });
    }));

  it("nothing follows the end of a run [RW-LOG-4]", () =>
    onTrial(open, async (trial) => {
      await fc.assert(
        fc.asyncProperty(
          arbitraryRun({ opening: false, childLevels: 2 }),
          fc.boolean(),
          async (run, again) => {
            const key = await newRun(trial);
            const drafts = freshIds(run.drafts);
            await trial.ingest.append(key, drafts);
            const before = await expectSoundTree(trial.store, key);
            if (again) await trial.reopen();
            for (const { run: ended } of before.values()) {
              const at = { tenant: key.tenant, run_id: ended.run_id };
              const late: Draft = { type: "text.delta", payload: { text: "late" } };
              expect(await codeOf(trial.ingest.append(at, [late]))).toBe("KAI-RUN-ENDED-0001");
              expect(await codeOf(trial.store.append(at, (commit) => commit.write(ended.run_id, late)))).toBe(
                "KAI-RUN-ENDED-0001",
              );
              await trial.ingest.change(at, (commit) => commit.tick(ended.run_id));
            }
            expect(await expectSoundTree(trial.store, key)).toEqual(before);
          },
        ),
        caseCount(10),
      );
    }));

  it("ids and numbers ascend while the clock jumps back an hour and ahead ten years [RW-ID-2]", () =>
    onTrial(open, async (trial) => {
      const hourMs = 60 * 60 * 1000;
      const jump = fc.constantFrom(0, -hourMs, 10 * 365 * 24 * hourMs, -10 * 365 * 24 * hourMs, 1);
      const turn = fc.record({ jumpMs: jump, again: fc.nat(4).map((n) => n === 0), deltas: fc.nat(3) });
      await fc.assert(
        fc.asyncProperty(fc.array(turn, { minLength: 1, maxLength: 6 }), async (turns) => {
          const key = await newRun(trial);
          const { spawn, child_id } = freshSpawn();
          await trial.ingest.append(key, [spawn]);
          for (const { jumpMs, again, deltas } of turns) {
            trial.clock.jump(jumpMs);
            if (again) await trial.reopen();
            const text = (i: number): Draft => ({ type: "text.delta", payload: { text: `${i} ` } });
            const drafts = Array.from({ length: deltas }, (_, i) => text(i));
            await trial.ingest.append(key, [...drafts, { type: "custom", payload: {} }]);
            await trial.ingest.append(key, [...drafts.map((draft) => ({ ...draft, child_id }))]);
          }
          await trial.ingest.append(key, [{ type: "run.lifecycle", payload: { state: "done" } }]);
          await expectSoundTree(trial.store, key, { steadyClock: false });
          const feed = await wholeLog(trial.store, runsFeed(key.tenant), "default");
          expect(feed.map(({ pos }) => pos)).toEqual(feed.map((_, i) => i + 1));
          expect(feed.map(({ id }) => id)).toEqual(feed.map(({ id }) => id).sort());
        }),
        caseCount(10),
      );
    }));
}

export function runsFeed(tenant: string): Key {
  return { tenant, run_id: `feed:${tenant}:runs` };
}

function batchOf(writer: number, turn: number): readonly Draft[] {
  return Array.from(
    { length: 1 + ((writer + turn) % 4) },
    (_, i): Draft => ({
      type: i % 2 === 0 ? "custom" : "tool.output",
      payload: { text: "", writer, turn, i },
    }),
  );
}

/** Reads from every position, with small and large cuts, and gives back the two logs. */
async function expectEveryCursor({ store }: Trial, key: Key): Promise<unknown> {
  const logs = [];
  for (const view of views) {
    const whole = await wholeLog(store, key, view);
    for (let after = 0; after <= whole.length; after++) {
      const { events: cut } = await store.read(key, view, after, 1 << 20);
      expect(cut).toEqual(whole.slice(after, after + cut.length));
      if (after < whole.length) expect(cut.length).toBeGreaterThan(0);
    }
    for (const bytesMax of [1, 300, 5000]) expect(await wholeLog(store, key, view, bytesMax)).toEqual(whole);
    const seqMax = whole.at(-1)?.seq ?? 0;
    for (let seq = 1; seq <= seqMax; seq++) {
      expect(await store.posOfSeq(key, view, seq)).toBe(whole.find((e) => e.seq === seq)?.pos);
    }
    expect(await store.posOfSeq(key, view, seqMax + 1)).toBe(whole.length);
    logs.push(whole);
  }
  return logs;
}
