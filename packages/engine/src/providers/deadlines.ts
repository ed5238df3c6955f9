// How long an answer may take to begin, to go on and to end. The time in which nobody listens does not count against
// the provider, so silence is measured only while a part is waited for. Any byte breaks it: servers that are at it say so in
// comments, long before there is a part.

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
  /** A sign of life has come. */
  heard(): void;
  /** Waits for the next part. */
  listen<T>(next: PromiseLike<T>): Promise<T>;
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
  let isListening = false;
  let endSilence = (): void => {};
  const waitAnew = (): void => {
    endSilence();
    endSilence = clock.after(silenceMsMax, () => ring(`fell silent for ${silenceMsMax} ms`));
  };
  const endFirst = clock.after(firstPartMsMax, () => ring(`did not begin to answer in ${firstPartMsMax} ms`));
  const endAnswer = clock.after(answerMsMax, () => ring(`did not end its answer in ${answerMsMax} ms`));
  return {
    heard() {
      hasBegun = true;
      endFirst();
      if (isListening) waitAnew();
    },
    async listen(next) {
      isListening = true;
      if (hasBegun) waitAnew();
      try {
        return await next;
      } finally {
        isListening = false;
        endSilence();
      }
    },
    stop() {
      endFirst();
      endAnswer();
    },
  };
}
