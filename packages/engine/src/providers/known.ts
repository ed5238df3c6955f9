// The providers that are known by name, each opened with a key and nothing from the process's environment.

import type { Model, ModelFailure, ModelRequest } from "../model.js";
import { type AiModelOptions, aiModel, type ProviderOptions } from "./ai-sdk.js";
import { type AnswerLimits, answerLimits } from "./deadlines.js";
import { orElse, replying } from "./or-else.js";

export interface Opening extends Pick<AiModelOptions, "clock" | "limits" | "keyName"> {
  readonly model: string;
  /** "" where the server asks for none. */
  readonly key: string;
  readonly baseUrl: string;
}

export function anthropicModel({ model, key, baseUrl, ...rest }: Opening): Model {
  const takesPrefill = claudeBefore46.test(model);
  const thinking = takesPrefill ? (thinksByBudget.test(model) ? byBudget : never) : asItSeesFit;
  const opened = aiModel({
    ...rest,
    provider: "anthropic",
    model,
    async open(fetch) {
      const { createAnthropic } = await import("@ai-sdk/anthropic");
      return createAnthropic({ apiKey: key, baseURL: baseUrl, fetch }).languageModel(model);
    },
    takesPrefill,
    takesPictures: true,
    secrets: [key],
    providerOptions: thinking,
  });
  // A person's words behind results that came without thoughts begin a turn, in which it may think. Where they are taken
  // for a part of the turn before, an answer ends that.
  const isSameTurn = ({ kind, message }: ModelFailure): boolean =>
    kind === "refused" && /must start with a thinking block/i.test(message);
  return orElse(opened, replying(opened), isSameTurn);
}

/** Claude 4.6 and everything after it answers a prefill with 400. */
const claudeBefore46 = /^claude-(2|3|instant)\b|^claude-(opus|sonnet|haiku)-4(-[0-5])?(-\d{8}|-latest)?$/;
const thinksByBudget = /^claude-(3-7-sonnet|(opus|sonnet)-4|haiku-4-5)\b/;

/** The same models that lost the prefill think as they see fit, and keep it to themselves unless they are asked. */
function asItSeesFit({ aside }: ModelRequest): ProviderOptions {
  // Where it cannot be told not to think, the SDK knows the least of it.
  if (aside !== undefined) return { anthropic: { thinking: { type: "disabled" } } };
  return { anthropic: { thinking: { type: "adaptive", display: "summarized" } } };
}

const thinkingTokensMax = 4096;

/**
 * A prefill and thinking exclude each other. And whoever thinks wants the thoughts of each call whose result it is
 * handed: an answer that was cut off has lost them, so the calls it made are finished without.
 */
function byBudget({ messages, partial, aside }: ModelRequest): ProviderOptions | undefined {
  const asked = messages.findLastIndex(({ role }) => role === "user");
  const isThoughtless = messages
    .slice(asked + 1)
    .some(
      (message) => message.role === "assistant" && message.calls.length > 0 && message.carry === undefined,
    );
  if (partial.trim() !== "" || isThoughtless || aside !== undefined) return undefined;
  return { anthropic: { thinking: { type: "enabled", budgetTokens: thinkingTokensMax } } };
}

function never(): undefined {
  return undefined;
}

export function openaiModel({ model, key, baseUrl, ...rest }: Opening): Model {
  const opened = (reasoning: { readonly reasoningSummary?: "auto" }): Model =>
    aiModel({
      ...rest,
      provider: "openai",
      model,
      async open(fetch) {
        const { createOpenAI } = await import("@ai-sdk/openai");
        return createOpenAI({ apiKey: key, baseURL: baseUrl, fetch }).responses(model);
      },
      takesPrefill: false,
      takesPictures: true,
      secrets: [key],
      providerOptions: ({ aside }) => ({
        openai: {
          // The log is the one place where a run is kept; reasoning goes along encrypted instead.
          store: false,
          ...(aside === undefined ? reasoning : { reasoningEffort: "low" }),
        },
      }),
    });
  // Organisations that OpenAI has not verified are refused an answer with summaries. They get one without.
  const isUnverified = ({ kind, message }: ModelFailure): boolean =>
    kind === "refused" && /summar(y|ies)/i.test(message);
  return orElse(opened({ reasoningSummary: "auto" }), opened({}), isUnverified);
}

/** Whatever speaks chat completions: a server on this machine, or somebody's gateway. */
export function localModel({ model, key, baseUrl, ...rest }: Opening): Model {
  const opened = aiModel({
    limits: loadingLimits,
    ...rest,
    provider: "local",
    model,
    async open(fetch) {
      const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
      const provider = createOpenAICompatible({
        name: "local",
        baseURL: baseUrl,
        includeUsage: true,
        fetch,
        ...(key === "" ? {} : { apiKey: key }),
      });
      return provider.languageModel(model);
    },
    takesPrefill: false,
    secrets: [key],
  });
  // Mistral's models, and the templates of others, want an answer between a result and what a person says: a steer is
  // delivered just there. Not all of them say so with 400.
  const isOutOfTurn = ({ message }: ModelFailure): boolean =>
    /unexpected role|roles must alternate/i.test(message);
  return orElse(opened, replying(opened), isOutOfTurn);
}

/** One that is loaded first, or reads a long prompt on a small machine, is silent for as long as one that thinks. */
const loadingLimits: AnswerLimits = { ...answerLimits, firstPartMsMax: answerLimits.silenceMsMax };
