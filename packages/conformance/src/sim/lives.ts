// What happens in a world: who writes, who reads and who answers, while things break (chaos.ts). Each is a function of the dice alone.

import type { Event, View } from "@runwire/protocol";
import { expect } from "vitest";
import type { Key } from "../suites/store/under-test.js";
import { expectWorked, interrupt, prompts, type Work, work } from "./agents.js";
import { expectBlobs, shortStory, withLarge } from "./blobs.js";
import { chaos, laptops } from "./chaos.js";
import { writeAndErase } from "./erasing.js";
import { expectFed, type Feeding, followList } from "./feeding.js";
import { expectBounded, heavyStory, readLossy, stopping } from "./lagging.js";
import { type Listing, listRuns } from "./listing.js";
import { lookAt } from "./looking.js";
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
