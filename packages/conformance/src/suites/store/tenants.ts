// Tenants see nothing of each other, and what is erased is gone.

import type { Draft } from "@runwire/protocol";
import { expect, it } from "vitest";
import { runsFeed } from "./log.js";
import { expectSoundTree, fold, views, wholeLog } from "./soundness.js";
import { treeOf } from "./tree.js";
import { codeOf, freshIds, newRun, onTrial, type Trial, tenant } from "./trial.js";
import type { Key, Open } from "./under-test.js";

export function tenantLaws(open: Open): void {
  it("another tenant's key shows and changes nothing [RW-TENANT-1]", () =>
    onTrial(open, async (trial) => {
      const key = await grown(trial);
      const child = (await treeOf(trial.store, key)).find(({ parent_id }) => parent_id !== null);
      const before = await expectSoundTree(trial.store, key);
      const transcript = JSON.stringify(fold(key.run_id, await wholeLog(trial.store, key, "default")));
      await trial.store.keepSnapshot(key, "default", 5, transcript);
      for (const run_id of [key.run_id, child?.run_id ?? "", runsFeed(tenant).run_id]) {
        const foreign: Key = { tenant: "rival", run_id };
        expect(await trial.store.head(foreign)).toBeUndefined();
        expect(await treeOf(trial.store, foreign)).toEqual([]);
        expect(await trial.store.isErased(foreign)).toBe(false);
        for (const view of views) {
          expect((await trial.store.read(foreign, view, 0, 1 << 20)).events).toEqual([]);
          expect(await trial.store.posOfSeq(foreign, view, 2)).toBe(0);
          expect(await trial.store.snapshotBefore(foreign, view, 100)).toBeUndefined();
        }
        const draft: Draft = { type: "custom", payload: {} };
        expect(await codeOf(trial.ingest.append(foreign, [draft]))).toBe("KAI-RUN-MISSING-0001");
        expect(await codeOf(trial.store.append(foreign, (commit) => commit.write(run_id, draft)))).toBe(
          "KAI-RUN-MISSING-0001",
        );
        expect(await trial.store.append(foreign, (commit) => commit.head(run_id))).toBeUndefined();
        await trial.store.keepSnapshot(foreign, "default", 6, "{}");
        await trial.store.eraseTree(foreign);
        trial.store.renew(foreign);
      }
      expect((await trial.store.listRuns("rival", { limit: 10 })).heads).toEqual([]);
      expect((await trial.store.snapshotBefore(key, "default", 100))?.transcriptText).toBe(transcript);
      expect(await expectSoundTree(trial.store, key)).toEqual(before);
      await trial.reopen();
      expect(await expectSoundTree(trial.store, key)).toEqual(before);
    }));

  it("an erased tree is gone at once and for good, and other trees are whole [RW-ERASE-1]", () =>
    onTrial(open, async (trial) => {
      const [first, second, third] = [await grown(trial), await grown(trial), await grown(trial)];
      const runs = await treeOf(trial.store, second);
      const kept = [await expectSoundTree(trial.store, first), await expectSoundTree(trial.store, third)];
      await trial.store.keepSnapshot(second, "default", 5, "{}");
      await trial.store.eraseTree(second);
      for (let opens = 0; opens < 2; opens++) {
        for (const { run_id } of runs) {
          const key = { tenant, run_id };
          expect(await trial.store.head(key)).toBeUndefined();
          expect(await trial.store.isErased(key)).toBe(true);
          expect(await trial.store.isErased({ tenant: "rival", run_id })).toBe(false);
          for (const view of views) {
            expect((await trial.store.read(key, view, 0, 1 << 20)).events).toEqual([]);
          }
          expect(await trial.store.snapshotBefore(key, "default", 100)).toBeUndefined();
          const late: Draft = { type: "custom", payload: {} };
          expect(await codeOf(trial.ingest.append(key, [late]))).toBe("KAI-STREAM-CONN-0002");
          expect(await codeOf(trial.ingest.append({ tenant: "rival", run_id }, [late]))).toBe(
            "KAI-RUN-MISSING-0001",
          );
          const again: Draft = { type: "child.spawn", payload: { child_id: run_id } };
          expect(await codeOf(trial.ingest.append(first, [again]))).toBe("KAI-RUN-CHILD-0003");
        }
        expect(await trial.store.due()).toEqual([]);
        expect([
          await expectSoundTree(trial.store, first),
          await expectSoundTree(trial.store, third),
        ]).toEqual(kept);
        const { heads } = await trial.store.listRuns(tenant, { limit: 10 });
        expect(heads.map(({ run }) => run.run_id)).toEqual([third.run_id, first.run_id]);
        await trial.reopen();
      }
    }));

  it("numbers of the run list are not used again after erasing and a restart [RW-ERASE-2]", () =>
    onTrial(open, async (trial) => {
      const feed = runsFeed(tenant);
      const key = await grown(trial);
      const before = await wholeLog(trial.store, feed, "default");
      await trial.store.eraseTree(key);
      await trial.reopen();
      await newRun(trial);
      const after = await wholeLog(trial.store, feed, "default");
      expect(after.map(({ pos }) => pos)).toEqual(after.map((_, i) => i + 1));
      expect(after.length).toBeGreaterThan(before.length);
      expect(after.at(before.length)?.id.localeCompare(before.at(-1)?.id ?? "")).toBe(1);
      // What the erased run said in the list is gone too.
      expect(after.slice(0, before.length).map(({ payloadText }) => payloadText)).toEqual(
        before.map(() => "{}"),
      );
    }));
}

/** A tree with two children, pending text and a title. */
async function grown(trial: Trial): Promise<Key> {
  const key = await newRun(trial);
  await trial.ingest.append(
    key,
    freshIds([
      { type: "child.spawn", payload: { child_id: "run_1" } },
      { type: "child.spawn", payload: { child_id: "run_2" }, child_id: "run_1" },
      { type: "text.delta", payload: { text: "said" }, child_id: "run_2" },
      { type: "text.delta", payload: { text: "pending" }, child_id: "run_2" },
      { type: "title", payload: { title: "a secret" } },
      { type: "text.delta", payload: { text: "once" } },
      { type: "text.delta", payload: { text: "twice" } },
      ...Array.from({ length: 30 }, (_, i): Draft => ({ type: "custom", payload: { i }, child_id: "run_1" })),
    ]),
  );
  return key;
}
