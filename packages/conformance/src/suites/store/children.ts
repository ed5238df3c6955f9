// Children: each is mirrored into every ancestor, and ends before what spawned it. That mirrors are exact is
// part of soundness.ts; here are trees that are ended in every state.

import { type Draft, endsRun, is, isFinal, limits, type StoredEvent } from "@runwire/protocol";
import fc from "fast-check";
import { expect, it } from "vitest";
import { arbitraryRun } from "../../arbitrary-runs.js";
import { expectSoundTree, views, wholeLog } from "./soundness.js";
import { caseCount, codeOf, freshIds, newRun, onTrial } from "./trial.js";
import type { Open } from "./under-test.js";

export function childLaws(open: Open): void {
  it("a child's event has one id in every ancestor's log, and says who produced it [RW-CHILD-1]", () =>
    onTrial(open, async (trial) => {
      const key = await newRun(trial);
      const spawns = freshIds([
        { type: "child.spawn", payload: { child_id: "run_1" } },
        { type: "child.spawn", payload: { child_id: "run_2" }, child_id: "run_1" },
        { type: "child.spawn", payload: { child_id: "run_3" }, child_id: "run_2" },
        { type: "custom", payload: { said: "deep" }, child_id: "run_3" },
      ]);
      await trial.ingest.append(key, spawns);
      await expectSoundTree(trial.store, key);
      const line = [key.run_id, ...spawns.slice(1).map(({ child_id }) => child_id ?? "")];
      for (const view of views) {
        const found: StoredEvent[] = [];
        for (const run_id of line) {
          const events = await wholeLog(trial.store, { tenant: key.tenant, run_id }, view);
          found.push(...events.filter(({ type }) => type === "custom"));
        }
        expect(found.map(({ run_id }) => run_id)).toEqual(line);
        const deepest = line.at(-1) ?? "";
        expect(found.map(({ child_id }) => child_id)).toEqual([deepest, deepest, deepest, null]);
        expect(new Set(found.map(({ id }) => id)).size).toBe(1);
      }
    }));

  it("a run that ends closes what is open and ends its descendants, deepest first [RW-CHILD-2] [RW-CHILD-3]", () =>
    onTrial(open, async (trial) => {
      const ending = fc.constantFrom("done", "aborted", "error");
      await fc.assert(
        fc.asyncProperty(arbitraryRun({ opening: false }), fc.nat(), ending, async (run, pick, state) => {
          const key = await newRun(trial);
          const prefix = freshIds(run.drafts.slice(0, pick % run.drafts.length));
          const paused = prefix.findLast((d) => is(d, "run.lifecycle") && d.child_id == null);
          const resumed: Draft = { type: "run.lifecycle", payload: { state: "running" } };
          const drafts = paused === undefined ? prefix : [...prefix, resumed];
          await trial.ingest.append(key, drafts);
          const before = await expectSoundTree(trial.store, key);
          const live = [...before.values()].filter(({ head }) => head.state !== null && !isFinal(head.state));
          await trial.ingest.append(key, [{ type: "run.lifecycle", payload: { state, reason: "enough" } }]);
          const after = await expectSoundTree(trial.store, key);
          expect(after.get(key.run_id)?.head).toMatchObject({ state, reason: "enough" });
          for (const { run: ended } of live) {
            const log = after.get(ended.run_id);
            if (ended.parent_id !== null)
              expect(log?.head).toMatchObject({ state: "aborted", reason: "parent ended" });
            for (const view of views) expectClosed(log?.[view] ?? []);
            expectChildrenEndFirst(log?.full ?? []);
          }
        }),
        caseCount(20),
      );
    }));

  it("a child that ends ends no parent, and takes no more drafts [RW-STATE-4]", () =>
    onTrial(open, async (trial) => {
      const key = await newRun(trial);
      const [spawn, end] = freshIds([
        { type: "child.spawn", payload: { child_id: "run_1" } },
        { type: "run.lifecycle", payload: { state: "done" }, child_id: "run_1" },
      ]) as [Draft, Draft];
      await trial.ingest.append(key, [spawn, end]);
      expect((await trial.store.head(key))?.state).toBe("running");
      const late: Draft = { type: "custom", payload: {}, child_id: end.child_id ?? null };
      expect(await codeOf(trial.ingest.append(key, [late]))).toBe("KAI-RUN-CHILD-0001");
      await expectSoundTree(trial.store, key);
    }));

  it("children nest as deep as they may and no deeper, and a refused spawn leaves nothing [RW-CHILD-4]", () =>
    onTrial(open, async (trial) => {
      const key = await newRun(trial);
      const spawns = freshIds(
        Array.from({ length: limits.childDepthMax + 1 }, (_, level): Draft => {
          const payload = { child_id: `run_${level + 1}` };
          return level === 0
            ? { type: "child.spawn", payload }
            : { type: "child.spawn", payload, child_id: `run_${level}` };
        }),
      );
      const tooDeep = spawns.at(-1) as Draft;
      await trial.ingest.append(key, spawns.slice(0, -1));
      const before = await expectSoundTree(trial.store, key);
      expect(before.size).toBe(limits.childDepthMax + 1);
      expect(await codeOf(trial.ingest.append(key, [{ type: "custom", payload: {} }, tooDeep]))).toBe(
        "KAI-RUN-CHILD-0003",
      );
      expect(await expectSoundTree(trial.store, key)).toEqual(before);
    }));
}

/** Every call that has started has ended, and every request is answered, before the end. */
function expectClosed(events: readonly StoredEvent[]): void {
  const open = new Set<string>();
  const interrupted: boolean[] = [];
  for (const e of events) {
    if (e.child_id !== null) continue;
    if (is(e, "tool.start")) open.add(e.payload.call_id);
    if (is(e, "approval.requested")) open.add(e.payload.approval_id);
    if (is(e, "clarify.requested")) open.add(e.payload.clarify_id);
    if (is(e, "approval.resolved")) open.delete(e.payload.approval_id);
    if (is(e, "clarify.resolved")) open.delete(e.payload.clarify_id);
    if (is(e, "tool.end")) {
      open.delete(e.payload.call_id);
      const code = (e.payload.error as { code?: string } | null | undefined)?.code;
      if (code === "KAI-RUN-TOOL-0001") interrupted.push(e.payload.ok);
    }
  }
  expect([...open]).toEqual([]);
  expect(interrupted.filter((ok) => ok)).toEqual([]);
  expect(events.filter((e) => endsRun(e))).toHaveLength(1);
}

/** In a log, a run's end comes after the ends of all that it spawned. */
function expectChildrenEndFirst(events: readonly StoredEvent[]): void {
  const endAt = new Map<string, number>();
  const spawns: { readonly parent: string; readonly child: string }[] = [];
  for (const e of events) {
    const by = e.child_id ?? e.run_id;
    if (is(e, "run.lifecycle") && isFinal(e.payload.state)) endAt.set(by, e.pos);
    if (is(e, "child.spawn")) spawns.push({ parent: by, child: e.payload.child_id });
  }
  for (const { parent, child } of spawns) {
    expect(endAt.get(child) ?? Number.POSITIVE_INFINITY).toBeLessThan(endAt.get(parent) ?? 0);
  }
}
