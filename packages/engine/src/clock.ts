// Time is an argument: what waits takes a Clock. Only what waits for a process or a server, as tools and hooks do, goes
// by the system's own timers.

export interface Clock {
  nowMs(): number;
  /** Rings once after the delay, unless the returned function is called first. */
  after(delayMs: number, ring: () => void): () => void;
}

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  after(delayMs, ring) {
    const timer = setTimeout(ring, delayMs);
    return () => clearTimeout(timer);
  },
};

/** Resolves after the delay; rejects with the signal's reason as soon as it aborts. */
export function wait(clock: Clock, delayMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    const stop = (): void => {
      cancel();
      reject(signal.reason);
    };
    const cancel = clock.after(delayMs, () => {
      signal.removeEventListener("abort", stop);
      resolve();
    });
    signal.addEventListener("abort", stop, { once: true });
  });
}
