// A clock that a test moves by hand. `armed` is how a test waits for the code to begin waiting.

import type { Clock } from "../clock.js";

export interface ManualClock extends Clock {
  /** Moves time on, ringing whatever is due on the way. */
  advance(ms: number): void;
  /** Whether a timer of exactly this delay is set. */
  isArmed(delayMs: number): boolean;
  /** Resolves when one is. */
  armed(delayMs: number): Promise<void>;
}

interface Timer {
  readonly dueMs: number;
  readonly delayMs: number;
  readonly ring: () => void;
}

export function manualClock(): ManualClock {
  const timers = new Set<Timer>();
  const watchers = new Set<{ readonly delayMs: number; readonly seen: () => void }>();
  let nowMs = 0;

  function nextDue(untilMs: number): Timer | undefined {
    return [...timers].filter(({ dueMs }) => dueMs <= untilMs).sort((a, b) => a.dueMs - b.dueMs)[0];
  }

  function isArmed(delayMs: number): boolean {
    return [...timers].some((timer) => timer.delayMs === delayMs);
  }

  return {
    nowMs: () => nowMs,
    after(delayMs, ring) {
      const timer = { dueMs: nowMs + delayMs, delayMs, ring };
      timers.add(timer);
      for (const watcher of watchers) {
        if (watcher.delayMs !== delayMs) continue;
        watchers.delete(watcher);
        watcher.seen();
      }
      return () => timers.delete(timer);
    },
    advance(ms) {
      const untilMs = nowMs + ms;
      for (let timer = nextDue(untilMs); timer !== undefined; timer = nextDue(untilMs)) {
        timers.delete(timer);
        nowMs = timer.dueMs;
        timer.ring();
      }
      nowMs = untilMs;
    },
    isArmed,
    armed(delayMs) {
      if (isArmed(delayMs)) return Promise.resolve();
      return new Promise((seen) => watchers.add({ delayMs, seen }));
    },
  };
}
