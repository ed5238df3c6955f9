// Time that passes only when it is told to. While it is held, every timer of the process waits here, and `Math.random`
// is drawn from the seed: what happens, and in which order, follows from the seed alone.

export interface HeldTime {
  /** Since it was taken. */
  readonly ms: number;
  readonly random: () => number;
  /** Wall time, which somebody may set; and time that only goes forward. */
  readonly clock: { now(): number; monotonic(): number };
  jump(ms: number): void;
  /** Lets time pass up to the next timer, and everything happen that follows from it; false where none waits. */
  step(): Promise<boolean>;
  /** Waits for something that needs the real world, such as a file; virtual time stands still until nothing moves. */
  settle<T>(promise: Promise<T>): Promise<T>;
  /** Gives the process its timers back. */
  release(): void;
}

interface Timer {
  readonly id: number;
  atMs: number;
  readonly everyMs: number | null;
  readonly ring: () => void;
}

/** mulberry32: small, and the same everywhere. */
export function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

const startMs = Date.UTC(2026, 4, 14, 19, 42);
const turnsMax = 200_000;

export function holdTime(seed: number): HeldTime {
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
    timers.set(id, { id, atMs: ms + wait, everyMs, ring: () => ring(...args) });
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

  /** Everything that needs no timer has happened. */
  const turn = (): Promise<void> => new Promise((resolve) => real.setImmediate(resolve));

  function next(): Timer | undefined {
    let first: Timer | undefined;
    for (const timer of timers.values())
      if (
        first === undefined ||
        timer.atMs < first.atMs ||
        (timer.atMs === first.atMs && timer.id < first.id)
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
    timer.ring();
    await turn();
    return true;
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
    step,
    async settle(promise) {
      let isSettled = false;
      const settled = promise.finally(() => {
        isSettled = true;
      });
      settled.catch(() => {});
      for (let turns = 0; turns < turnsMax && !isSettled; turns++) {
        await turn();
        // What waits for the disk needs a few turns; what waits for a timer needs the timer.
        if (turns > 0 && turns % 50 === 0) await step();
      }
      if (!isSettled) throw new Error("it does not settle");
      return settled;
    },
    release() {
      Object.assign(globalThis, real);
      Math.random = realRandom;
      Date.now = realNow;
    },
  };
}
