// Random choices that can be made again: the seed is printed, and RUNWIRE_SEED gives it back.

export interface Chance {
  readonly seed: number;
  /** A whole number from min to max. */
  whole(min: number, max: number): number;
  pick<T>(items: readonly T[]): T;
}

export const isSoak = process.env.RUNWIRE_SOAK === "1";

export const givenSeed = process.env.RUNWIRE_SEED;

export function newSeed(): number {
  return Number(givenSeed ?? Math.floor(Math.random() * 2 ** 31));
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

/** `name` is printed with the seed. */
export function chance(name: string): Chance {
  const seed = newSeed();
  process.stdout.write(`${name}: RUNWIRE_SEED=${seed}\n`);
  const next = randomFrom(seed);
  const whole = (min: number, max: number): number => min + Math.floor(next() * (max - min + 1));
  return { seed, whole, pick: (items) => items[whole(0, items.length - 1)] as never };
}
