// Leases and requests end by themselves: by the store's own monotonic clock, and by what a request says.

import { type Draft, is } from "@runwire/protocol";
import { expect, it } from "vitest";
import { expectSoundTree, wholeLog } from "./soundness.js";
import { treeOf } from "./tree.js";
import { freshIds, newRun, onTrial, type Trial } from "./trial.js";
import type { Key, Open } from "./under-test.js";

const leaseMs = 10_000;

export function leaseLaws(open: Open): void {
  it("a run whose lease runs out ends with an error and a reason, and its children with it [RW-LEASE-1]", () =>
    onTrial(open, async (trial) => {
      const key = await newRun(trial, { lease_ms: leaseMs });
      const drafts = freshIds([
        { type: "tool.start", payload: { call_id: "call_1", tool: "shell" } },
        { type: "text.delta", payload: { text: "half a" } },
        { type: "text.delta", payload: { text: " sentence" } },
        { type: "child.spawn", payload: { child_id: "run_1" } },
      ]);
      await trial.ingest.append(key, drafts);
      trial.clock.pass(leaseMs - 1);
      await trial.ingest.sweep();
      expect((await trial.store.head(key))?.state).toBe("running");
      // That sweep may have said pending text; whatever a sweep does is no sign of life.
      trial.clock.pass(1);
      await trial.ingest.sweep();
      const head = await trial.store.head(key);
      expect(head?.state).toBe("error");
      expect(head?.reason).toMatch(/lease/);
      const logs = await expectSoundTree(trial.store, key);
      expect([...logs.values()].map(({ head }) => head.state).sort()).toEqual(["aborted", "error"]);
      const ends = logs.get(key.run_id)?.full.filter((e) => is(e, "tool.end") && !e.payload.ok);
      expect(ends).toHaveLength(1);
    }));

  it("appending, renewing and a child's work keep a lease [RW-LEASE-2]", () =>
    onTrial(open, async (trial) => {
      const key = await newRun(trial, { lease_ms: leaseMs });
      const [spawn, said] = freshIds([
        { type: "child.spawn", payload: { child_id: "run_1" } },
        { type: "custom", payload: {}, child_id: "run_1" },
      ]) as [Draft, Draft];
      await trial.ingest.append(key, [spawn]);
      const child = { tenant: key.tenant, run_id: said.child_id ?? "" };
      const lives: readonly (() => unknown)[] = [
        () => trial.ingest.append(key, [{ type: "custom", payload: {} }]),
        () => trial.store.renew(key),
        () => trial.ingest.append(key, [said]),
        () => trial.ingest.append(child, [{ type: "custom", payload: {} }]),
      ];
      for (const live of lives) {
        trial.clock.pass(leaseMs - 1);
        await live();
        trial.clock.pass(leaseMs - 1);
        await trial.ingest.sweep();
        expect(await statesOf(trial, key)).toEqual(["running", "running"]);
        await live();
      }
      trial.clock.pass(leaseMs);
      await trial.ingest.sweep();
      expect(await statesOf(trial, key)).toEqual(["error", "aborted"]);
    }));

  it("a child ends with its parent, whichever of them a restart finds first [RW-LEASE-1]", () =>
    onTrial(open, async (trial) => {
      const key = await newRun(trial, { lease_ms: leaseMs });
      // An id that comes before its parent's.
      await trial.ingest.append(key, freshIds([{ type: "child.spawn", payload: { child_id: "run_0" } }]));
      await trial.reopen();
      trial.clock.pass(leaseMs);
      await trial.ingest.sweep();
      expect(await statesOf(trial, key)).toEqual(["error", "aborted"]);
    }));

  it("a lease that is renewed while the sweep is on its way is kept [RW-LEASE-2]", () =>
    onTrial(open, async (trial) => {
      const key = await newRun(trial, { lease_ms: leaseMs });
      trial.clock.pass(leaseMs);
      const swept = trial.ingest.sweep();
      trial.store.renew(key);
      await swept;
      expect((await trial.store.head(key))?.state).toBe("running");
      // The same for an append that is committed together with what the sweep wants.
      trial.clock.pass(leaseMs);
      await Promise.all([trial.ingest.append(key, [{ type: "custom", payload: {} }]), trial.ingest.sweep()]);
      expect((await trial.store.head(key))?.state).toBe("running");
    }));

  it("a restart starts leases anew, and the wall clock has no say in them [RW-LEASE-3]", () =>
    onTrial(open, async (trial) => {
      const key = await newRun(trial, { lease_ms: leaseMs });
      trial.clock.pass(leaseMs - 1);
      await trial.reopen();
      trial.clock.pass(leaseMs - 1);
      trial.clock.jump(10 * 365 * 24 * 60 * 60 * 1000);
      await trial.ingest.sweep();
      expect((await trial.store.head(key))?.state).toBe("running");
      trial.clock.jump(-20 * 365 * 24 * 60 * 60 * 1000);
      trial.clock.pass(1);
      await trial.ingest.sweep();
      expect((await trial.store.head(key))?.state).toBe("error");
    }));

  it("time in which the server did not run is nobody's, for no lease [RW-LEASE-3]", () =>
    onTrial(open, async (trial) => {
      const key = await newRun(trial, { lease_ms: leaseMs });
      trial.clock.pass(leaseMs - 1);
      trial.clock.freeze(100 * leaseMs);
      await trial.ingest.sweep();
      expect((await trial.store.head(key))?.state).toBe("running");
      trial.clock.pass(1);
      await trial.ingest.sweep();
      expect((await trial.store.head(key))?.state).toBe("error");
    }));

  it("a request past its time is resolved as expired, once, also after a restart [RW-LEASE-4]", () =>
    onTrial(open, async (trial) => {
      const key = await newRun(trial, { lease_ms: leaseMs });
      const expires_at = new Date(trial.clock.now() + 5000).toISOString();
      await trial.ingest.append(key, [
        { type: "approval.requested", payload: { approval_id: "appr_1", expires_at } },
        { type: "clarify.requested", payload: { clarify_id: "clar_1", question: "Which?", expires_at } },
        { type: "approval.requested", payload: { approval_id: "appr_2" } },
        { type: "approval.requested", payload: { approval_id: "appr_3", expires_at } },
        { type: "approval.resolved", payload: { approval_id: "appr_3", decision: "approve" } },
      ]);
      trial.clock.pass(4999);
      await trial.ingest.sweep();
      expect(await answersOf(trial, key)).toEqual([["approval.resolved", "appr_3", undefined]]);
      await trial.reopen();
      trial.clock.pass(1);
      for (let sweeps = 0; sweeps < 2; sweeps++) await trial.ingest.sweep();
      expect((await answersOf(trial, key)).slice(1)).toEqual([
        ["approval.resolved", "appr_1", "expired"],
        ["clarify.resolved", "clar_1", "expired"],
      ]);
      expect(await trial.store.due()).toEqual([]);
      await expectSoundTree(trial.store, key);
    }));
}

async function statesOf(trial: Trial, key: Key): Promise<readonly unknown[]> {
  const runs = await treeOf(trial.store, key);
  const byDepth = [...runs].sort((a, b) => a.depth - b.depth);
  const heads = byDepth.map(({ tenant, run_id }) => trial.store.head({ tenant, run_id }));
  return (await Promise.all(heads)).map((head) => head?.state);
}

async function answersOf(trial: Trial, key: Key): Promise<readonly unknown[]> {
  const events = await wholeLog(trial.store, key, "default");
  return events
    .filter(({ type }) => type === "approval.resolved" || type === "clarify.resolved")
    .map(({ type, payload }) => {
      const { approval_id, clarify_id, outcome } = payload as { [member: string]: unknown };
      return [type, approval_id ?? clarify_id, outcome];
    });
}
