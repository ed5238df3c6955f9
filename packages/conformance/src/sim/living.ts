// Lives in simulated worlds, and what each is held to. The tests hand the server's and the agent's modules over:
// conformance imports neither.

import type { Event, View } from "@runwire/protocol";
import { type CreateKey, writeKey } from "../gateway/access.js";
import { wholeLog } from "../suites/store/soundness.js";
import type { Key, StoreUnderTest } from "../suites/store/under-test.js";
import { outcomeOf, prompts, type Work, work } from "./agents.js";
import { circumstances, expectTold, type Life, type LifeName, lives, toldNothing } from "./lives.js";
import { type Circumstances, type ServerUnderTest, simulate, type World } from "./world.js";

export interface Modules {
  readonly startGateway: (...given: never[]) => ReturnType<ServerUnderTest["start"]>;
  readonly sqliteStore: (options: never) => unknown;
  readonly writerHere: (path: string, durability: "fsync" | "os", through: never) => unknown;
  readonly folderBlobs: (options: never) => unknown;
  readonly createKey: CreateKey;
  readonly engine: (options: never) => unknown;
  readonly demoModel: (options: { readonly wordMs: number }) => unknown;
  readonly demoTools: (options: { readonly searchMs: number }) => readonly unknown[];
  readonly spawnTool: unknown;
  readonly clarifyTool: unknown;
}

export interface Living {
  /** The store that was opened last. */
  readonly store: StoreUnderTest;
  /** Lives it, and checks every law after it. */
  live(
    seed: number,
    life: Life,
    circumstances?: Circumstances,
    expectMore?: () => Promise<void>,
  ): Promise<World>;
  liveAs(name: LifeName, seed: number): Promise<World>;
  /** What the agent comes to where nothing happens to it. */
  learnCalmly(): Promise<void>;
}

export const calm: Circumstances = { faults: { cutShare: 0, silentShare: 0, delayMsMax: 20 } };

export function living(modules: Modules): Living {
  let store: StoreUnderTest;
  const calmly = new Map<string, object>();
  const demo = modules.demoModel({ wordMs: 15 });
  const agent = modules.engine({
    modelOf: () => demo,
    tools: [...modules.demoTools({ searchMs: 400 }), modules.spawnTool, modules.clarifyTool],
    planningGate: "preview",
  } as never);
  const server: ServerUnderTest = {
    start: (settings, clock, openStore, openBlobs) => {
      // Checkpoints are packed on threads, whose time is nobody's here.
      const own = { durability: "os", log: "error", checkpointRetentionPerRun: 0 } as const;
      return modules.startGateway(
        ...([{ ...settings, ...own }, clock, agent, openStore, openBlobs] as never[]),
      );
    },
    openStore(options) {
      const opened = modules.sqliteStore(options as never);
      store = opened as StoreUnderTest;
      return opened as never;
    },
    openWriter: (path, durability, through) =>
      modules.writerHere(path, durability, through as never) as never,
    openBlobs: (options) => modules.folderBlobs(options) as never,
    createKey: (folder, tenant) => writeKey(modules.createKey, folder, tenant).key,
  };

  async function live(
    seed: number,
    life: Life,
    circumstances: Circumstances = {},
    expectMore: () => Promise<void> = async () => {},
  ): Promise<World> {
    const told = toldNothing();
    const logs = new Map<string, readonly Event[]>();
    const logOf = async ({ tenant, run_id }: Key, view: View): Promise<readonly Event[]> => {
      const name = `${tenant}/${run_id}/${view}`;
      const log = logs.get(name) ?? (await wholeLog(store, { tenant, run_id }, view));
      logs.set(name, log);
      return log;
    };
    return simulate(
      seed,
      server,
      (world) => life(world, told),
      async () => {
        await expectTold(told, logOf, (prompt) => calmly.get(prompt));
        await expectMore();
      },
      circumstances,
    );
  }

  async function liveAs(name: LifeName, seed: number): Promise<World> {
    try {
      if (name === "agents" || name === "faults") await learnCalmly();
      return await live(seed, lives[name], circumstances[name]);
    } catch (error) {
      throw new Error(`RUNWIRE_LIFE=${name} RUNWIRE_SEED=${seed}: ${String((error as Error).message)}`, {
        cause: error,
      });
    }
  }

  async function learnCalmly(): Promise<void> {
    for (const prompt of prompts) {
      if (calmly.has(prompt)) continue;
      let done: Work | undefined;
      await simulate(
        1,
        server,
        (world) =>
          world.begin("all is well", async () => {
            done = await work(world, "calm", prompt);
          }),
        async () => void calmly.set(prompt, outcomeOf(await wholeLog(store, done as Work, "full"))),
        { ...calm, stepsMax: 20_000 },
      );
    }
  }

  return {
    get store() {
      return store;
    },
    live,
    liveAs,
    learnCalmly,
  };
}
