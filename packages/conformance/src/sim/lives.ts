// What happens in a world: who writes, who reads, who answers, and what breaks. Each is a function of the dice alone.

import { type Event, RunwireError, type View } from "@runwire/protocol";
import { expect } from "vitest";
import type { Key } from "../suites/store/under-test.js";
import { expectWorked, interrupt, prompts, type Work, work } from "./agents.js";
import { expectBlobs, shortStory, withLarge } from "./blobs.js";
import { doubtedRows, doubts } from "./disk.js";
import { writeAndErase } from "./erasing.js";
import { expectFed, type Feeding, followList } from "./feeding.js";
import { expectBounded, heavyStory, readLossy, stopping } from "./lagging.js";
import { type Listing, listRuns } from "./listing.js";
import { lookAt } from "./looking.js";
import { server } from "./network.js";
import { type Decision, decide, expectDecided } from "./people.js";
import { expectProduced, type Production, produce, story } from "./producing.js";
import { expectHeard, type Reading, read, readMany } from "./reading.js";
import { writeInSessions } from "./sessions.js";
import { intrude, lookThrough } from "./strangers.js";
import { isThere, produceTree } from "./trees.js";
import { trust } from "./trusting.js";
import type { Circumstances, World } from "./world.js";

/** What everybody did and heard, to be compared with the logs in the end. */
export interface Told {
  readonly productions: Production[];
  /** Of a part of a tree: its run may have ended in any way. */
  readonly parts: Production[];
  readonly readings: Reading[];
  readonly decisions: (Key & { readonly of: readonly Decision[] })[];
  readonly works: Work[];
  readonly feedings: Feeding[];
  readonly listings: Listing[];
}

export const toldNothing = (): Told => ({
  productions: [],
  parts: [],
  readings: [],
  decisions: [],
  works: [],
  feedings: [],
  listings: [],
});

export type Life = (world: World, told: Told) => void;

/** A few runs with those who write, follow and answer them, until all is done. */
const runs: Life = (world, told) => {
  for (let i = world.whole(1, 3); i > 0; i--) {
    world.begin(`run ${i}`, async () => {
      const approvals = [`appr_${i}_a`, `appr_${i}_b`];
      const production = await produce(world, `run-${i}`, story(world, world.whole(10, 150), approvals));
      const { tenant, run_id } = production;
      told.productions.push(production);
      told.decisions.push({ tenant, run_id, of: decide(world, run_id, approvals, world.whole(1, 3)) });
      for (let r = world.whole(1, 4); r > 0; r--) {
        await world.sleep(world.whole(0, 3000));
        told.readings.push(read(world, `${r} of run ${i}`, run_id));
      }
      if (world.whole(0, 3) > 0) return;
      await world.sleep(world.whole(0, 20_000));
      await world.persistently(() => world.api.abort(run_id, "enough")).catch(() => {});
    });
  }
  chaos(world);
};

/** Trees down to the deepest level, read at every level, and all of them on one connection. */
const trees: Life = (world, told) => {
  told.feedings.push(followList(world, "a reader"));
  const roots: string[] = [];
  for (let i = world.whole(1, 2); i > 0; i--) {
    world.begin(`tree ${i}`, async () => {
      const tree = await produceTree(world, `tree-${i}`, world.whole(20, 200), (one) => told.parts.push(one));
      const { run_id } = tree.production;
      roots.push(run_id);
      told.productions.push(tree.production);
      told.readings.push(read(world, `of tree ${i}`, run_id));
      for (let r = Math.min(world.whole(0, 4), tree.children.length); r > 0; r--) {
        const child_id = world.pick(tree.children);
        if (await isThere(world, child_id, run_id))
          told.readings.push(read(world, `${r} of ${child_id}`, child_id));
      }
      const there: string[] = [];
      for (const child_id of tree.children)
        if (there.length < 10 && (await isThere(world, child_id, run_id))) there.push(child_id);
      told.readings.push(...readMany(world, `in tree ${i}`, [...roots, ...there]));
      if (world.whole(0, 3) > 0) return;
      await world.persistently(() => world.api.abort(run_id, "enough")).catch(() => {});
    });
  }
  world.begin("one that nobody writes on", async () => {
    const drafts = story(world, 20, []);
    const goneAfter = world.whole(0, 15);
    told.productions.push(await produce(world, "left", drafts, { lease_ms: 20_000, goneAfter }));
    told.readings.push(read(world, "of what is left", told.productions.at(-1)?.run_id ?? ""));
  });
  chaos(world, true);
};

