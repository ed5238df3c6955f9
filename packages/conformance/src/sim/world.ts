// A whole server in one process, on a disk and a network that misbehave, with producers that write, people who answer
// and readers that follow. It is killed, leaves and starts again at any moment, also in the middle of a write. Every
// reader checks what it hears as it hears it. After every step the logs that moved are read on, and what everybody has
// been told is compared with them; now and then, after every start and at the end, whole trees are.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { type Endpoint, type Gateway, gateway } from "@runwire/client";
import { RunwireError } from "@runwire/protocol";
import { expectSoundTree } from "../suites/store/soundness.js";
import type { Key, StoreUnderTest } from "../suites/store/under-test.js";
import { type Auditor, auditor } from "./auditing.js";
import { type Awaits, awaits } from "./awaits.js";
import { type BlobsUnderTest, type Disk, disk, type Through, type WriterUnderTest } from "./disk.js";
import { type Network, type NetworkFaults, network, server as serverName } from "./network.js";
import { damagedCode, type Reads, reads } from "./reads.js";
import { type HeldTime, holdTime } from "./time.js";

interface RunningServer {
  take(connection: Duplex): void;
  close(): Promise<void>;
}

interface StoreOptions {
  readonly openWriter?: (path: string, durability: "fsync" | "os") => never;
}

interface MovingStore extends StoreUnderTest {
  onMoved(heard: (log: Key) => void): void;
}

/** The server's own parts; a suite knows no server. */
export interface ServerUnderTest {
  start(
    settings: { readonly dataFolder: string; readonly port: number },
    clock: HeldTime["clock"],
    openStore: (options: StoreOptions) => never,
    openBlobs: (options: never) => never,
  ): Promise<RunningServer>;
  openStore(options: StoreOptions & { readonly hotEventsMax: number }): MovingStore;
  openWriter(path: string, durability: "fsync" | "os", through: Through): WriterUnderTest;
  openBlobs(options: never): BlobsUnderTest;
  /** Makes a key that opens everything of a tenant, for servers on this folder. */
  createKey(dataFolder: string, tenant: string): string;
}

export interface World {
  /** In whose name its `api` and `endpoint` ask. */
  readonly tenant: string;
  /** This world as each of its tenants has it, each with credentials of its own. */
  readonly tenants: readonly World[];
  readonly time: HeldTime;
  readonly network: Network;
  readonly disk: Disk;
  readonly reads: Reads;
  /** Where something may happen to the server. */
  readonly awaits: Awaits;
  /** Its data. */
  readonly folder: string;
  readonly api: Gateway;
  readonly endpoint: Endpoint;
  /** A whole number from min to max. */
  whole(min: number, max: number): number;
  pick<T>(items: readonly T[]): T;
  sleep(ms: number): Promise<void>;
  /** Whether asking again may help: also where data is damaged, if somebody has damaged it for a while. */
  mayPass(error: unknown): boolean;
  /** Asks until there is an answer that asking again would not change. */
  persistently<T>(ask: () => Promise<T>): Promise<T>;
  /** The runs whose trees are checked. */
  readonly roots: Key[];
  readonly audit: Auditor;
  /** Is looked at after every step at which the server is up; throws where it does not hold. */
  always(law: () => void): void;
  /** Begins something that goes on by itself; what it throws ends the simulation. */
  begin(name: string, act: () => Promise<void>): void;
  /** Begins something that goes on for as long as anything else does, until it is told to stop. */
  accompany(name: string, act: (signal: AbortSignal) => Promise<void>): void;
  kill(): void;
  leave(): Promise<void>;
  readonly isUp: boolean;
  /** When the server last began to leave. */
  readonly leaveMs: number;
  /** Starts the server where it is down. */
  start(): Promise<void>;
  readonly counts: Counts;
}

export interface Counts {
  starts: number;
  kills: number;
  /** How often the server began to leave, and had left. */
  leaves: number;
  left: number;
  steps: number;
  /** What readers that fell behind were not sent. */
  dropped: number;
}

