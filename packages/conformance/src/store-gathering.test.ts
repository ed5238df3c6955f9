// What comes while a batch is on its way to the disk is decided on top of it, before anybody knows whether the disk
// takes it. So a disk that refuses must leave nothing of that: no number, no answer, no refusal.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Draft, RunwireError } from "@runwire/protocol";
import * as server from "@runwire/server";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { expectSoundTree, wholeLog } from "./suites/store/soundness.js";
import {
  asked,
  codeOf,
  type HeldClock,
  heldClock,
  isSoak,
  lawMsMax,
  newRun,
  tenant,
} from "./suites/store/trial.js";

/** A disk that answers when it is told to. */
interface HeldDisk {
  /** Writes that wait for an answer. */
  readonly writes: number;
  answer(ok: boolean): Promise<void>;
  /** From now on at once. */
  letGo(): void;
}

type Writer = ReturnType<typeof server.writerHere>;

function heldDisk(): { readonly disk: HeldDisk; open(writer: Writer): Writer } {
  const held: ((ok: boolean) => void)[] = [];
  let isFree = false;
  return {
    disk: {
      get writes() {
        return held.length;
      },
      async answer(ok) {
        held.shift()?.(ok);
        await settled();
      },
      letGo() {
        isFree = true;
        for (const go of held.splice(0)) go(true);
      },
    },
    open: (writer) => ({
      ...writer,
      async write(list) {
        const ok = isFree || (await new Promise<boolean>((resolve) => held.push(resolve)));
        if (!ok) throw new RunwireError("KAI-SERVER-STORE-0002");
        await writer.write(list);
      },
    }),
  };
}

/** All that can happen without the disk has happened. */
async function settled(): Promise<void> {
  for (let turns = 0; turns < 5; turns++) await new Promise((resolve) => setImmediate(resolve));
}

async function onHeldDisk(
  law: (
    parts: Pick<ReturnType<typeof opened>, "store" | "ingest"> & {
      readonly disk: HeldDisk;
      readonly clock: HeldClock;
      reopen(): Promise<void>;
    },
  ) => Promise<void>,
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "runwire-gathering-"));
  const { disk, open } = heldDisk();
  const clock = heldClock();
  let now = opened(folder, clock, open);
  const close = async (): Promise<void> => {
    disk.letGo();
    now.ingest.close();
    await now.store.close();
  };
  try {
    await law({
      disk,
      clock,
      get store() {
        return now.store;
      },
      get ingest() {
        return now.ingest;
      },
      async reopen() {
        await close();
        now = opened(folder, clock, (writer) => writer);
      },
    });
  } finally {
    await close();
    rmSync(folder, { recursive: true, force: true });
  }
}

function opened(folder: string, clock: HeldClock, open: (writer: Writer) => Writer) {
  const store = server.sqliteStore({
    path: join(folder, "runwire.db"),
    durability: "os",
    clock,
    openWriter: (path, durability) => open(server.writerHere(path, durability)),
  });
  const ingest = server.ingest(store, server.transcripts(store), { after: () => () => {} });
  return { store, ingest };
}

const step = (name: string): Draft => ({ type: "step.boundary", payload: { step_id: name } });
const end: Draft = { type: "run.lifecycle", payload: { state: "aborted", reason: null } };

