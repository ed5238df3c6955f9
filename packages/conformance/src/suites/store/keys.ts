// A request under a key is done once, however often it comes; and a tenant has no more live runs than it may.

import fc from "fast-check";
import { expect, it } from "vitest";
import { expectSoundTree } from "./soundness.js";
import { asked, caseCount, codeOf, newRun, onTrial, tenant } from "./trial.js";
import type { Open } from "./under-test.js";

const idempotency = { key: "key-1", digest: "a" };

export function keyLaws(open: Open): void {
  it("a hundred creations under one key make one run, and each is told of it", () =>
    onTrial(open, async (trial) => {
      const made = await Promise.all(
        Array.from({ length: 100 }, () => trial.ingest.create(tenant, asked(), idempotency)),
      );
      expect(new Set(made.map(({ run_id }) => run_id)).size).toBe(1);
      expect(made.filter(({ replayed }) => replayed !== true)).toHaveLength(1);
      const { replayed: _, ...first } = made[0] ?? { run_id: "" };
      await trial.reopen();
      const again = await trial.ingest.create(tenant, asked(), idempotency);
      expect(again).toEqual({ ...first, replayed: true });
      expect((await trial.store.listRuns(tenant, { limit: 10 })).heads).toHaveLength(1);
    }));

  it("a key stands for one request of one tenant, also after a restart, until its run is erased", () =>
    onTrial(open, async (trial) => {
      const digest = fc.constantFrom("a", "b");
      const request = fc.record({
        key: fc.constantFrom("k", "l", "m"),
        digest,
        owner: fc.constantFrom("acme", "rival"),
      });
      const turn = fc.oneof(
        { arbitrary: request, weight: 8 },
        { arbitrary: fc.constantFrom("reopen" as const, "erase" as const), weight: 1 },
      );
      await fc.assert(
        fc.asyncProperty(fc.array(turn, { minLength: 5, maxLength: 25 }), async (turns) => {
          const made = new Map<string, { digest: string; run_id: string }>();
          const eraseAll = async () => {
            for (const [name, { run_id }] of made)
              await trial.store.eraseTree({ tenant: name.split("/")[0] ?? "", run_id });
            made.clear();
          };
          for (const taken of turns) {
            if (taken === "reopen") await trial.reopen();
            else if (taken === "erase") await eraseAll();
            else {
              const { key, digest: of, owner } = taken;
              const known = made.get(`${owner}/${key}`);
              const answer = trial.ingest.create(owner, asked(), { key, digest: of });
              if (known === undefined)
                made.set(`${owner}/${key}`, { digest: of, run_id: (await answer).run_id });
              else if (known.digest === of)
                expect(await answer).toMatchObject({ run_id: known.run_id, replayed: true });
              else expect(await codeOf(answer)).toBe("KAI-REQUEST-KEY-0001");
            }
          }
          await eraseAll();
        }),
        caseCount(10),
      );
    }));

  it("a child is spawned once under a key, also when its parent has ended since", () =>
    onTrial(open, async (trial) => {
      const key = await newRun(trial);
      const child = { prompt: "go" };
      const spawned = await Promise.all(
        Array.from({ length: 20 }, () => trial.ingest.spawn(key, child, idempotency)),
      );
      const { child_id } = spawned[0] ?? { child_id: "" };
      expect(spawned).toEqual(spawned.map((_, i) => (i === 0 ? { child_id } : { child_id, replayed: true })));
      expect((await expectSoundTree(trial.store, key)).size).toBe(2);
      await trial.ingest.append(key, [{ type: "run.lifecycle", payload: { state: "done" } }]);
      expect(await trial.ingest.spawn(key, child, idempotency)).toEqual({ child_id, replayed: true });
      // Under the same key a root, or a child of another run, is another request.
      expect(await codeOf(trial.ingest.create(tenant, asked(), idempotency))).toBe("KAI-REQUEST-KEY-0001");
      const other = await newRun(trial);
      expect(await codeOf(trial.ingest.spawn(other, child, idempotency))).toBe("KAI-REQUEST-KEY-0001");
    }));

  it("a creation that is refused leaves its key free", () =>
    onTrial(
      open,
      async (trial) => {
        const first = await newRun(trial);
        expect(await codeOf(trial.ingest.create(tenant, asked(), idempotency))).toBe("KAI-LIMIT-RUNS-0001");
        await trial.ingest.append(first, [{ type: "run.lifecycle", payload: { state: "done" } }]);
        const { replayed } = await trial.ingest.create(tenant, asked(), idempotency);
        expect(replayed).toBeUndefined();
        // What is answered again makes nothing, so no limit is in its way.
        expect(await trial.ingest.create(tenant, asked(), idempotency)).toMatchObject({ replayed: true });
      },
      { liveRunsMax: 1 },
    ));

  it("live runs are counted as they come and go, children among them, also inside one commit", () =>
    onTrial(
      open,
      async (trial) => {
        const started = await Promise.all(
          Array.from({ length: 8 }, () => codeOf(trial.ingest.create(tenant, asked()))),
        );
        expect(started.filter((code) => code === undefined)).toHaveLength(5);
        expect(started.filter((code) => code === "KAI-LIMIT-RUNS-0001")).toHaveLength(3);
        const { heads } = await trial.store.listRuns(tenant, { limit: 10 });
        const [first, second] = heads.map(({ run }) => ({ tenant, run_id: run.run_id }));
        if (first === undefined || second === undefined) throw new Error("five runs live");
        const live = () => trial.store.append(first, (commit) => commit.liveRuns());
        const rival = () =>
          trial.store.append({ tenant: "rival", run_id: "" }, (commit) => commit.liveRuns());
        await trial.ingest.spawn(first, { prompt: "help" });
        expect([await live(), await rival()]).toEqual([6, 0]);
        await newRun(trial, { tenant: "rival" });
        await trial.reopen();
        expect([await live(), await rival()]).toEqual([6, 1]);
        // Ending a run ends its child, and makes room at once.
        await trial.ingest.append(first, [{ type: "run.lifecycle", payload: { state: "done" } }]);
        expect(await live()).toBe(4);
        await trial.store.eraseTree(second);
        expect(await live()).toBe(3);
        await newRun(trial);
        await newRun(trial);
        expect(await codeOf(trial.ingest.create(tenant, asked()))).toBe("KAI-LIMIT-RUNS-0001");
      },
      { liveRunsMax: 5 },
    ));
}