/** The built-in agent, with somebody who watches it on a laptop. */
const agents: Life = (world, told) => {
  told.feedings.push(followList(world, "a reader"));
  world.begin("the agent", async () => {
    const one = await work(world, "demo", world.pick(prompts));
    told.works.push(one);
    if (world.whole(0, 1) === 0) interrupt(world, one);
    told.readings.push(read(world, "of the demo", one.run_id));
    const production = await produce(world, "beside", story(world, world.whole(5, 40), []));
    told.productions.push(production);
    const [laptop] = laptops;
    told.readings.push(
      ...world.time.as(laptop, () => [
        read(world, "on a laptop", one.run_id),
        ...readMany(world, "on a laptop", [one.run_id, production.run_id]),
      ]),
    );
  });
  chaos(world, true);
};

const laptops = ["a laptop"] as const;

/** Tenants who do the same at the same time: their children, requests, producers and keys have the same ids. */
const tenants: Life = (world, told) => {
  for (const mine of world.tenants) {
    const { tenant } = mine;
    told.feedings.push(followList(mine, "a reader"));
    lookThrough(mine, "somebody");
    intrude(mine, "somebody");
    mine.begin("tree", async () => {
      const tree = await produceTree(mine, "tree", mine.whole(20, 100), (one) => told.parts.push(one));
      const { run_id } = tree.production;
      told.productions.push(tree.production);
      told.readings.push(read(mine, "of the tree", run_id));
      for (const child_id of tree.children.slice(0, 2))
        if (await isThere(mine, child_id, run_id)) told.readings.push(read(mine, `of ${child_id}`, child_id));
      const there: string[] = [];
      for (const child_id of tree.children.slice(0, 5))
        if (await isThere(mine, child_id, run_id)) there.push(child_id);
      told.readings.push(...readMany(mine, "in the tree", [run_id, ...there]));
    });
    mine.begin("requests", async () => {
      const approvals = ["appr_1_a", "appr_1_b"];
      const asking = await produce(mine, "asking", story(mine, mine.whole(10, 80), approvals));
      const { run_id } = asking;
      told.productions.push(asking);
      told.decisions.push({ tenant, run_id, of: decide(mine, run_id, approvals, mine.whole(1, 2)) });
      told.readings.push(read(mine, "of what asks", run_id));
    });
    mine.begin("what is erased", () => writeAndErase(mine, "erased"));
  }
  chaos(world, true);
};

/** Readers that stop, each in its own way, while megabytes are written. */
const laggards: Life = (world, told) => {
  world.begin("a heavy run", async () => {
    const drafts = heavyStory(world, world.whole(2, 5) * 1_000_000);
    const heavy = await produce(world, "heavy", drafts, { everyMs: world.whole(10, 40) });
    const { run_id } = heavy;
    told.productions.push(heavy);
    told.readings.push(read(world, "beside", run_id));
    for (const name of ["one", "another"]) readLossy(world, name, run_id);
    for (const backpressure of ["drop", "lossless"] as const) {
      const name = `that stops, ${backpressure}`;
      const tap = stopping(world, name, run_id);
      if (backpressure === "lossless") expectBounded(world, name, heavy, tap);
      told.readings.push(read(world, name, run_id, { tap, backpressure }));
    }
  });
  chaos(world, true);
};

