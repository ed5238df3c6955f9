// How old things are, for whatever is deleted because of its age. Clocks lie: a wall clock may be ten years ahead for a
// minute, or have been behind when a run ended. So ages are counted on a scale of their own, of time that surely
// has passed: while the server runs, as much as its two clocks agree on; while it did not, what the wall clock says,
// but a day at most. What is young on this scale may be old. What is old on it is not young.

import type { Clock } from "../../clock.js";
import type { Write } from "./schema.js";

export interface AgeClock {
  /** Only differences mean something. */
  now(): number;
  /** Keeps it for the next start. */
  save(): Write;
}

interface Saved {
  readonly ageMs: number;
  readonly wallMs: number;
}

const restartMsMax = 24 * 60 * 60 * 1000;
/** Clocks differ by a part of a millisecond at every look: they are compared over longer stretches. */
const stretchMs = 1000;

export function ageClock(clock: Clock, savedText: string | undefined): AgeClock {
  let wallMs = clock.now();
  let monotonicMs = clock.monotonic();
  const saved: Saved = savedText === undefined ? { ageMs: 0, wallMs } : (JSON.parse(savedText) as Saved);
  let ageMs = saved.ageMs + within(wallMs - saved.wallMs, restartMsMax);

  function now(): number {
    const [wallNow, monotonicNow] = [clock.now(), clock.monotonic()];
    const passedMs = within(wallNow - wallMs, monotonicNow - monotonicMs);
    if (monotonicNow - monotonicMs < stretchMs) return ageMs + passedMs;
    ageMs += passedMs;
    wallMs = wallNow;
    monotonicMs = monotonicNow;
    return ageMs;
  }

  return {
    now,
    save: () => ["setMeta", "age", JSON.stringify({ ageMs: now(), wallMs: clock.now() } satisfies Saved)],
  };
}

function within(ms: number, max: number): number {
  return Math.max(0, Math.min(ms, max));
}
