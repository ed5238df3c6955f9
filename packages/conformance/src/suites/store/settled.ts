// A run that is done says once more what it said: `message.settled` holds exactly the model's text since the
// last one, whoever was writing meanwhile.

import { type Draft, is, isFinal, type StoredEvent } from "@runwire/protocol";
import fc from "fast-check";
import { expect, it } from "vitest";
import { arbitraryRun } from "../../arbitrary-runs.js";
import { expectSoundTree, views, wholeLog } from "./soundness.js";
import { caseCount, freshIds, newRun, onTrial } from "./trial.js";
import type { Open } from "./under-test.js";

const done: Draft = { type: "run.lifecycle", payload: { state: "done" } };

export function settledLaws(open: Open): void {
  it("a run that is done has settled exactly what its model said, without what its tools said [RW-SETTLE-1]", () =>
    onTrial(open, async (trial) => {
      const cuts = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 6 });
      await fc.assert(
        fc.asyncProperty(arbitraryRun({ opening: false, childLevels: 2 }), cuts, async (run, takes) => {
          const key = await newRun(trial);
          const drafts = freshIds(run.drafts);
          for (let from = 0, turn = 0; from < drafts.length; turn++) {
            const take = takes[turn % takes.length] ?? 1;
            await trial.ingest.append(key, drafts.slice(from, from + take));
            from += take;
            trial.clock.pass(40);
          }
          for (const log of (await expectSoundTree(trial.store, key)).values()) {
            for (const view of views) expectSettled(log[view]);
          }
        }),
        caseCount(20),
      );
    }));

  it("a message that was settled in the same append is not settled twice [RW-SETTLE-1]", () =>
    onTrial(open, async (trial) => {
      const piece = fc.oneof(
        fc.constantFrom<Draft>(
          { type: "text.delta", payload: { text: "a" } },
          { type: "text.delta", payload: { text: "b", call_id: "call_1" } },
          { type: "reasoning.delta", payload: { text: "r" } },
          { type: "custom", payload: {} },
        ),
        fc.nat(9).map((n): Draft => ({ type: "text.delta", payload: { text: `${n}` } })),
        fc.constant<Draft>({ type: "message.settled", payload: { text: "by the producer" } }),
      );
      const list = fc.array(piece, { maxLength: 8 });
      await fc.assert(
        fc.asyncProperty(list, list, list, async (first, second, last) => {
          const key = await newRun(trial);
          await trial.ingest.append(key, first);
          await trial.ingest.append(key, second);
          await trial.ingest.append(key, [...last, done]);
          expectSettled(await wholeLog(trial.store, key, "full"));
          await expectSoundTree(trial.store, key);
        }),
        caseCount(30),
      );
    }));

  it("text that others write while a run is being ended is settled or refused, never lost [RW-SETTLE-1]", () =>
    onTrial(open, async (trial) => {
      for (let round = 0; round < caseCount(20).numRuns; round++) {
        const key = await newRun(trial);
        const say = (n: number) =>
          trial.ingest.append(key, [{ type: "text.delta", payload: { text: `${n} ` } }]);
        const writers = Array.from({ length: 12 }, (_, n) =>
          n === round % 12 ? trial.ingest.append(key, [done]) : say(n),
        );
        const answers = await Promise.allSettled(writers);
        expect(answers[round % 12]?.status).toBe("fulfilled");
        const events = await wholeLog(trial.store, key, "full");
        const stored = events.filter(({ type }) => type === "text.delta").length;
        expect(stored).toBe(answers.filter(({ status }) => status === "fulfilled").length - 1);
        expectSettled(events);
      }
    }));

  it("what is settled while a run is being ended is not settled again with what follows it [RW-SETTLE-1]", () =>
    onTrial(open, async (trial) => {
      const key = await newRun(trial);
      const say = (text: string): Draft => ({ type: "text.delta", payload: { text } });
      await trial.ingest.append(key, [say("a")]);
      await Promise.all([
        trial.ingest.append(key, [{ type: "message.settled", payload: { text: "a" } }, say("b")]),
        trial.ingest.append(key, [done]),
      ]);
      expectSettled(await wholeLog(trial.store, key, "full"));
      await expectSoundTree(trial.store, key);
    }));

  it("of a text that is too long for an event the beginning is settled, and no character is cut in two [RW-SETTLE-1]", () =>
    onTrial(open, async (trial) => {
      for (const shift of ["", "x"]) {
        const key = await newRun(trial);
        const text = `${shift}${"😀".repeat(80_000)}`;
        for (let times = 0; times < 9; times++)
          await trial.ingest.append(key, [{ type: "text.delta", payload: { text } }]);
        await trial.ingest.append(key, [done]);
        const settled = (await wholeLog(trial.store, key, "full")).filter((e) => is(e, "message.settled"));
        expect(settled).toMatchObject([{ payload: { truncated: true } }]);
        for (const { payload } of settled) {
          expect(payload.text).not.toMatch(/\p{Surrogate}/u);
          expect(text.repeat(9).startsWith(payload.text)).toBe(true);
        }
      }
    }));
}

/** Each message that the server settled holds the model's text since the one before; done leaves none open. */
function expectSettled(events: readonly StoredEvent[]): void {
  let said = "";
  let open = false;
  for (const e of events) {
    if (e.child_id !== null) continue;
    if (is(e, "text.delta") && e.payload.call_id == null) {
      said += e.payload.text;
      open = true;
    }
    if (is(e, "message.settled")) {
      if (e.payload.message_id?.startsWith("msg_")) expect(e.payload.text).toBe(said);
      said = "";
      open = false;
    }
    if (is(e, "run.lifecycle") && e.payload.state === "done") expect(open).toBe(false);
    if (is(e, "run.lifecycle") && isFinal(e.payload.state)) expect(e).toBe(ownLast(events));
  }
}

function ownLast(events: readonly StoredEvent[]): StoredEvent | undefined {
  return events.findLast(({ child_id }) => child_id === null);
}