/** All kinds of producers, with large outputs, on a disk of which nobody knows what it has stored, and that fails to read. */
const faults: Life = (world, told) => {
  told.feedings.push(followList(world, "a reader"));
  told.listings.push(listRuns(world, "a reader"));
  const damagable: string[] = [];
  const readBy = (name: string, run_id: string, readers: number): void => {
    expectBlobs(world, run_id);
    lookAt(world, run_id);
    damagable.push(run_id);
    for (let r = readers; r > 0; r--) told.readings.push(read(world, `${r} of ${name}`, run_id));
  };
  world.begin("a run", async () => {
    const drafts = withLarge(world, story(world, world.whole(10, 80), ["appr_1"]));
    const made = await produce(world, "large", drafts);
    told.productions.push(made);
    told.decisions.push({
      tenant: world.tenant,
      run_id: made.run_id,
      of: decide(world, made.run_id, ["appr_1"], 2),
    });
    readBy("what is large", made.run_id, world.whole(1, 3));
  });
  world.begin("a run in sessions", async () => {
    const drafts = withLarge(world, story(world, world.whole(10, 60), []));
    const made = await writeInSessions(world, "sessions", drafts);
    told.productions.push(made);
    readBy("sessions", made.run_id, 1);
  });
  world.begin("one who trusts", async () => {
    const made = await trust(world, "trusted", world.whole(10, 40));
    told.productions.push(made);
    readBy("what is trusted", made.run_id, 1);
  });
  world.begin("short ones", async () => {
    for (let i = world.whole(3, 10); i > 0; i--) {
      const made = await produce(world, `short-${i}`, shortStory(world));
      expectBlobs(world, made.run_id);
      told.productions.push(made);
      await world.sleep(world.whole(0, 4000));
    }
  });
  if (world.whole(0, 1) === 0)
    world.begin("a tree", async () => {
      const tree = await produceTree(world, "tree", world.whole(20, 80), (one) => told.parts.push(one));
      told.productions.push(tree.production);
      told.readings.push(...readMany(world, "of it", [tree.production.run_id]));
    });
  else
    world.begin("the agent", async () => {
      const one = await work(world, "demo", world.pick(prompts));
      told.works.push(one);
      told.readings.push(read(world, "of the demo", one.run_id));
    });
  chaos(world, false, damagable);
};

export const lives = { runs, trees, agents, tenants, laggards, faults } as const;
export type LifeName = keyof typeof lives;

const slowly: Circumstances = { slowShare: 0.05 };
export const circumstances: { readonly [L in LifeName]: Circumstances } = {
  runs: {},
  trees: slowly,
  agents: slowly,
  tenants: { ...slowly, tenants: ["acme", "rival"] },
  laggards: slowly,
  faults: slowly,
};

/** What happens to servers, for a while: then the world calms down, and everybody can finish. */
function chaos(world: World, standsStill = false, damagable?: readonly string[]): void {
  world.begin("chaos", async () => {
    for (let left = world.whole(2, 12); left > 0; left--) {
      await world.sleep(world.whole(10, 4000));
      const what =
        damagable === undefined
          ? world.whole(0, standsStill ? 7 : 5)
          : world.pick([0, 1, 2, 4, 5, 6, 8, 8, 8, 9, 9, 10]);
      switch (what) {
        case 0:
          world.kill();
          break;
        case 1:
          await world.leave();
          break;
        case 2:
        case 3:
          await ambushed(world);
          break;
        case 4:
          world.disk.full = true;
          await world.sleep(world.whole(10, 3000));
          world.disk.full = false;
          break;
        case 6:
          await stopped(world, server, world.pick([100, 5000, 60_000, 400_000]));
          break;
        case 7:
          await stopped(world, world.pick(laptops), world.pick([20_000, 600_000, 3_600_000]));
          break;
        case 8:
          await doubted(world);
          break;
        case 9:
          world.reads.failShare = world.pick([0.1, 0.5, 1]);
          await world.sleep(world.whole(10, 10_000));
          world.reads.failShare = 0;
          break;
        case 10:
          world.reads.damaged = world.pick(damagable ?? []);
          await world.sleep(world.whole(10, 10_000));
          world.reads.damaged = undefined;
          break;
        default:
          world.time.jump(world.pick([-3_600_000, 60_000, 86_400_000]));
          world.network.cutAll();
      }
      await world.sleep(world.whole(0, 5000));
      await world.start();
    }
  });
}

