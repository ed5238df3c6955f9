// The back-off of all that waits for a server, be it a gateway or NATS (how models are asked again is the engine's):
// exponential with full jitter, so that a thousand clients that lost the same server do not come back in the same
// moment.

import { type Clock, wait } from "./clock.js";
import type { Answer, Refusal } from "./http.js";
import { limits } from "./limits.js";

export interface Backoff {
  /** Attempts in a row that brought nothing. */
  readonly attempts: number;
  /** The next wait is at most this long. */
  readonly ceilingMs: number;
  /** How long to wait now; counts an attempt. */
  nextMs(): number;
  /** Something came: the next wait is short again. */
  reset(): void;
}

/** `random` gives numbers in [0, 1), like Math.random. */
export function backoff(random: () => number): Backoff {
  let attempts = 0;
  const ceilingMs = (): number => Math.min(limits.backoffMsMax, limits.backoffMsFirst * 2 ** attempts);
  return {
    get attempts() {
      return attempts;
    },
    get ceilingMs() {
      return ceilingMs();
    },
    nextMs() {
      const delayMs = Math.floor(random() * ceilingMs());
      attempts += 1;
      return delayMs;
    },
    reset() {
      attempts = 0;
    },
  };
}

export interface Patience {
  readonly clock: Clock;
  readonly random: () => number;
  readonly signal: AbortSignal;
  readonly attemptsMax: number;
}

/** Asks until there is an answer, or a refusal that asking again would not change. */
export async function persist<T>(ask: () => Promise<Answer<T>>, patience: Patience): Promise<Answer<T>> {
  const pause = backoff(patience.random);
  for (;;) {
    const answer = await ask();
    if (answer.ok || !answer.again) return answer;
    const delayMs = Math.max(pause.nextMs(), answer.retryMs);
    if (pause.attempts >= patience.attemptsMax) return gaveUp(answer);
    await wait(patience.clock, delayMs, patience.signal);
  }
}

function gaveUp(refusal: Refusal): Refusal {
  return { ...refusal, again: false };
}
