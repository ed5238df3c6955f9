// How long an answer may take to begin, to go on and to end. The time in which nobody listens does not count against
// the provider, so silence is measured only while a part is waited for.

import type { Clock } from "../clock.js";
import { limits } from "../limits.js";
import { ModelFailure } from "../model.js";

export interface AnswerLimits {
  readonly firstPartMsMax: number;
  readonly silenceMsMax: number;
  readonly answerMsMax: number;
}

export const answerLimits: AnswerLimits = limits;

export interface Deadlines {
  /** A part has come. */
  heard(): void;
  /** Waits for the next one. */
  listen<T>(next: Promise<T>): Promise<T>;
  stop(): void;
}

/** Rings `late` once, with what was missed. */
export function deadlines(
  clock: Clock,
  { firstPartMsMax, silenceMsMax, answerMsMax }: AnswerLimits,
  late: (failure: (provider: string) => ModelFailure) => void,
): Deadlines {
  const ring = (words: string): void =>
    late((provider) => new ModelFailure("timeout", `${provider} ${words}`));
  let hasBegun = false;
  const endFirst = clock.after(firstPartMsMax, () => ring(`did not begin to answer in ${firstPartMsMax} ms`));
  const endAnswer = clock.after(answerMsMax, () => ring(`did not end its answer in ${answerMsMax} ms`));
  return {
    heard() {
      if (hasBegun) return;
      hasBegun = true;
      endFirst();
    },
    async listen(next) {
      if (!hasBegun) return await next;
      const endSilence = clock.after(silenceMsMax, () => ring(`fell silent for ${silenceMsMax} ms`));
      try {
        return await next;
      } finally {
        endSilence();
      }
    },
    stop() {
      endFirst();
      endAnswer();
    },
  };
}