/** A process that stands still while time goes on; its connections may not outlive that. */
async function stopped(world: World, owner: string, ms: number): Promise<void> {
  world.time.standStill(owner);
  world.network.strain(owner);
  await world.sleep(ms);
  if (world.whole(0, 1) === 0) world.network.cutAll(owner);
  world.time.goOn(owner);
}

/** Killed right before, or right after, something is stored. */
async function ambushed(world: World): Promise<void> {
  let isStruck = false;
  const callOff = world.disk.ambush(world.pick(["before", "after"]), () => {
    isStruck = true;
    world.kill();
  });
  for (let waits = 0; waits < 100 && !isStruck; waits++) await world.sleep(100);
  callOff();
}

/** Of the next write nobody knows whether it is stored, until somebody starts the server again. */
async function doubted(world: World): Promise<void> {
  const callOff = world.disk.doubt(world.pick(doubts), world.pick([undefined, ...doubtedRows]));
  for (let waits = 0; waits < 100 && !world.disk.isBroken; waits++) await world.sleep(100);
  callOff();
  if (!world.disk.isBroken) return;
  await expectRefusing(world);
  await world.sleep(world.whole(0, 5000));
  if (world.whole(0, 1) === 0) world.kill();
  else await world.leave();
}

/** Nothing is written, and what is stored is read. */
export async function expectRefusing(world: World): Promise<void> {
  const answerTo = async (ask: () => Promise<unknown>): Promise<string> => {
    for (;;) {
      try {
        await ask();
        return "done";
      } catch (error) {
        if (!(error instanceof RunwireError)) throw error;
        if (!error.row.retry || error.code.startsWith("KAI-SERVER")) return error.code;
        await world.sleep(world.whole(10, 500));
      }
    }
  };
  expect(await answerTo(() => world.api.listRuns())).toBe("done");
  const run = world.roots.find((root) => world.audit.log(root, "full").length > 0);
  if (run !== undefined) {
    const { run_id } = run;
    expect(await answerTo(() => world.api.events(run_id))).toBe("done");
    // What would be refused for what is stored is refused for the doubt: what is stored is what nobody knows.
    const draft = { type: "custom", payload: {} };
    const gapped = { id: "stranger", epoch: 1, seq: 2 };
    const refused = await answerTo(() => world.api.appendIn("runwire", run_id, [draft], gapped));
    expect(refused).toBe("KAI-SERVER-STORE-0001");
  }
  const created = await answerTo(() => world.api.createRun({ prompt: "more", producer: "external" }));
  expect(created).toBe("KAI-SERVER-STORE-0001");
}

/** `calmly` is what the agent comes to for a prompt where nothing happens to it. */
export async function expectTold(
  told: Told,
  logOf: (key: Key, view: View) => Promise<readonly Event[]>,
  calmly: (prompt: string) => object | undefined,
): Promise<void> {
  for (const made of told.productions) expectProduced(made, await logOf(made, "full"));
  for (const made of told.parts) expectProduced(made, await logOf(made, "full"));
  for (const decided of told.decisions) expectDecided(decided.of, await logOf(decided, "full"));
  for (const reading of told.readings) expectHeard(reading, await logOf(reading, reading.view));
  for (const one of told.works) expectWorked(one, await logOf(one, "full"), calmly(one.prompt));
  for (const { tenant, shown } of told.listings)
    for (const run_id of shown)
      expect([run_id, (await logOf({ tenant, run_id }, "default")).length > 0]).toEqual([run_id, true]);
  for (const feeding of told.feedings) {
    const { tenant } = feeding;
    expectFed(feeding, await logOf({ tenant, run_id: `feed:${tenant}:runs` }, "default"));
  }
}
