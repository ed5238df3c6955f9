// SHAPE: the default log says what the full log says, at most ten times a second, and a restart in between
// changes nothing of it. What is sound is said in soundness.ts; here runs are produced in every rhythm.

import { type Draft, type Event, type Facts, limits, nodeTexts } from "@runwire/protocol";
import fc from "fast-check";
import { expect, it } from "vitest";
import { arbitraryRun } from "../../arbitrary-runs.js";
import { saidBy } from "./shaping.js";
import { expectSoundTree, views, wholeLog } from "./soundness.js";
import { treeOf } from "./tree.js";
import { caseCount, codeOf, freshIds, newRun, onTrial, type Trial } from "./trial.js";
import type { Key, Open } from "./under-test.js";

interface Beat {
  /** Drafts in one append. */
  readonly take: number;
  readonly passMs: number;
  readonly after: "nothing" | "tick" | "sweep";
}

const beat: fc.Arbitrary<Beat> = fc.record({
  take: fc.integer({ min: 1, max: 8 }),
  passMs: fc.oneof(fc.constant(0), fc.nat(30), fc.constantFrom(99, 100, 101), fc.nat(400)),
  after: fc.constantFrom("nothing", "tick", "sweep"),
});

/** How a producer hands over its drafts; repeated until all are handed over. */
const rhythm = fc.array(beat, { minLength: 1, maxLength: 12 });

