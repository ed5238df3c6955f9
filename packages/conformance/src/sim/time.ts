// Time that passes only when it is told to. While it is held, every timer of the process waits here, and `Math.random`
// is drawn from the seed: what happens, and in which order, follows from the seed alone.
//
// A timer belongs to whoever set it: the server, or a laptop. One that stands still (a process that was stopped, a lid
// that was closed) rings none of its timers until it goes on, and then all that are due.

import { AsyncLocalStorage } from "node:async_hooks";
import { randomFrom } from "../gateway/chance.js";
import { watch } from "./watch.js";

export interface HeldTime {
  /** Since it was taken. */
  readonly ms: number;
  readonly random: () => number;
  /** Wall time, which somebody may set; and time that only goes forward. */
  readonly clock: { now(): number; monotonic(): number };
  jump(ms: number): void;
  /** What is done in the name of somebody: its timers are theirs. */
  as<T>(owner: string, act: () => T): T;
  /** In whose name this is called. */
  readonly owner: string;
  /** The same, at once where the owner runs, and when it goes on where it stands still. */
  within(owner: string, act: () => void): void;
  standStill(owner: string): void;
  goOn(owner: string): void;
  /** What has rung so far, in which order: the same for the same seed. */
  readonly trace: number;
  /** Lets time pass up to the next timer, and everything happen that follows from it; false where none waits. */
  step(): Promise<boolean>;
  /** Waits for something that needs the real world, such as a file; virtual time stands still until nothing moves. */
  settle<T>(promise: Promise<T>): Promise<T>;
  /** Does something to its end while no timer rings but its own: whoever looks at the world must not move it. */
  alone<T>(act: () => Promise<T>): Promise<T>;
  /** Gives the process its timers back. */
  release(): void;
}

interface Timer {
  readonly id: number;
  readonly owner: string;
  atMs: number;
  readonly everyMs: number | null;
  readonly ring: () => void;
}

const startMs = Date.UTC(2026, 4, 14, 19, 42);
const turnsMax = 200_000;

export function holdTime(seed: number): HeldTime {
  const watched = watch(seed);
  const real = {
    setTimeout: globalThis.setTimeout,
    clearTimeout: globalThis.clearTimeout,
    setInterval: globalThis.setInterval,
    clearInterval: globalThis.clearInterval,
    setImmediate: globalThis.setImmediate,
    clearImmediate: globalThis.clearImmediate,
  };
  const { random: realRandom } = Math;
  const { now: realNow } = Date;
  const random = randomFrom(seed);
  const timers = new Map<number, Timer>();
  const owners = new AsyncLocalStorage<string>();
  const still = new Set<string>();
  let only: string | undefined;
  let trace = 0;
  let ms = 0;
  let aheadMs = 0;
  let count = 0;

  function later(
    ring: (...args: unknown[]) => void,
    delayMs: unknown,
    everyMs: number | null,
    args: unknown[],
  ) {
    count += 1;
    const id = count;
    const wait = Math.max(0, Number(delayMs) || 0);
    timers.set(id, {
      id,
      owner: owners.getStore() ?? "",
      atMs: ms + wait,
      everyMs,
      ring: () => ring(...args),
    });
    const handle = {
      ref: () => handle,
      unref: () => handle,
      hasRef: () => true,
      refresh() {
        const timer = timers.get(id);
        if (timer !== undefined) timer.atMs = ms + wait;
        return handle;
      },
      [Symbol.toPrimitive]: () => id,
    };
    return handle;
  }
  const clear = (handle: unknown): void => {
    if (handle != null) timers.delete(Number(handle as number));
  };
  Object.assign(globalThis, {
    setTimeout: (ring: () => void, delayMs: unknown, ...args: unknown[]) => later(ring, delayMs, null, args),
    setInterval: (ring: () => void, delayMs: unknown, ...args: unknown[]) =>
      later(ring, delayMs, Math.max(1, Number(delayMs) || 1), args),
    setImmediate: (ring: () => void, ...args: unknown[]) => later(ring, 0, null, args),
    clearTimeout: clear,
    clearInterval: clear,
    clearImmediate: clear,
  });
  Math.random = random;
  Date.now = () => startMs + ms + aheadMs;

  const turn = (): Promise<void> => {
    watched.beat();
    return new Promise((resolve) => real.setImmediate(resolve));
  };

  /** Everything that needs no timer has happened; files are the real world's, and time waits for them. */
  async function quiet(): Promise<void> {
    await turn();
    for (let turns = 0; turns < turnsMax && isAtFiles(); turns++) await turn();
  }

  function next(): Timer | undefined {
    let first: Timer | undefined;
    for (const timer of timers.values())
      if (
        !still.has(timer.owner) &&
        (only === undefined || timer.owner === only) &&
        (first === undefined || timer.atMs < first.atMs || (timer.atMs === first.atMs && timer.id < first.id))
      )
        first = timer;
    return first;
  }

  async function step(): Promise<boolean> {
    const timer = next();
    if (timer === undefined) return false;
    ms = Math.max(ms, timer.atMs);
    if (timer.everyMs === null) timers.delete(timer.id);
    else timer.atMs = ms + timer.everyMs;
    trace = (Math.imul(trace, 31) + timer.id + ms) | 0;
    owners.run(timer.owner, timer.ring);
    await quiet();
    return true;
  }

  async function settle<T>(promise: Promise<T>): Promise<T> {
    let isSettled = false;
    const settled = promise.finally(() => {
      isSettled = true;
    });
    settled.catch(() => {});
    for (let turns = 0; turns < turnsMax && !isSettled; turns++) {
      // What waits for the disk needs a few turns; what waits for a timer needs the timer.
      for (let waits = 0; waits < 10 && !isSettled; waits++) await quiet();
      if (!isSettled) await step();
    }
    if (!isSettled) throw new Error("it does not settle");
    return settled;
  }

  return {
    get ms() {
      return ms;
    },
    random,
    clock: { now: () => startMs + ms + aheadMs, monotonic: () => 1000 + ms },
    jump(by) {
      aheadMs += by;
    },
    as: (owner, act) => owners.run(owner, act),
    get owner() {
      return owners.getStore() ?? "";
    },
    within(owner, act) {
      owners.run(owner, () => {
        if (still.has(owner)) setTimeout(act, 0);
        else act();
      });
    },
    standStill: (owner) => void still.add(owner),
    goOn: (owner) => void still.delete(owner),
    get trace() {
      return trace;
    },
    step,
    settle,
    async alone(act) {
      only = "alone";
      try {
        return await settle(owners.run(only, act));
      } finally {
        only = undefined;
      }
    },
    release() {
      watched.over();
      Object.assign(globalThis, real);
      Math.random = realRandom;
      Date.now = realNow;
      // Every promise of the process is marked for each storage that is in use: a thousand worlds would be ten times slower.
      owners.disable();
    },
  };
}

/** Whether something is asked of the file system. */
function isAtFiles(): boolean {
  return process.getActiveResourcesInfo().some((name) => name.startsWith("FSReq"));
}
