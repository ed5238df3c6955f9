// The providers that are known by name, each opened with a key and nothing from the process's environment.

import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import type { Model } from "../model.js";
import { type AiModelOptions, aiModel } from "./ai-sdk.js";

export interface Opening extends Pick<AiModelOptions, "clock" | "limits"> {
  readonly model: string;
  /** "" where the server asks for none. */
  readonly key: string;
  readonly baseUrl: string;
}

export function anthropicModel({ model, key, baseUrl, ...rest }: Opening): Model {
  const takesPrefill = claudeBefore46.test(model);
  return aiModel({
    ...rest,
    provider: "anthropic",
    languageModel: createAnthropic({ apiKey: key, baseURL: baseUrl }).languageModel(model),
    takesPrefill,
    secrets: [key],
    // The same models that lost the prefill think as they see fit, and keep it to themselves unless they are asked.
    ...(takesPrefill
      ? {}
      : { providerOptions: { anthropic: { thinking: { type: "adaptive", display: "summarized" } } } }),
  });
}

/** Claude 4.6 and everything after it answers a prefill with 400. */
const claudeBefore46 = /^claude-(2|3|instant)\b|^claude-(opus|sonnet|haiku)-4(-[0-5])?(-\d{8}|-latest)?$/;

export function openaiModel({ model, key, baseUrl, ...rest }: Opening): Model {
  return aiModel({
    ...rest,
    provider: "openai",
    languageModel: createOpenAI({ apiKey: key, baseURL: baseUrl }).responses(model),
    takesPrefill: false,
    secrets: [key],
    // The log is the one place where a run is kept.
    providerOptions: { openai: { store: false } },
  });
}

/** Whatever speaks chat completions: a server on this machine, or somebody's gateway. */
export function localModel({ model, key, baseUrl, ...rest }: Opening): Model {
  const provider = createOpenAICompatible({
    name: "local",
    baseURL: baseUrl,
    includeUsage: true,
    ...(key === "" ? {} : { apiKey: key }),
  });
  return aiModel({
    ...rest,
    provider: "local",
    languageModel: provider.languageModel(model),
    takesPrefill: false,
    secrets: [key],
  });
}