export function shapeLaws(open: Open): void {
  it("both views say the same, in order, at most ten times a second [RW-SHAPE-1] [RW-SHAPE-2] [RW-SHAPE-3]", () =>
    onTrial(open, async (trial) => {
      await fc.assert(
        fc.asyncProperty(arbitraryRun({ opening: false }), rhythm, fc.nat(), async (run, beats, pick) => {
          const key = await newRun(trial);
          const drafts = freshIds(run.drafts);
          const half = pick % drafts.length;
          await produce(trial, key, drafts.slice(0, half), beats);
          await expectSoundTree(trial.store, key);
          await produce(trial, key, drafts.slice(half), beats);
          const logs = await expectSoundTree(trial.store, key);
          for (const { head } of logs.values()) expect(head.groups).toEqual([]);
        }),
        caseCount(50),
      );
    }));

  it("a store that stops without a tick says exactly the missing text when it is back [RW-SHAPE-4]", () =>
    onTrial(open, async (trial) => {
      await fc.assert(
        fc.asyncProperty(arbitraryRun({ opening: false }), rhythm, fc.nat(), async (run, beats, pick) => {
          const key = await newRun(trial);
          const drafts = freshIds(run.drafts.slice(0, pick % run.drafts.length));
          await produce(trial, key, drafts, beats);
          const before = await expectSoundTree(trial.store, key);
          await trial.reopen();
          const after = await expectSoundTree(trial.store, key);
          expect([...after.values()].map(({ head }) => head.groups)).toEqual(
            [...before.values()].map(({ head }) => head.groups),
          );
          await sweepOut(trial, key);
          const swept = await expectSoundTree(trial.store, key);
          for (const [run_id, { head, default: events, full }] of swept) {
            expect(head.groups).toEqual([]);
            // Nothing that was said is said again, and the full log has nothing new.
            expect(full).toEqual(before.get(run_id)?.full);
            expect(events.slice(0, before.get(run_id)?.default.length)).toEqual(before.get(run_id)?.default);
          }
        }),
        caseCount(10),
      );
    }));

  it("the first delta after a quiet 100 ms goes at once, the next ones wait for the tick [RW-SHAPE-2]", () =>
    onTrial(open, async (trial) => {
      const key = await newRun(trial);
      const say = (text: string) => trial.ingest.append(key, [{ type: "text.delta", payload: { text } }]);
      const said = async () =>
        (await wholeLog(trial.store, key, "default")).slice(2).map(({ payload }) => payload);
      trial.clock.pass(limits.tickMs);
      await say("a");
      expect(await said()).toEqual([{ text: "a" }]);
      await say("b");
      trial.clock.pass(limits.tickMs - 1);
      await say("c");
      expect(await said()).toEqual([{ text: "a" }]);
      trial.clock.pass(1);
      await trial.ingest.change(key, (commit) => commit.tick(key.run_id));
      expect(await said()).toEqual([{ text: "a" }, { text: "bc" }]);
      await trial.ingest.change(key, (commit) => commit.tick(key.run_id));
      expect(await said()).toHaveLength(2);
    }));

  it("what comes after a tick that an append has forestalled waits for the next tick, not for a sweep [RW-SHAPE-2]", async () => {
    const rings: (() => void)[] = [];
    let heard = () => {};
    const after = (_delayMs: number, ring: () => void) => {
      rings.push(ring);
      heard();
      return () => {};
    };
    await onTrial(
      (folder, clock) => open(folder, clock, { after }),
      async (trial) => {
        const key = await newRun(trial);
        const say = async (text: string, passMs: number) => {
          await trial.ingest.append(key, [{ type: "text.delta", payload: { text } }]);
          trial.clock.pass(passMs);
        };
        await say("a", 50);
        await say("b", 60);
        // Goes out with what the tick would have said.
        await say("c", 10);
        await say("d", 30);
        const next = new Promise<void>((resolve) => {
          heard = resolve;
        });
        rings.shift()?.();
        await next;
        trial.clock.pass(limits.tickMs);
        rings.shift()?.();
        // Commits are in order: this one comes after the tick.
        await trial.ingest.change(key, () => {});
        expect((await trial.store.head(key))?.groups).toEqual([]);
      },
    );
  });

  it("of text and reasoning the one that has waited longest goes first, and no tick says both [RW-SHAPE-2]", () =>
    onTrial(open, async (trial) => {
      const key = await newRun(trial);
      await trial.ingest.append(key, [{ type: "text.delta", payload: { text: "now" } }]);
      await trial.ingest.append(key, [
        { type: "reasoning.delta", payload: { text: "r1" } },
        { type: "text.delta", payload: { text: "t1" } },
        { type: "tool.args.delta", payload: { text: "{}", call_id: "call_1" } },
        { type: "reasoning.delta", payload: { text: "r2" } },
      ]);
      for (let ticks = 0; ticks < 2; ticks++) {
        trial.clock.pass(limits.tickMs);
        await trial.ingest.change(key, (commit) => commit.tick(key.run_id));
      }
      const events = (await wholeLog(trial.store, key, "default")).slice(3);
      expect(events.map(({ type, payload }) => [type, saidBy(type, payload)])).toEqual([
        ["reasoning.delta", "r1r2"],
        ["tool.args.delta", "{}"],
        ["text.delta", "t1"],
      ]);
    }));

  it("what nodes say in turns is told apart in both views [RW-SHAPE-7]", () =>
    onTrial(open, async (trial) => {
      const said = fc.record({
        type: fc.constantFrom("text.delta", "reasoning.delta"),
        payload: fc.record({ text: fc.string({ maxLength: 3 }), node: nodeName }, { requiredKeys: ["text"] }),
        scope: fc.record({ node_id: nodeName, turn_id: fc.constant("turn_1") }, { requiredKeys: [] }),
      }) as fc.Arbitrary<Draft>;
      await fc.assert(
        fc.asyncProperty(fc.array(said, { minLength: 1, maxLength: 20 }), rhythm, async (drafts, beats) => {
          const key = await newRun(trial);
          await produce(trial, key, drafts, beats);
          await sweepOut(trial, key);
          const full = await wholeLog(trial.store, key, "full");
          const joined = await wholeLog(trial.store, key, "default");
          for (const type of ["text.delta", "reasoning.delta"])
            expect(unitsByNode(joined, type)).toEqual(unitsByNode(full, type));
        }),
        caseCount(50),
      );
    }));

  it("a group that has joined 1 MiB goes at once, however soon after the last [RW-SHAPE-5]", () =>
    onTrial(open, async (trial) => {
      const key = await newRun(trial);
      const piece = "x".repeat(limits.deltaBytesMax);
      const deltas = Array.from(
        { length: limits.groupBytesMax / limits.deltaBytesMax + 2 },
        (): Draft => ({ type: "text.delta", payload: { text: piece } }),
      );
      await trial.ingest.append(key, [{ type: "text.delta", payload: { text: "first" } }]);
      await trial.ingest.append(key, deltas);
      const events = (await wholeLog(trial.store, key, "default")).slice(2);
      expect(events.map((e) => saidBy(e.type, e.payload).length)).toEqual([5, limits.groupBytesMax]);
      const logs = await expectSoundTree(trial.store, key);
      expect(logs.get(key.run_id)?.head.groups.map(({ text }) => text.length)).toEqual([2 * piece.length]);
    }));

  it("what is large beside its text is stored, and keeps no run from going on [RW-SHAPE-5]", () =>
    onTrial(open, async (trial) => {
      const large = "x".repeat(limits.eventBytesMax - 64 * 1024);
      const some = "y".repeat(limits.groupBytesMax - 64 * 1024);
      const cases: readonly (readonly Draft[])[] = [
        [
          { type: "tool.output", payload: { text: "b", large } },
          { type: "tool.output", payload: { text: some } },
        ],
        [
          { type: "audio.delta", payload: { chunks: [some] } },
          { type: "audio.delta", payload: { chunks: [large] } },
        ],
        [
          { type: "tool.output", payload: { text: "b", node: "n" } },
          ...Array.from({ length: 10 }, (_, n): Draft => {
            return { type: "tool.output", payload: { text: "c", node: `${n}${some}` } };
          }),
        ],
      ];
      for (const drafts of cases) {
        const key = await newRun(trial);
        // Goes at once, so that what follows waits for a tick.
        await trial.ingest.append(key, [{ type: "text.delta", payload: { text: "a" } }]);
        for (const draft of drafts) await trial.ingest.append(key, [draft]);
        await trial.ingest.append(key, [{ type: "run.lifecycle", payload: { state: "done" } }]);
        await expectSoundTree(trial.store, key);
      }
    }));

  it("a delta over 64 KiB is split, and no character is cut in two [RW-SHAPE-6]", () =>
    onTrial(open, async (trial) => {
      const unit = fc.constantFrom("a", "é", "語", "👩", "\u0000", "\uD83D", "\uDC69", "\n");
      const long = fc
        .tuple(fc.array(unit, { minLength: 1, maxLength: 7 }), fc.integer({ min: 60_000, max: 200_000 }))
        .map(([units, length]) =>
          units
            .join("")
            .repeat(Math.ceil(length / units.length))
            .slice(0, length),
        );
      await fc.assert(
        fc.asyncProperty(long, async (text) => {
          const key = await newRun(trial);
          await trial.ingest.append(key, [{ type: "text.delta", payload: { text, mark: "kept" } }]);
          const pieces = (await wholeLog(trial.store, key, "full")).slice(2).map(({ payload }) => payload);
          expect(pieces.map((piece) => saidBy("text.delta", piece)).join("")).toBe(text);
          for (const [i, piece] of pieces.entries()) {
            expect(piece).toHaveProperty("mark", "kept");
            const said = saidBy("text.delta", piece);
            expect(Buffer.byteLength(said)).toBeLessThanOrEqual(limits.deltaBytesMax);
            const next = pieces[i + 1];
            if (next === undefined) continue;
            const border = `${said.at(-1)}${saidBy("text.delta", next).charAt(0)}`;
            expect(/^[\uD800-\uDBFF][\uDC00-\uDFFF]$/.test(border)).toBe(false);
          }
          await expectSoundTree(trial.store, key);
        }),
        caseCount(8),
      );
    }));

  it("a delta that is split says of each piece who said it [RW-SHAPE-6] [RW-SHAPE-7]", () =>
    onTrial(open, async (trial) => {
      const long = fc.array(fc.record({ node: nodeName, chars: fc.integer({ min: 1, max: 90_000 }) }), {
        minLength: 1,
        maxLength: 4,
      });
      await fc.assert(
        fc.asyncProperty(long, async (nodes) => {
          const key = await newRun(trial);
          const text = nodes.map(({ chars }, i) => String(i).repeat(chars)).join("");
          await trial.ingest.append(key, [
            { type: "text.delta", payload: { text, nodes } },
            { type: "text.delta", payload: { text: "more", node: "n" } },
          ]);
          await sweepOut(trial, key);
          const said = nodes.map(({ node, chars }) => ({ node, chars }));
          for (const view of views) {
            const events = (await wholeLog(trial.store, key, view)).filter((e) => e.type === "text.delta");
            const turns = events.flatMap(({ payload }) => nodeTexts(payload as Facts));
            const units = turns.map(({ node, chars }) => `${node} `.repeat(chars)).join("");
            const all = [...said, { node: "n", chars: 4 }];
            expect(units).toBe(all.map(({ node, chars }) => `${node} `.repeat(chars)).join(""));
          }
        }),
        caseCount(8),
      );
    }));

  it("a text beside what sounds is not split, and nothing sounds twice [RW-SHAPE-6]", () =>
    onTrial(open, async (trial) => {
      const key = await newRun(trial);
      const payload = { chunks: ["A", "B"], text: "x".repeat(2 * limits.deltaBytesMax) };
      const large = { chunks: ["C"], text: "y".repeat(limits.groupBytesMax) };
      await trial.ingest.append(key, [
        { type: "audio.delta", payload },
        { type: "audio.delta", payload: large },
        { type: "run.lifecycle", payload: { state: "done" } },
      ]);
      await expectSoundTree(trial.store, key);
      for (const view of views) {
        const heard = (await wholeLog(trial.store, key, view)).filter((e) => e.type === "audio.delta");
        expect(heard.map((e) => e.payload)).toEqual([payload, large]);
      }
    }));

  it("a delta whose pieces would repeat more than an append may have is refused [RW-SHAPE-6]", () =>
    onTrial(open, async (trial) => {
      const key = await newRun(trial);
      const half = "x".repeat(limits.eventBytesMax / 2 - 64);
      const delta = (text: string, beside: string): Draft => ({
        type: "tool.output",
        payload: { text, beside },
      });
      expect(await codeOf(trial.ingest.append(key, [delta(half, half)]))).toBe("KAI-REQUEST-SIZE-0001");
      await trial.ingest.append(key, [delta(half, "x".repeat(1024)), delta("short", half)]);
      await expectSoundTree(trial.store, key);
    }));

  it("members that the protocol does not know never change what a delta says [RW-SHAPE-1]", () =>
    onTrial(open, async (trial) => {
      const key = await newRun(trial);
      // Each pair of deltas is one group: the second must not be lost behind the first one's odd member.
      const odd: readonly object[] = [
        { chunks: [] },
        { chunks: ["x"] },
        { process_id: "p1" },
        { text_length: 3 },
      ];
      for (const member of odd) {
        await trial.ingest.append(key, [
          { type: "text.delta", payload: { text: "a", ...member } },
          { type: "text.delta", payload: { text: "b" } },
          { type: "custom", payload: {} },
        ]);
      }
      await trial.ingest.append(key, [{ type: "run.lifecycle", payload: { state: "done" } }]);
      await expectSoundTree(trial.store, key);
      for (const view of views) {
        const events = await wholeLog(trial.store, key, view);
        const text = events.filter((e) => e.type === "text.delta").map((e) => saidBy(e.type, e.payload));
        expect(text.join("")).toBe("ab".repeat(odd.length));
      }
    }));

  it("output of two processes of one call is never joined [RW-SHAPE-1]", () =>
    onTrial(open, async (trial) => {
      const key = await newRun(trial);
      await trial.ingest.append(key, [
        { type: "process.output", payload: { text: "a", process_id: "p1", call_id: "c" } },
        { type: "process.output", payload: { text: "b", process_id: "p2", call_id: "c" } },
        { type: "process.output", payload: { text: "c", process_id: "p1", call_id: "c" } },
        { type: "custom", payload: {} },
      ]);
      await expectSoundTree(trial.store, key);
    }));
}