export interface Circumstances {
  readonly faults?: NetworkFaults;
  readonly stepsMax?: number;
  /** Of reads and writes that take long: what is read may be old by the time it arrives. */
  readonly slowShare?: number;
  readonly settings?: { readonly retentionDoneDays?: number };
  /** Who shares the server; without them it is open, and everybody is one tenant. */
  readonly tenants?: readonly string[];
}

const slowMsMax = 2000;

const usualFaults: NetworkFaults = { cutShare: 0.25, silentShare: 0.02, delayMsMax: 60 };
/** A world that takes more does not come to its end. */
const stepsMaxUsual = 400_000;
/** Between two looks at whole trees. */
const wholeLookSteps = 1000;
/** Of everybody on an open server. */
const openTenant = "default";

/** Sets a world up, lets everything happen that was begun, and checks what has come of it. */
export async function simulate(
  seed: number,
  server: ServerUnderTest,
  setUp: (world: World) => void,
  expectAll: () => Promise<void>,
  {
    faults = usualFaults,
    stepsMax = stepsMaxUsual,
    slowShare = 0,
    settings = {},
    tenants = [],
  }: Circumstances = {},
): Promise<World> {
  const folder = mkdtempSync(join(tmpdir(), "runwire-sim-"));
  const time = holdTime(seed);
  const acting = new Map<string, Promise<void>>();
  const failures: unknown[] = [];
  const roots: Key[] = [];
  const come = awaits();
  const net = network(time, faults, come);
  const held = disk(time.random, slowShare, come);
  const read = reads(time.random, come, () => net.isWriting);
  const audit = auditor();
  const laws: (() => void)[] = [];
  const over = new AbortController();
  const companions = new Map<string, Promise<void>>();
  const counts: Counts = { starts: 0, kills: 0, leaves: 0, left: 0, steps: 0, dropped: 0 };
  let running: RunningServer | undefined;
  let store: StoreUnderTest | undefined;
  let ending: Promise<void> = Promise.resolve();
  let checkedAfterStart = true;
  let leaveMs = Number.POSITIVE_INFINITY;
  const unhandled = (cause: unknown): void => {
    failures.push(new Error(`nobody was told, at ${time.ms} ms`, { cause }));
  };

  const auth = tenants.length === 0 ? {} : ({ auth: "keys" } as const);
  const openEndpoint: Endpoint = {
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
  const whole = (min: number, max: number): number => min + Math.floor(time.random() * (max - min + 1));
  const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

  async function slowly<T>(answer: Promise<T>): Promise<T> {
    const given = await answer;
    if (slowShare > 0 && time.random() < slowShare) await sleep(whole(1, slowMsMax));
    return given;
  }

  async function start(): Promise<void> {
    await ending;
    if (running !== undefined) return;
    held.restart();
    running = await time.settle(
      time.as(serverName, () =>
        server.start({ ...settings, ...auth, dataFolder: folder, port: 0 }, time.clock, openStore, openBlobs),
      ),
    );
    counts.starts += 1;
    checkedAfterStart = false;
    net.serve(running.take);
  }

  const openBlobs = (options: never): never => held.openBlobs(server.openBlobs(options)) as never;

  function openStore(options: StoreOptions): never {
    const opened = server.openStore({
      ...options,
      // So that some of every log is compacted.
      hotEventsMax: 100,
      openWriter: (path, durability) =>
        held.open(path, (through) => server.openWriter(path, durability, through)) as never,
    });
    store = opened;
    return {
      ...read.through(opened, slowly),
      onMoved: (heard: (log: Key) => void) =>
        opened.onMoved((log) => {
          audit.moved(log);
          heard(log);
        }),
    } as never;
  }

  function mayPass(error: unknown): boolean {
    if (!(error instanceof RunwireError)) return false;
    return error.row.retry || (error.code === damagedCode && read.counts.damaged > 0);
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
    counts.leaves += 1;
    leaveMs = time.ms;
    ending = time.as(serverName, close);
    // Connections are still served until it has left.
    await ending;
    counts.left += 1;
    net.serve(undefined);
  }

  async function check(): Promise<void> {
    if (store === undefined) return;
    for (const root of roots)
      if (!(await store.isErased(root))) await expectSoundTree(store, root, { steadyClock: false });
  }

  /** After a step. A store lets others come in between where it reads a long log: nobody comes. */
  const look = (): Promise<void> => time.alone(lookAtLogs);

  async function lookAtLogs(): Promise<void> {
    if (running === undefined || store === undefined) return;
    if (!checkedAfterStart) {
      checkedAfterStart = true;
      await audit.lookAgain(store, roots);
      await check();
    }
    await audit.look(store);
    for (const law of laws) law();
    if (counts.steps % wholeLookSteps === 0) await check();
  }

  const worldOf = (tenant: string, endpoint: Endpoint): World => ({
    tenant,
    get tenants() {
      return shared;
    },
    time,
    network: net,
    disk: held,
    reads: read,
    awaits: come,
    folder,
    api: gateway(endpoint),
    endpoint,
    whole,
    pick: (items) => items[whole(0, items.length - 1)] as never,
    sleep,
    mayPass,
    async persistently(ask) {
      for (;;) {
        try {
          return await ask();
        } catch (error) {
          over.signal.throwIfAborted();
          if (!mayPass(error)) throw error;
          await sleep(whole(10, 2000));
        }
      }
    },
    roots,
    audit,
    always: (law) => void laws.push(law),
    begin(what, act) {
      const name = `${tenant}: ${what}`;
      if (acting.has(name)) throw new Error(`${name} has begun, and is not done`);
      const done = act()
        .catch((error: unknown) => {
          failures.push(new Error(`${name}, at ${time.ms} ms`, { cause: error }));
        })
        .finally(() => acting.delete(name));
      acting.set(name, done);
    },
    accompany(what, act) {
      const name = `${tenant}: ${what}`;
      const done = act(over.signal).catch((error: unknown) => {
        if (!over.signal.aborted) failures.push(new Error(`${name}, at ${time.ms} ms`, { cause: error }));
      });
      companions.set(name, done);
    },
    kill,
    leave,
    start,
    get isUp() {
      return running !== undefined;
    },
    get leaveMs() {
      return leaveMs;
    },
    counts,
  });
  const shared = tenants.map((tenant) => {
    const headers = { authorization: `Bearer ${server.createKey(folder, tenant)}` };
    return worldOf(tenant, { ...openEndpoint, headers });
  });
  const world = shared[0] ?? worldOf(openTenant, openEndpoint);

  laws.push(() => {
    if (held.counts.trespasses > 0) throw new Error("something was written after a write that is in doubt");
  });
  process.on("unhandledRejection", unhandled);
  try {
    await start();
    setUp(world);
    for (; counts.steps < stepsMax && acting.size > 0 && failures.length === 0; counts.steps++) {
      await time.step();
      await look();
    }
    if (failures.length > 0) throw failures[0];
    if (acting.size > 0)
      throw new Error(`still at work after ${time.ms} ms: ${[...acting.keys()].join(", ")}`);
    if (running === undefined) {
      // Nobody moves time any more, and a server that closes may wait for some of it to pass.
      await time.settle(ending);
      await start();
    }
    await look();
    await time.alone(check);
    await time.alone(expectAll);
  } catch (error) {
    failures.push(error);
  }
  over.abort(new Error("the world is over"));
  try {
    await time.settle(Promise.all(companions.values()));
    if (running !== undefined) await time.settle(leave());
    await time.settle(ending);
  } catch (error) {
    failures.push(error);
  }
  process.off("unhandledRejection", unhandled);
  net.close();
  time.release();
  rmSync(folder, { recursive: true, force: true });
  // What went wrong first says most.
  if (failures.length > 0) throw failures[0];
  return world;
}
