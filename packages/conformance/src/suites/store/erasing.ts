// Erasing many trees at once, and full views alone.

import type { Draft } from "@runwire/protocol";
import { expect, it } from "vitest";
import { expectSoundTree, fold, views, wholeLog } from "./soundness.js";
import { treeOf } from "./tree.js";
import { codeOf, freshIds, newRun, onTrial, type Trial, tenant } from "./trial.js";
import type { Key, Open } from "./under-test.js";

export function erasingLaws(open: Open): void {
  it("many trees of several tenants are erased at once, and no others [RW-ERASE-1]", () =>
    onTrial(open, async (trial) => {
      const kept = await ended(trial);
      const gone = [await ended(trial), await ended(trial, "rival"), await ended(trial)];
      const members: Key[] = [];
      for (const root of gone) {
        for (const { run_id } of await treeOf(trial.store, root))
          members.push({ tenant: root.tenant, run_id });
      }
      const before = await expectSoundTree(trial.store, kept);
      const never = { tenant, run_id: "run_never" };
      const child = members.find(({ run_id }) => gone.every((root) => root.run_id !== run_id)) as Key;
      await trial.store.eraseTrees([child, never]);
      expect(await trial.store.isErased(child)).toBe(false);
      await trial.store.eraseTrees([...gone, never]);
      for (const run of members) expect(await trial.store.isErased(run)).toBe(true);
      expect(await trial.store.isErased(never)).toBe(false);
      await trial.reopen();
      for (const run of members) expect(await trial.store.head(run)).toBeUndefined();
      expect(await expectSoundTree(trial.store, kept)).toEqual(before);
    }));

  it("whoever keeps something of a tree hears when it is erased, and is waited for", () =>
    onTrial(open, async (trial) => {
      const [root, other] = [await ended(trial), await ended(trial)];
      let heard: readonly Key[] = [];
      trial.store.onErased(async (roots) => {
        expect(await trial.store.isErased(root)).toBe(true);
        heard = roots.map(({ tenant: owner, run_id }) => ({ tenant: owner, run_id }));
      });
      await trial.store.eraseTree(root);
      expect(heard).toEqual([root]);
      expect(await trial.store.head(other)).toBeDefined();
    }));

  it("how long ago a run has ended is told by the store's clock, and by no other", () =>
    onTrial(open, async (trial) => {
      const [over, live] = [await ended(trial), await newRun(trial)];
      const before = (await trial.store.endedMs(over)) ?? Number.NaN;
      expect(before).toBeGreaterThanOrEqual(0);
      expect(await trial.store.endedMs(live)).toBeNull();
      for (const none of [
        { tenant, run_id: "run_never" },
        { ...over, tenant: "rival" },
      ])
        expect(await trial.store.endedMs(none)).toBeUndefined();
      await trial.reopen();
      expect(await trial.store.endedMs(over)).toBeGreaterThanOrEqual(before);
      await trial.store.eraseTree(over);
      expect(await trial.store.endedMs(over)).toBeUndefined();
    }));

  it("a tree that has lost its full view says the same in the other, and takes nothing more [RW-RETAIN-3]", () =>
    onTrial(open, async (trial) => {
      const [kept, live, lost] = [await ended(trial), await newRun(trial), await ended(trial)];
      const before = await expectSoundTree(trial.store, lost);
      const others = [await expectSoundTree(trial.store, kept), await expectSoundTree(trial.store, live)];
      const [pos, text] = [5, JSON.stringify(fold(lost.run_id, before.get(lost.run_id)?.default ?? []))];
      for (const view of views) await trial.store.keepSnapshot(lost, view, pos, text);
      await trial.store.dropFullViews([lost, live, { tenant: "rival", run_id: kept.run_id }]);
      for (let opens = 0; opens < 2; opens++) {
        for (const [run_id, log] of before) {
          const key = { tenant, run_id };
          expect(await wholeLog(trial.store, key, "full")).toEqual([]);
          expect(await wholeLog(trial.store, key, "default")).toEqual(log.default);
          expect(await trial.store.head(key)).toEqual({ ...log.head, fullGone: true });
        }
        // Also for a transcript that was on its way.
        await trial.store.keepSnapshot(lost, "full", pos, text);
        expect(await trial.store.snapshotBefore(lost, "full", 100)).toBeUndefined();
        expect(await trial.store.snapshotBefore(lost, "default", 100)).toEqual({ pos, transcriptText: text });
        expect(await codeOf(trial.ingest.append(lost, [{ type: "custom", payload: {} }]))).toBe(
          "KAI-RUN-ENDED-0001",
        );
        expect([await expectSoundTree(trial.store, kept), await expectSoundTree(trial.store, live)]).toEqual(
          others,
        );
        await trial.reopen();
      }
      await trial.store.eraseTree(lost);
      for (const run_id of before.keys()) expect(await trial.store.isErased({ tenant, run_id })).toBe(true);
    }));
}

/** A tree with a child, which has ended. */
async function ended(trial: Trial, owner: string = tenant): Promise<Key> {
  const key = await newRun(trial, { tenant: owner });
  const said = (text: string, child_id: string | null): Draft => ({
    type: "text.delta",
    payload: { text },
    child_id,
  });
  await trial.ingest.append(
    key,
    freshIds([
      { type: "child.spawn", payload: { child_id: "run_1" } },
      ...Array.from({ length: 20 }, (_, i) => said(`${i} `, i % 2 === 0 ? "run_1" : null)),
    ]),
  );
  await trial.ingest.append(key, [{ type: "run.lifecycle", payload: { state: "done" } }]);
  return key;
}
