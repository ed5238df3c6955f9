import * as engine from "@runwire/engine";
import * as server from "@runwire/server";
import { describe, expect, it } from "vitest";
import { givenSeed, isSoak, newSeed } from "../gateway/chance.js";
import { prompts, work } from "./agents.js";
import { day, retentionDays } from "./day.js";
import { type Life, type LifeName, lives } from "./lives.js";
import { calm, living } from "./living.js";
import { seedsThatFailed } from "./seeds.js";

const lived = living({ ...server, ...engine } as never);
const { live, liveAs, learnCalmly } = lived;

describe("a simulated world", () => {
  it.each(seedsThatFailed)("stays sound where it once did not: $life, seed $seed", async ({ life, seed }) => {
    await liveAs(life, seed);
  });

  // The agent asks several things of the file system at once, and which comes first is not ours to say.
  it("is the same again from the same seed", async () => {
    const [one, other] = [await liveAs("trees", 11), await liveAs("trees", 11)];
    expect([other.counts, other.time.trace]).toEqual([one.counts, one.time.trace]);
  });

  it("loses nothing, doubles nothing and ends everything, whatever breaks", {
    timeout: 10 * 3_600_000,
  }, async () => {
    const first = newSeed();
    const worlds = Number(process.env.RUNWIRE_WORLDS ?? (givenSeed !== undefined ? 1 : isSoak ? 1000 : 6));
    const named = process.env.RUNWIRE_LIFE as LifeName | undefined;
    const names = named === undefined ? (Object.keys(lives) as LifeName[]) : [named];
    process.stdout.write(`simulator: RUNWIRE_SEED=${first} and the ${worlds - 1} after it\n`);
    const sums = {
      ...{ worlds: 0, kills: 0, starts: 0, steps: 0, hours: 0 },
      ...{ dropped: 0, doubts: 0, unread: 0 },
    };
    let lagging = 0;
    const told = () => process.stdout.write(`simulator: ${JSON.stringify(sums)}\n`);
    for (let i = 0; i < worlds; i++) {
      // By the seed, so that a world is the same alone and among others.
      const name = names[(first + i) % names.length] as LifeName;
      const { counts, time, disk, reads } = await liveAs(name, first + i);
      sums.worlds += 1;
      if (name === "laggards") lagging += 1;
      sums.kills += counts.kills;
      sums.starts += counts.starts;
      sums.steps += counts.steps;
      sums.dropped += counts.dropped;
      sums.doubts += disk.counts.doubts;
      sums.unread += reads.counts.failed + reads.counts.damaged;
      sums.hours += time.ms / 3_600_000;
      if (sums.worlds % 20 === 0) told();
    }
    told();
    expect(sums.starts).toBeGreaterThanOrEqual(worlds);
    // In one of them all readers may have been cut off before they fell behind.
    if (lagging >= 5) expect(sums.dropped).toBeGreaterThan(0);
  });
});

describe("a day", () => {
  it("passes with little to do, and what is seldom due is done", { timeout: 3_600_000 }, async () => {
    const seed = newSeed();
    const hours = isSoak ? 32 : 2;
    process.stdout.write(`simulator: a day of ${hours} hours, RUNWIRE_SEED=${seed}\n`);
    const { life, expectKept } = day(hours);
    const circumstances = { stepsMax: hours * 20_000, settings: { retentionDoneDays: retentionDays } };
    await live(seed, life, circumstances, () => expectKept((key) => lived.store.isErased(key)));
  });
});

describe("the built-in agent", () => {
  it("goes on when a disk that was full has room again", async () => {
    const full: Life = (world, told) => {
      world.begin("the agent", async () => void told.works.push(await work(world, "full", prompts[0])));
      world.begin("the disk", async () => {
        await world.sleep(3000);
        world.disk.full = true;
        await world.sleep(5000);
        world.disk.full = false;
      });
    };
    await learnCalmly();
    await live(1, full, { ...calm, stepsMax: 20_000 });
  });
});
