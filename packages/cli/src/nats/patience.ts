// What is asked of NATS is asked again until it is done: it may be away, or slow to come back.

import { backoff, systemClock, unlessAborted, wait } from "@runwire/client";
import { messageOf } from "@runwire/protocol";
import type { Connected } from "./connect.js";

export interface PatienceParts {
  readonly connected: Connected;
  readonly signal: AbortSignal;
  say(line: string): void;
}

/** Tries until it is done; throws where `isFinal` says that another try is of no use, and when the signal aborts. */
export type Patience = <T>(
  what: string,
  work: () => Promise<T>,
  isFinal: (error: unknown) => boolean,
) => Promise<T>;

/** Of a hiccup nobody need hear. */
const triesSilent = 3;

export function patience({ connected, signal, say }: PatienceParts): Patience {
  return async (what, work, isFinal) => {
    const pause = backoff(Math.random);
    for (;;) {
      // What NATS does not answer does not keep us from leaving.
      await unlessAborted(connected.up(), signal);
      try {
        return await unlessAborted(work(), signal);
      } catch (error) {
        signal.throwIfAborted();
        if (isFinal(error)) throw error;
        const why = messageOf(error);
        if (pause.attempts >= triesSilent) say(`${what}: ${why}; trying again`);
        await wait(systemClock, pause.nextMs(), signal);
      }
    }
  };
}

/** The code that JetStream refuses with. */
export function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}
