/** Time as an argument, so that tests can hold it. */
export interface Clock {
  /** Wall time, which may jump. */
  now(): number;
  /** Time that only goes forward, for leases and waits. */
  monotonic(): number;
  /** The same without the time in which this process was stopped or frozen; left out where that cannot happen. */
  awake?(): number;
}

/** Whoever needs `awake` looks at it every second; after a longer gap the process did not run. */
const gapMsMax = 2000;

/** Nobody was heard while nothing ran: that time counts against nobody. */
export function awakeTime(monotonic: () => number): () => number {
  let seenMs = monotonic();
  let asleepMs = 0;
  return () => {
    const nowMs = monotonic();
    if (nowMs - seenMs > gapMsMax) asleepMs += nowMs - seenMs;
    seenMs = nowMs;
    return nowMs - asleepMs;
  };
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  awake: awakeTime(() => performance.now()),
};
