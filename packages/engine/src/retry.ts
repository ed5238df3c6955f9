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

export interface Retry {
  readonly failure: ModelFailure;
  /** Which try has failed, from 1. */
  readonly try: number;
  /** How long it is until the next. */
  readonly waitMs: number;
}

export interface Tries {
  readonly signal: AbortSignal;
  readonly clock: Clock;
  /** Gives numbers in [0, 1), like Math.random. */
  readonly random: () => number;
  /** Told of every failed try but the last, which is thrown. The next try waits for it. */
  readonly onRetry: (retry: Retry) => void | Promise<void>;
}

const again: ReadonlySet<FailureKind> = new Set(["rate-limit", "overloaded", "timeout", "broken"]);

/** The usage that `finished` tells, or the thrown failure, is that of all tries together. */
export async function* streamWithRetries(
  model: Model,
  request: ModelRequest,
  { signal, clock, random, onRetry }: Tries,
): AsyncGenerator<ModelPart, void, undefined> {
  const endsMs = clock.nowMs() + limits.triesMsMax;
  let { partial } = request;
  let spent: ModelUsage | undefined;
  for (let tried = 1; ; tried++) {
    const calls: ({ readonly kind: "call" } & Call)[] = [];
    let failure: ModelFailure;
    try {
      for await (const part of model.stream({ ...request, partial }, signal)) {
        if (part.kind === "call") calls.push(part);
        else if (part.kind === "finished") {
          yield* calls;
          yield { ...part, usage: sum(spent, part.usage) };
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
    if (failure.usage !== undefined) spent = sum(spent, failure.usage);
    const waitMs = Math.max(failure.retryMs, jitterMs(tried, random));
    const isLast = !again.has(failure.kind) || tried >= limits.triesMax || clock.nowMs() + waitMs > endsMs;
    if (isLast) throw new ModelFailure(failure.kind, failure.message, failure.retryMs, { usage: spent });
    await onRetry({ failure, try: tried, waitMs });
    await wait(clock, waitMs, signal);
  }
}

/** Full jitter: those who were turned away together do not come back together. */
function jitterMs(tried: number, random: () => number): number {
  const ceilingMs = Math.min(limits.backoffMsMax, limits.backoffMsFirst * 2 ** (tried - 1));
  return Math.floor(random() * ceilingMs);
}

function sum(a: ModelUsage | undefined, b: ModelUsage): ModelUsage {
  if (a === undefined) return b;
  return {
    input_tokens: a.input_tokens + b.input_tokens,
    output_tokens: a.output_tokens + b.output_tokens,
    reasoning_tokens: a.reasoning_tokens + b.reasoning_tokens,
    cached_tokens: a.cached_tokens + b.cached_tokens,
  };
}
