// Producers that retry: what is numbered is stored once, gaps and old epochs are refused, across restarts.

import type { Draft } from "@runwire/protocol";
import fc from "fast-check";
import { expect, it } from "vitest";
import { expectSoundTree, wholeLog } from "./soundness.js";
import { caseCount, codeOf, freshSpawn, newRun, onTrial } from "./trial.js";
import type { Open } from "./under-test.js";

interface Try {
  /** Against the epoch and the next number that the model knows. */
  readonly epochShift: number;
  readonly seqShift: number;
  readonly count: number;
  readonly again: boolean;
}

const aTry: fc.Arbitrary<Try> = fc.record({
  epochShift: fc.constantFrom(-1, 0, 0, 0, 1),
  seqShift: fc.constantFrom(-6, -3, -2, -1, 0, 0, 0, 0, 1, 2),
  count: fc.nat(5),
  again: fc.nat(9).map((n) => n === 0),
});

export function producerLaws(open: Open): void {
  it("a retry stores once, a gap and an old epoch store nothing, also after a restart [RW-PRODUCER-1] [RW-PRODUCER-2] [RW-PRODUCER-3]", () =>
    onTrial(open, async (trial) => {
      await fc.assert(
        fc.asyncProperty(fc.array(aTry, { minLength: 1, maxLength: 20 }), async (tries) => {
          const key = await newRun(trial);
          const { spawn, child_id } = freshSpawn();
          await trial.ingest.append(key, [spawn]);
          // Number n is always the same draft: a retry repeats itself. One in three says nothing new, one in
          // three is said by the child.
          const draftOf = (n: number): Draft => {
            if (n % 3 === 0) return { type: "run.lifecycle", payload: { state: "running" } };
            const said: Draft = { type: "custom", payload: { n } };
            return n % 3 === 1 ? { ...said, child_id } : said;
          };
          let epoch = 5;
          let stored = 0;
          let known = false;
          for (const { epochShift, seqShift, count, again } of tries) {
            if (again) await trial.reopen();
            const claim = {
              id: "constructor",
              epoch: epoch + epochShift,
              seq: Math.max(1, stored + 1 + seqShift),
            };
            const drafts = Array.from({ length: count }, (_, i) => draftOf(claim.seq + i));
            const asked = trial.ingest.append(key, drafts, claim);
            if (known && claim.epoch < epoch) {
              expect(await codeOf(asked)).toBe("KAI-PRODUCER-FENCED-0001");
            } else if (claim.seq > stored + 1 || (known && claim.epoch > epoch && claim.seq <= stored)) {
              expect(await codeOf(asked)).toBe("KAI-PRODUCER-GAP-0001");
            } else {
              const { last_producer_seq } = await asked;
              const reached = Math.max(stored, claim.seq + count - 1);
              // An epoch counts from its first write on.
              if (reached > stored) {
                known = true;
                epoch = claim.epoch;
              }
              stored = reached;
              expect(last_producer_seq).toBe(stored);
            }
          }
          const expected = Array.from({ length: stored }, (_, i) => i + 1).filter((n) => n % 3 !== 0);
          const events = await wholeLog(trial.store, key, "full");
          const said = events.filter(({ type }) => type === "custom");
          expect(said.map(({ payload }) => (payload as { n: number }).n)).toEqual(expected);
          expect(said.map((e) => e.child_id !== null)).toEqual(expected.map((n) => n % 3 === 1));
          await expectSoundTree(trial.store, key);
        }),
        caseCount(20),
      );
    }));

  it("an epoch that has written shuts out older ones, though it only repeated what is so [RW-PRODUCER-3]", () =>
    onTrial(open, async (trial) => {
      const key = await newRun(trial);
      const said: Draft = { type: "custom", payload: {} };
      await trial.ingest.append(key, [said], { id: "p", epoch: 1, seq: 1 });
      const same: Draft = { type: "run.lifecycle", payload: { state: "running" } };
      await trial.ingest.append(key, [same], { id: "p", epoch: 2, seq: 2 });
      await trial.reopen();
      expect(await codeOf(trial.ingest.append(key, [said], { id: "p", epoch: 1, seq: 3 }))).toBe(
        "KAI-PRODUCER-FENCED-0001",
      );
      expect(await wholeLog(trial.store, key, "full")).toHaveLength(3);
    }));

  it("a batch that only repeats what is so is remembered, also after a restart [RW-PRODUCER-1]", () =>
    onTrial(open, async (trial) => {
      const key = await newRun(trial);
      const same: Draft = { type: "run.lifecycle", payload: { state: "running" } };
      const claim = { id: "p", epoch: 0, seq: 1 };
      expect(await trial.ingest.append(key, [same, same], claim)).toMatchObject({ last_producer_seq: 2 });
      await trial.reopen();
      expect((await trial.store.head(key))?.producers.p).toEqual({ epoch: 0, seq: 2 });
      const next: Draft = { type: "custom", payload: {} };
      expect(await trial.ingest.append(key, [same, same, next], claim)).toMatchObject({
        last_producer_seq: 3,
      });
      expect(await wholeLog(trial.store, key, "full")).toHaveLength(3);
    }));

  it("a producer that hears of the end may repeat its last batch, and learns that it is stored [RW-PRODUCER-1]", () =>
    onTrial(open, async (trial) => {
      const key = await newRun(trial);
      const last: Draft = { type: "run.lifecycle", payload: { state: "done" } };
      const first = await trial.ingest.append(key, [last], { id: "p", epoch: 0, seq: 1 });
      await trial.reopen();
      const again = await trial.ingest.append(key, [last], { id: "p", epoch: 0, seq: 1 });
      expect(again).toEqual({ ...first, first_pos: null });
    }));
}
