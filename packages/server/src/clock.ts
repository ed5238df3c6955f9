/** Time as an argument, so that tests can hold it. */
export interface Clock {
  /** Wall time, which may jump. */
  now(): number;
  /** Time that only goes forward, for leases and waits. */
  monotonic(): number;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
};
