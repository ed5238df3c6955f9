// A tenant's world is its own: whatever another does, under the same ids, its answers and refusals are those of a store
// where the other does not exist. The same steps are taken in two stores, one of which has the stranger in it.

import type { Draft, StoredEvent, View } from "@runwire/protocol";
import fc from "fast-check";
import { expect, it } from "vitest";
import { runsFeed } from "./log.js";
import { views } from "./soundness.js";
import { treeOf } from "./tree.js";
import { asked, caseCount, onTrial, type Trial } from "./trial.js";
import type { Key, Open } from "./under-test.js";

const resident = "acme";
const stranger = "rival";
const runIds = ["run_1", "run_2", "run_3"] as const;

const step = fc.record({
  // The stranger does twice as much as the one who must not notice.
  tenant: fc.constantFrom(resident, stranger, stranger),
  does: fc.constantFrom(
    ...([
      "create",
      "create",
      "under",
      "spawn",
      "say",
      "say",
      "end",
      "erase",
      "snapshot",
      "renew",
      "wait",
      "sweep",
    ] as const),
    "reopen" as const,
  ),
  run: fc.constantFrom(...runIds),
  other: fc.constantFrom(...runIds),
  n: fc.nat(9),
});

type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;

export function strangerLaws(open: Open): void {
  it("whatever one tenant does under the same ids, another's world is as if it were alone [RW-TENANT-2]", () =>
    fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 12, maxLength: 24, size: "max" }), async (steps) => {
        const shared = await worldOf(open, steps, () => true);
        const alone = await worldOf(open, steps, ({ tenant }) => tenant === resident);
        expect(shared).toEqual(alone);
      }),
      caseCount(8),
    ));

  it("two tenants' runs of one id are two runs, also after a restart [RW-TENANT-2]", () =>
    onTrial(open, async (trial) => {
      for (const tenant of [resident, stranger] as const) {
        await take(trial, { tenant, does: "create", run: "run_1", other: "run_1", n: 0 });
        await take(trial, { tenant, does: "spawn", run: "run_1", other: "run_2", n: 0 });
        for (let n = 0; n < 30; n++)
          await trial.ingest.append({ tenant, run_id: "run_2" }, [
            { type: "custom", payload: { tenant, n } },
          ]);
      }
      await trial.store.eraseTree({ tenant: stranger, run_id: "run_1" });
      await trial.reopen();
      const key = { tenant: resident, run_id: "run_1" };
      const { events } = await trial.store.read(key, "full", 5, 1 << 20);
      expect(events.map(({ payload }) => payload)).toContainEqual({ tenant: resident, n: 29 });
      expect(events.filter(({ payloadText }) => payloadText.includes(stranger))).toEqual([]);
      expect(await trial.store.isErased(key)).toBe(false);
    }));
}

/** Everything that the resident is answered on the way, and finds at the end. */
async function worldOf(
  open: Open,
  steps: readonly Step[],
  happens: (step: Step) => boolean,
): Promise<readonly unknown[]> {
  const answers: unknown[] = [];
  await onTrial(open, async (trial) => {
    for (const taken of steps) {
      // Time and restarts are nobody's.
      if (taken.does === "wait") {
        trial.clock.pass(taken.n * 2000);
        // What is due goes now, and not when a real timer rings, which is sooner in one world than in the other.
        for (const run of runIds) await tick(trial, run);
      } else if (taken.does === "reopen") await trial.reopen();
      else if (taken.does === "sweep") await trial.ingest.sweep();
      else if (happens(taken)) {
        const answer = await take(trial, taken).catch((error: unknown) => String(error));
        if (taken.tenant === resident) answers.push([answer, await found(trial, taken.run)]);
      }
    }
    for (const run of runIds) answers.push(await found(trial, run));
    answers.push((await trial.store.due()).filter(({ key }) => key.tenant === resident));
  });
  return JSON.parse(withoutGivenIds(JSON.stringify(answers))) as readonly unknown[];
}

async function tick({ ingest }: Trial, run: string): Promise<void> {
  const key: Key = { tenant: resident, run_id: run };
  await ingest
    .change(key, (commit) => commit.tick(run))
    .catch((error: unknown) => {
      if ((error as { code?: unknown }).code === undefined) throw error;
    });
}

async function take({ store, ingest }: Trial, { tenant, does, run, other, n }: Step): Promise<unknown> {
  const key: Key = { tenant, run_id: run };
  const drafts: readonly Draft[] = Array.from({ length: n }, (_, i) =>
    i % 3 === 2
      ? { type: "title", payload: { title: `${i}` } }
      : { type: "text.delta", payload: { text: `${i}` } },
  );
  const claim = { id: "producer", epoch: 1, seq: 1 };
  switch (does) {
    case "under":
      return ingest.create(tenant, asked(1000 + n), { key: other, digest: run });
    case "create":
      return ingest.change(key, (commit) => {
        commit.create({
          tenant,
          run_id: run,
          parent_id: null,
          root_id: run,
          depth: 0,
          created_at: new Date(commit.nowMs).toISOString(),
          session_id: null,
          agent: null,
          planning_gate: "off",
          external: true,
          lease_ms: 5000,
          metadata: {},
          idempotency: n % 2 === 0 ? null : { key: other, digest: run },
        });
        commit.write(run, { type: "run.lifecycle", payload: { state: "running", reason: null } });
      });
    case "spawn":
      return ingest.append(key, [{ type: "child.spawn", payload: { child_id: other } }]);
    case "say":
      return ingest.append(key, drafts, claim);
    case "end":
      return ingest.append(key, [{ type: "run.lifecycle", payload: { state: "aborted" } }]);
    case "erase":
      return store.eraseTree(key);
    case "snapshot":
      return store.keepSnapshot(key, "default", n, JSON.stringify({ tenant, n }));
    case "renew":
      return store.renew(key);
    default:
      return undefined;
  }
}

/** All that can be read of a run of the resident, and of its list. */
async function found({ store }: Trial, run: string): Promise<unknown> {
  const key: Key = { tenant: resident, run_id: run };
  const feed = runsFeed(resident);
  const read = await Promise.all(
    views.map(async (view) => ({
      events: await readFrom(store, key, view, 0),
      rest: await readFrom(store, key, view, 2),
      posOfSeq: await store.posOfSeq(key, view, 2),
      snapshot: await store.snapshotBefore(key, view, 5),
    })),
  );
  return {
    read,
    head: await store.head(key),
    erased: await store.isErased(key),
    tree: await treeOf(store, key),
    list: (await store.listRuns(resident, { limit: 10 })).heads,
    feed: await readFrom(store, feed, "default", 0),
  };
}

/** A log is read in parts, by where they lie; what lies where depends on all that share the store. */
async function readFrom(
  store: Trial["store"],
  key: Key,
  view: View,
  after: number,
): Promise<readonly StoredEvent[]> {
  const read: StoredEvent[] = [];
  for (;;) {
    const { events } = await store.read(key, view, after + read.length, 1 << 20);
    if (events.length === 0) return read;
    for (const e of events) read.push(e);
  }
}

/** Ids that the store gives differ from store to store; each becomes the number of its first appearance. */
function withoutGivenIds(text: string): string {
  const seen = new Map<string, number>();
  return text.replace(/\b[a-z]+_[0-9A-HJKMNP-TV-Z]{26}\b/g, (id) => {
    const number = seen.get(id) ?? seen.size;
    seen.set(id, number);
    return `id_${number}`;
  });
}