describe("what comes while a batch is on its way to the disk", () => {
  it("is decided meanwhile, and written as soon as the disk is free", () =>
    onHeldDisk(async ({ disk, ingest, store }) => {
      const creating = newRun({ ingest });
      await settled();
      await disk.answer(true);
      const key = await creating;
      const first = ingest.append(key, [step("a")]);
      await settled();
      let isDecided = false;
      const second = ingest.change(key, (commit) => {
        isDecided = true;
        commit.write(key.run_id, step("b"));
      });
      const third = ingest.append(key, [step("c")]);
      await settled();
      expect({ isDecided, writes: disk.writes }).toEqual({ isDecided: true, writes: 1 });
      expect((await store.head(key))?.views.full.pos).toBe(2);
      await disk.answer(true);
      expect(await first).toMatchObject({ first_pos: 3 });
      expect(disk.writes).toBe(1);
      await disk.answer(true);
      await second;
      expect(await third).toMatchObject({ first_pos: 5 });
    }));

  it("is not counted among the turns of its session, nor are others fewer for it", () =>
    onHeldDisk(async ({ disk, ingest, store }) => {
      const create = () => ingest.create(tenant, { ...asked(), session_id: "ses_1" });
      const totals: (number | undefined)[] = [];
      for (let turns = 0; turns < 3; turns++) {
        const creating = create();
        await settled();
        totals.push((await store.session(tenant, "ses_1", 10))?.turns_total);
        await disk.answer(true);
        await creating;
      }
      expect(totals).toEqual([undefined, 1, 2]);
    }));

  it("is decided anew where the disk refuses that batch: numbers, and who is refused", () =>
    onHeldDisk(async ({ disk, ingest, store }) => {
      const creating = newRun({ ingest });
      await settled();
      await disk.answer(true);
      const key = await creating;
      const ending = codeOf(ingest.append(key, [step("a"), end]));
      await settled();
      // Too late, if the end is stored; and nobody knows yet whether it is.
      let told = false;
      const late = ingest.append(key, [step("b")]).finally(() => {
        told = true;
      });
      await settled();
      expect(told).toBe(false);
      await disk.answer(false);
      expect(await ending).toBe("KAI-SERVER-STORE-0002");
      await disk.answer(true);
      expect(await late).toMatchObject({ first_pos: 3, last_pos: 3 });
      expect((await wholeLog(store, key, "full")).map(({ type }) => type)).toEqual([
        "run.lifecycle",
        "turn.submitted",
        "step.boundary",
      ]);
    }));

  it("keeps the lease of its run, whenever the sweep comes [RW-LEASE-2]", () =>
    onHeldDisk(async ({ disk, clock, ingest, store }) => {
      const leaseMs = 10_000;
      const creating = newRun({ ingest }, { lease_ms: leaseMs });
      await settled();
      await disk.answer(true);
      const key = await creating;
      clock.pass(leaseMs - 1);
      const appending = ingest.append(key, [step("a")]);
      await settled();
      clock.pass(1);
      const swept = ingest.sweep();
      // What the sweep wants waits for the next turn of the loop, and the disk is quicker.
      for (let steps = 0; steps < 20; steps++) await Promise.resolve();
      disk.letGo();
      await Promise.all([appending, swept]);
      expect((await store.head(key))?.state).toBe("running");
    }));

  it("is told that it is refused although the disk refuses batch after batch", () =>
    onHeldDisk(async ({ disk, ingest }) => {
      const creating = newRun({ ingest });
      await settled();
      await disk.answer(true);
      const key = await creating;
      const refused: (string | undefined)[] = [];
      for (let batches = 0; batches < 5; batches++) {
        void codeOf(ingest.append(key, [step("a")]));
        if (batches === 0)
          void codeOf(ingest.append({ tenant, run_id: "run_none" }, [step("b")])).then((code) => {
            refused.push(code);
          });
        await settled();
        // Somebody else always comes meanwhile.
        void codeOf(ingest.append(key, [step("c")]));
        await settled();
        await disk.answer(false);
      }
      expect(refused).toEqual(["KAI-RUN-MISSING-0001"]);
    }));

  it("ends a run as done although its text is written all the while", () =>
    onHeldDisk(async ({ disk, ingest, store }) => {
      const creating = newRun({ ingest });
      await settled();
      await disk.answer(true);
      const key = await creating;
      const say = (text: string): Promise<unknown> =>
        codeOf(
          ingest.change(key, (commit) => {
            commit.write(key.run_id, { type: "text.delta", payload: { text } });
            commit.flush(key.run_id);
          }),
        );
      let ended: string | undefined;
      for (let batches = 0; batches < 60 && ended === undefined; batches++) {
        void say(`${batches} `);
        await settled();
        if (batches === 2)
          void ingest.append(key, [{ type: "run.lifecycle", payload: { state: "done", reason: null } }]).then(
            () => {
              ended = "done";
            },
            (error: RunwireError) => {
              ended = error.message;
            },
          );
        await settled();
        void say(`${batches}b `);
        await settled();
        await disk.answer(true);
      }
      disk.letGo();
      await settled();
      expect(ended).toBe("done");
      const log = await wholeLog(store, key, "default");
      const said = log.flatMap(({ type, payload }) =>
        type === "text.delta" ? [(payload as { text: string }).text] : [],
      );
      expect(log.at(-2)).toMatchObject({ type: "message.settled", payload: { text: said.join("") } });
    }));

  it(
    "holds in the log exactly what was answered, whatever the disk refuses, also after a restart",
    {
      timeout: lawMsMax,
    },
    () =>
      fc.assert(
        fc.asyncProperty(
          fc.array(
            fc.oneof(
              { weight: 6, arbitrary: fc.record({ does: fc.constant("append" as const), count: fc.nat(3) }) },
              { weight: 4, arbitrary: fc.record({ does: fc.constant("answer" as const), ok: fc.boolean() }) },
              { weight: 2, arbitrary: fc.record({ does: fc.constant("create" as const), key: fc.nat(2) }) },
              { weight: 1, arbitrary: fc.record({ does: fc.constant("end" as const) }) },
            ),
            { maxLength: 30 },
          ),
          (does) =>
            onHeldDisk(async (trial) => {
              const { disk, ingest } = trial;
              const creating = newRun({ ingest });
              await settled();
              await disk.answer(true);
              const key = await creating;
              const answers: Promise<void>[] = [];
              const stored: { readonly name: string; readonly pos: number }[] = [];
              const made = new Map<string, Set<string>>();
              let names = 0;
              const allowed = new Set(["KAI-SERVER-STORE-0002", "KAI-RUN-ENDED-0001"]);
              const refused = (error: unknown): void => {
                if (!(error instanceof RunwireError) || !allowed.has(error.code)) throw error;
              };
              for (const one of does) {
                if (one.does === "answer") await disk.answer(one.ok);
                else if (one.does === "end") answers.push(ingest.append(key, [end]).then(() => {}, refused));
                else if (one.does === "create") {
                  const under = `key-${one.key}.`;
                  const created = ingest.create(tenant, asked() as never, { key: under, digest: "same" });
                  const keep = ({ run_id }: { run_id: string }): void => {
                    made.set(under, (made.get(under) ?? new Set()).add(run_id));
                  };
                  answers.push(created.then(keep, refused));
                } else {
                  const batch = Array.from({ length: one.count + 1 }, () => `step-${names++}`);
                  const appended = ingest.append(key, batch.map(step));
                  const keep = ({ first_pos }: { first_pos: number | null }): void => {
                    for (const [i, name] of batch.entries()) stored.push({ name, pos: (first_pos ?? 0) + i });
                  };
                  answers.push(appended.then(keep, refused));
                }
                await settled();
              }
              disk.letGo();
              await Promise.all(answers);
              for (const runs of made.values()) expect(runs.size).toBe(1);
              for (let opens = 0; opens < 2; opens++) {
                const log = await wholeLog(trial.store, key, "full");
                const said = log.flatMap(({ pos, type, payload }) =>
                  type === "step.boundary" ? [{ name: (payload as { step_id: string }).step_id, pos }] : [],
                );
                expect(said).toEqual(stored.toSorted((a, b) => a.pos - b.pos));
                await expectSoundTree(trial.store, key);
                const { heads } = await trial.store.listRuns(tenant, { limit: 10 });
                const others = heads.map(({ run }) => run.run_id).filter((id) => id !== key.run_id);
                expect(new Set(others)).toEqual(new Set([...made.values()].flatMap((runs) => [...runs])));
                await trial.reopen();
              }
            }),
        ),
        { numRuns: isSoak ? 3000 : 60 },
      ),
  );
});