/** Appends in a rhythm. A run that has ended, or was ended by its parent, takes no more ticks. */
async function produce(
  trial: Trial,
  key: Key,
  drafts: readonly Draft[],
  beats: readonly Beat[],
): Promise<void> {
  for (let from = 0, turn = 0; from < drafts.length; turn++) {
    const { take, passMs, after } = beats[turn % beats.length] as Beat;
    await trial.ingest.append(key, drafts.slice(from, from + take));
    from += take;
    trial.clock.pass(passMs);
    if (after === "sweep") await trial.ingest.sweep();
    if (after === "tick") {
      const runs = await treeOf(trial.store, key);
      await trial.ingest.change(key, (commit) => {
        for (const { run_id } of runs) commit.tick(run_id);
      });
    }
  }
}

/** Sweeps until nothing is pending: each sweep says at least one group of each run. */
async function sweepOut(trial: Trial, key: Key): Promise<void> {
  const runs = await treeOf(trial.store, key);
  let groups = 0;
  for (const { tenant, run_id } of runs) {
    groups = Math.max(groups, (await trial.store.head({ tenant, run_id }))?.groups.length ?? 0);
  }
  for (let sweeps = 0; sweeps < groups; sweeps++) {
    trial.clock.pass(limits.tickMs);
    await trial.ingest.sweep();
  }
}

const nodeName = fc.constantFrom("think", "act");

/** What was said of a type, each unit with who said it. */
function unitsByNode(events: readonly Event[], type: string): readonly (readonly unknown[])[] {
  return events.flatMap((e) => {
    if (e.type !== type) return [];
    const payload = e.payload as Facts;
    const speakers = nodeTexts(payload, e.scope).flatMap(({ node, node_id, chars }) =>
      Array.from({ length: chars }, () => [node, node_id]),
    );
    return speakers.map((speaker, at) => [...speaker, String(payload.text).charAt(at)]);
  });
}
