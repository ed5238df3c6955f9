// One answer, in as many tries as it takes. What has been said stays said: a try after a break is handed it as its
// beginning and goes on from there, so that the text is neither repeated nor lost. Calls wait for the end, since a try
// that breaks off takes its calls with it.

import { type Clock, wait } from "./clock.js";
import { limits } from "./limits.js";
import {
  type Call,
  type FailureKind,
  type Model,
  ModelFailure,
  type ModelPart,
  type ModelRequest,
  type ModelUsage,
} from "./model.js";

export interface FailedTry {
  readonly failure: ModelFailure;
  /** Which try has failed, from 1. */
  readonly try: number;
  /** How long it is until the next; null where there is none. */
  readonly waitMs: number | null;
  /** Whether an answer had begun: then something was used up, also where nobody tells how much. */
  readonly hadBegun: boolean;
}

export interface Tries {
  readonly signal: AbortSignal;
  readonly clock: Clock;
  /** Gives numbers in [0, 1), like Math.random. */
  readonly random: () => number;
  /** Told of every failed try. The next one, or the throw, waits for it. */
  readonly onFailed: (failed: FailedTry) => void | Promise<void>;
}

const again: ReadonlySet<FailureKind> = new Set(["rate-limit", "overloaded", "timeout", "broken"]);

/** Each try's usage is its own: that of the last is told by `finished`, that of the others by their failures. */
export async function* streamWithRetries(
  model: Model,
  request: ModelRequest,
  { signal, clock, random, onFailed }: Tries,
): AsyncGenerator<ModelPart, void, undefined> {
  const endsMs = clock.nowMs() + limits.triesMsMax;
  let { partial } = request;
  for (let tried = 1; ; tried++) {
    const calls: ({ readonly kind: "call" } & Call)[] = [];
    let failure: ModelFailure;
    let hadBegun = false;
    try {
      for await (const part of model.stream({ ...request, partial }, signal)) {
        hadBegun = true;
        if (part.kind === "call") calls.push(part);
        else if (part.kind === "finished") {
          if (calls.length > limits.callsPerAnswerMax) throw tooManyCalls(part.usage);
          yield* calls;
          yield part;
          return;
        } else {
          if (part.kind === "text") partial += part.text;
          yield part;
        }
      }
      signal.throwIfAborted();
      failure = new ModelFailure("broken", `${model.provider} ended its answer without a finish`);
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof ModelFailure)) throw error;
      failure = error;
    }
    const waitMs = Math.max(failure.retryMs, jitterMs(tried, random));
    const isLast = !again.has(failure.kind) || tried >= limits.triesMax || clock.nowMs() + waitMs > endsMs;
    await onFailed({ failure, try: tried, waitMs: isLast ? null : waitMs, hadBegun });
    if (isLast) throw failure;
    await wait(clock, waitMs, signal);
  }
}

/** The same would be answered again. */
function tooManyCalls(usage: ModelUsage): ModelFailure {
  return new ModelFailure("refused", `more than ${limits.callsPerAnswerMax} calls in one answer`, 0, {
    usage,
  });
}

/** Full jitter: those who were turned away together do not come back together. */
function jitterMs(tried: number, random: () => number): number {
  const ceilingMs = Math.min(limits.backoffMsMax, limits.backoffMsFirst * 2 ** (tried - 1));
  return Math.floor(random() * ceilingMs);
}
