import { clarifyTool, demoModel, demoTools, engine, spawnTool } from "@runwire/engine";
import type { Event } from "@runwire/protocol";
import { type SqliteOptions, sqliteStore, startGateway, writerHere } from "@runwire/server";
import { describe, expect, it } from "vitest";
import { isSoak } from "../gateway/chance.js";
import { wholeLog } from "../suites/store/soundness.js";
import type { StoreUnderTest } from "../suites/store/under-test.js";
import { outcomeOf, prompts, work } from "./agents.js";
import { day, retentionDays } from "./day.js";
import { expectTold, type Life, type LifeName, lives, toldNothing } from "./lives.js";
import { happenings, momentLife } from "./moments.js";
import { seedsThatFailed } from "./seeds.js";
import { type Circumstances, type ServerUnderTest, simulate, tenant, type World } from "./world.js";

let store: StoreUnderTest;

const demo = demoModel({ wordMs: 15 });
const agent = engine({
  modelOf: () => demo,
  tools: [...demoTools({ searchMs: 400 }), spawnTool, clarifyTool],
  planningGate: "preview",
});

const server: ServerUnderTest = {
  start: (settings, clock, openStore) => {
    // Checkpoints are packed on threads, whose time is nobody's here.
    const own = { durability: "os", log: "error", checkpointRetentionPerRun: 0 } as const;
    return startGateway({ ...settings, ...own }, clock, agent, openStore as never);
  },
  openStore(options) {
    const opened = sqliteStore(options as unknown as SqliteOptions);
    store = opened as unknown as StoreUnderTest;
    return opened as never;
  },
  openWriter: (path, durability) => writerHere(path, durability) as never,
};

const calmly = new Map<string, object>();
const calm: Circumstances = { faults: { cutShare: 0, silentShare: 0, delayMsMax: 20 } };

async function live(
  seed: number,
  life: Life,
  circumstances: Circumstances = {},
  expectMore: () => Promise<void> = async () => {},
): Promise<World> {
  const told = toldNothing();
  const logs = new Map<string, readonly Event[]>();
  const logOf = async (run_id: string, view: "default" | "full"): Promise<readonly Event[]> => {
    const name = `${run_id}/${view}`;
    const log = logs.get(name) ?? (await wholeLog(store, { tenant, run_id }, view));
    logs.set(name, log);
    return log;
  };
  return simulate(
    seed,
    server,
    (world) => life(world, told),
    async () => {
      await expectTold(told, logOf, `feed:${tenant}:runs`, (prompt) => calmly.get(prompt));
      await expectMore();
    },
    circumstances,
  );
}

async function liveAs(name: LifeName, seed: number): Promise<World> {
  try {
    if (name === "agents") await learnCalmly();
    return await live(seed, lives[name], { slowShare: name === "runs" ? 0 : 0.05 });
  } catch (error) {
    throw new Error(`RUNWIRE_LIFE=${name} RUNWIRE_SEED=${seed}: ${String((error as Error).message)}`, {
      cause: error,
    });
  }
}

/** What the agent comes to where nothing happens to it. */
async function learnCalmly(): Promise<void> {
  for (const prompt of prompts) {
    if (calmly.has(prompt)) continue;
    let run_id = "";
    await simulate(
      1,
      server,
      (world) =>
        world.begin("all is well", async () => {
          run_id = (await work(world, "calm", prompt)).run_id;
        }),
      async () => void calmly.set(prompt, outcomeOf(await wholeLog(store, { tenant, run_id }, "full"))),
      { ...calm, stepsMax: 20_000 },
    );
  }
}

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
    const given = process.env.RUNWIRE_SEED;
    const first = Number(given ?? Math.floor(Math.random() * 2 ** 31));
    const worlds = Number(process.env.RUNWIRE_WORLDS ?? (given !== undefined ? 1 : isSoak ? 2000 : 6));
    const named = process.env.RUNWIRE_LIFE as LifeName | undefined;
    const names = named === undefined ? (Object.keys(lives) as LifeName[]) : [named];
    process.stdout.write(`simulator: RUNWIRE_SEED=${first} and the ${worlds - 1} after it\n`);
    const sums = { kills: 0, starts: 0, steps: 0, hours: 0 };
    for (let i = 0; i < worlds; i++) {
      // By the seed, so that a world is the same alone and among others.
      const name = names[(first + i) % names.length] as LifeName;
      const { counts, time } = await liveAs(name, first + i);
      sums.kills += counts.kills;
      sums.starts += counts.starts;
      sums.steps += counts.steps;
      sums.hours += time.ms / 3_600_000;
    }
    process.stdout.write(`simulator: ${JSON.stringify(sums)}\n`);
    expect(sums.starts).toBeGreaterThanOrEqual(worlds);
  });
});

describe("a day", () => {
  it("passes with little to do, and what is seldom due is done", { timeout: 3_600_000 }, async () => {
    const given = process.env.RUNWIRE_SEED;
    const seed = Number(given ?? Math.floor(Math.random() * 2 ** 31));
    const hours = isSoak ? 32 : 2;
    process.stdout.write(`simulator: a day of ${hours} hours, RUNWIRE_SEED=${seed}\n`);
    const { life, expectKept } = day(hours);
    const circumstances = { stepsMax: hours * 20_000, settings: { retentionDoneDays: retentionDays } };
    await live(seed, life, circumstances, () => expectKept((key) => store.isErased(key)));
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

describe.runIf(isSoak)("the write path", () => {
  const moments = (["asked", "before", "after"] as const).flatMap((moment) =>
    happenings.map((happening) => ({ moment, happening })),
  );

  /** About as many as there are. */
  const writes = 150;

  // Every write where there is time; otherwise one, and another each time.
  it.each(moments)(
    "holds what it promises where its server is $happening at any write, $moment",
    { timeout: 10 * 3_600_000 },
    async ({ moment, happening }) => {
      await learnCalmly();
      const given = process.env.RUNWIRE_WRITE;
      const first = isSoak ? 1 : Number(given ?? 1 + Math.floor(Math.random() * writes));
      for (let n = first; ; n++) {
        const strike = { moment, n, happening, isStruck: false };
        await live(1, momentLife(strike), { ...calm, slowShare: 0.3 }).catch((cause: unknown) => {
          throw new Error(`RUNWIRE_WRITE=${n}: ${(cause as Error).message}`, { cause });
        });
        if (!strike.isStruck || !isSoak) return;
      }
    },
  );
});
