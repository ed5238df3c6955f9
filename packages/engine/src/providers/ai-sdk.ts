// A model behind the AI SDK, one answer at a time: the SDK speaks each provider's wire, and our own loop runs the tools,
// because pause, steer and approve are events of our log.
//
// Calls are given only with the end of the answer. An answer that breaks off may end in half a call that looks whole,
// and the next try writes its calls anew: who has heard of a call already would make it twice.

import type { LanguageModelV3, LanguageModelV3CallOptions } from "@ai-sdk/provider";
import { type Clock, systemClock } from "../clock.js";
import { type Model, ModelFailure, type ModelPart, type ModelRequest } from "../model.js";
import { type AnswerLimits, answerLimits, deadlines } from "./deadlines.js";
import { failureOf } from "./failure.js";
import { hearing } from "./hearing.js";
import { promptFor } from "./prompt.js";

export type ProviderOptions = NonNullable<LanguageModelV3CallOptions["providerOptions"]>;

type Fetch = typeof fetch;

export interface AiModelOptions {
  /** As `anthropic/…` says it. */
  readonly provider: string;
  /** As the provider calls it. */
  readonly model: string;
  /** Asked for with each answer, which has a line of its own: the SDK of a provider is loaded where it is used. */
  readonly open: (fetch: Fetch) => Promise<LanguageModelV3>;
  readonly takesPrefill: boolean;
  /** Whether a tool's result may hold pictures. */
  readonly takesPictures?: boolean;
  /** Keys, which no message may show. */
  readonly secrets?: readonly string[];
  /** The setting that a key was taken from, for whoever has to mend it. */
  readonly keyName?: string;
  readonly providerOptions?: (request: ModelRequest) => ProviderOptions | undefined;
  readonly clock?: Clock;
  readonly limits?: AnswerLimits;
}

export function aiModel(options: AiModelOptions): Model {
  const { provider, model: name, takesPrefill, clock = systemClock } = options;
  return {
    name,
    provider,
    takesPrefill,
    stream: (request, signal) => answer(options, clock, request, signal),
  };
}

async function* answer(
  options: AiModelOptions,
  clock: Clock,
  request: ModelRequest,
  signal: AbortSignal,
): AsyncGenerator<ModelPart, void, undefined> {
  signal.throwIfAborted();
  const { provider, open, takesPrefill, takesPictures = false, secrets = [], keyName } = options;
  const providerOptions = options.providerOptions?.(request);
  const prompt = promptFor(request, takesPrefill, takesPictures);
  const heard = hearing(prompt.toolNames, request.partial, takesPrefill);
  const hangUp = new AbortController();
  const stop = (): void => hangUp.abort(signal.reason);
  signal.addEventListener("abort", stop, { once: true });
  let missed: ModelFailure | undefined;
  const due = deadlines(clock, options.limits ?? answerLimits, (failure) => {
    missed ??= failure(provider);
    hangUp.abort(missed);
  });
  try {
    const languageModel = await open(heeding(due.heard)).catch((cause: unknown) => {
      throw new ModelFailure("broken", `${provider} could not be opened`, 0, { cause });
    });
    // Loading takes a moment, and who has aborted meanwhile is asked nothing for.
    signal.throwIfAborted();
    const { stream, response } = await due.listen(
      languageModel.doStream({
        ...prompt.options,
        ...(providerOptions === undefined ? {} : { providerOptions }),
        abortSignal: hangUp.signal,
        // They tell of usage before the end.
        includeRawChunks: true,
      }),
    );
    heard.headers(response?.headers ?? {});
    const reader = stream.getReader();
    for (;;) {
      const { done, value } = await due.listen(reader.read());
      if (done) break;
      for (const part of heard.hear(value)) yield part;
      if (heard.isFinished()) return;
    }
    throw heard.endedEarly(provider);
  } catch (error) {
    signal.throwIfAborted();
    const nowMs = clock.nowMs();
    const failure = missed ?? failureOf(error, { provider, secrets, keyName, nowMs, usage: heard.usage() });
    throw failure.usage === undefined ? heard.counted(failure) : failure;
  } finally {
    due.stop();
    signal.removeEventListener("abort", stop);
    // Whoever stops listening hangs up, so that nobody pays for what nobody hears.
    hangUp.abort();
  }
}

/** A fetch that tells of all that comes of an answer: the SDK keeps a server's comments to itself. */
function heeding(onBytes: () => void): Fetch {
  return async (input, init) => {
    const response = await fetch(input, init);
    if (!response.ok || response.body === null) return response;
    const told = new TransformStream<Uint8Array, Uint8Array>({
      transform(bytes, controller) {
        onBytes();
        controller.enqueue(bytes);
      },
    });
    return new Response(response.body.pipeThrough(told), response);
  };
}
