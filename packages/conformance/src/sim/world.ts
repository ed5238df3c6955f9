// A whole server in one process, on a disk and a network that misbehave, with producers that write, people who answer
// and readers that follow. It is killed, leaves and starts again at any moment, also in the middle of a write. Every
// reader checks what it hears as it hears it; the logs are checked after every start and at the end.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { type Endpoint, type Gateway, gateway } from "@runwire/client";
import { RunwireError } from "@runwire/protocol";
import { expectSoundTree } from "../suites/store/soundness.js";
import type { Key, StoreUnderTest } from "../suites/store/under-test.js";
import { type Disk, disk, type WriterUnderTest } from "./disk.js";
import { type Network, network, server as serverName } from "./network.js";
import { type HeldTime, holdTime } from "./time.js";

interface RunningServer {
  take(connection: Duplex): void;
  close(): Promise<void>;
}

interface StoreOptions {
  readonly openWriter?: (path: string, durability: "fsync" | "os") => never;
}

/** The server's own parts; a suite knows no server. */
export interface ServerUnderTest {
  start(
    settings: { readonly dataFolder: string; readonly port: number },
    clock: HeldTime["clock"],
    openStore: (options: StoreOptions) => never,
  ): Promise<RunningServer>;
  openStore(options: StoreOptions & { readonly hotRowsMax: number }): StoreUnderTest;
  openWriter(path: string, durability: "fsync" | "os"): WriterUnderTest;
}

export interface World {
  readonly time: HeldTime;
  readonly network: Network;
  readonly disk: Disk;
  readonly api: Gateway;
  readonly endpoint: Endpoint;
  /** A whole number from min to max. */
  whole(min: number, max: number): number;
  pick<T>(items: readonly T[]): T;
  sleep(ms: number): Promise<void>;
  /** Asks until there is an answer that asking again would not change. */
  persistently<T>(ask: () => Promise<T>): Promise<T>;
  /** The runs whose trees are checked. */
  readonly roots: Key[];
  /** Begins something that goes on by itself; what it throws ends the simulation. */
  begin(name: string, act: () => Promise<void>): void;
  kill(): void;
  leave(): Promise<void>;
  readonly isUp: boolean;
  /** Starts the server where it is down. */
  start(): Promise<void>;
  readonly counts: { starts: number; kills: number; steps: number };
}

const stepsMax = 400_000;
/** Of everybody on an open server. */
export const tenant = "default";

/** Sets a world up, lets everything happen that was begun, and checks what has come of it. */
export async function simulate(
  seed: number,
  server: ServerUnderTest,
  setUp: (world: World) => void,
  expectAll: () => Promise<void>,
): Promise<World> {
  const folder = mkdtempSync(join(tmpdir(), "runwire-sim-"));
  const time = holdTime(seed);
  const acting = new Map<string, Promise<void>>();
  const failures: unknown[] = [];
  const roots: Key[] = [];
  const net = network(time, { cutShare: 0.25, silentShare: 0.02, delayMsMax: 60 });
  const held = disk(time.random);
  const counts = { starts: 0, kills: 0, steps: 0 };
  let running: RunningServer | undefined;
  let store: StoreUnderTest | undefined;
  let ending: Promise<void> = Promise.resolve();
  let checkedAfterStart = true;

  const endpoint: Endpoint = {
    base: "http://127.0.0.1:4700",
    fetch: net.fetch,
    clock: {
      nowMs: () => time.ms,
      after(delayMs, ring) {
        const timer = setTimeout(ring, delayMs);
        return () => clearTimeout(timer);
      },
    },
  };
  const api = gateway(endpoint);
  const whole = (min: number, max: number): number => min + Math.floor(time.random() * (max - min + 1));
  const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

  async function start(): Promise<void> {
    await ending;
    if (running !== undefined) return;
    running = await time.settle(
      time.as(serverName, () =>
        server.start({ dataFolder: folder, port: 0 }, time.clock, (options) => {
          store = server.openStore({
            ...options,
            // So that some of every log is compacted.
            hotRowsMax: 100,
            openWriter: (path, durability) => held.open(server.openWriter(path, durability)) as never,
          });
          return store as never;
        }),
      ),
    );
    counts.starts += 1;
    checkedAfterStart = false;
    net.serve(running.take);
  }

  /** Whatever has not reached the disk is gone. */
  function kill(): void {
    if (running === undefined) return;
    counts.kills += 1;
    net.serve(undefined);
    net.cutAll();
    held.die();
    const { close } = running;
    running = undefined;
    time.goOn(serverName);
    // What is left of it in this process is tidied up; it can write and tell nobody.
    ending = time.as(serverName, close);
  }

  async function leave(): Promise<void> {
    if (running === undefined) return;
    const { close } = running;
    running = undefined;
    ending = time.as(serverName, close);
    // Connections are still served until it has left.
    await ending;
    net.serve(undefined);
  }

  async function check(): Promise<void> {
    if (store === undefined) return;
    for (const root of roots) await expectSoundTree(store, root, { steadyClock: false });
  }

  const world: World = {
    time,
    network: net,
    disk: held,
    api,
    endpoint,
    whole,
    pick: (items) => items[whole(0, items.length - 1)] as never,
    sleep,
    async persistently(ask) {
      for (;;) {
        try {
          return await ask();
        } catch (error) {
          if (!(error instanceof RunwireError) || !error.row.retry) throw error;
          await sleep(whole(10, 2000));
        }
      }
    },
    roots,
    begin(name, act) {
      const done = act()
        .catch((error: unknown) => {
          failures.push(new Error(`${name}, at ${time.ms} ms`, { cause: error }));
        })
        .finally(() => acting.delete(name));
      acting.set(name, done);
    },
    kill,
    leave,
    start,
    get isUp() {
      return running !== undefined;
    },
    counts,
  };

  try {
    await start();
    setUp(world);
    for (; counts.steps < stepsMax && acting.size > 0 && failures.length === 0; counts.steps++) {
      await time.step();
      if (checkedAfterStart || running === undefined) continue;
      checkedAfterStart = true;
      await check();
    }
    if (failures.length > 0) throw failures[0];
    if (acting.size > 0)
      throw new Error(`still at work after ${time.ms} ms: ${[...acting.keys()].join(", ")}`);
    if (running === undefined) await start();
    await check();
    await expectAll();
    return world;
  } finally {
    if (running !== undefined) await time.settle(leave());
    await time.settle(ending);
    time.release();
    rmSync(folder, { recursive: true, force: true });
  }
}
