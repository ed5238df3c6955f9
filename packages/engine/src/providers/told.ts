// What a provider tells on the way that the AI SDK keeps for the end, or to itself: read from the chunks as they came,
// so that a try that fails is still counted.

import type { LanguageModelV3Usage } from "@ai-sdk/provider";
import type { ModelUsage } from "../model.js";

export interface Told {
  readonly usage?: ModelUsage;
  readonly refs?: { readonly [name: string]: string };
  /** Why the answer ends, in the provider's own word. */
  readonly finish?: string;
  /** Whether it thinks in `reasoning_content`: who writes it so takes it back so, and others refuse it. */
  readonly takesThoughts?: true;
}

export function toldBy(chunk: unknown): Told {
  if (!isRecord(chunk)) return {};
  const message = isRecord(chunk.message) ? chunk.message : {};
  const usage = usageIn(message.usage) ?? usageIn(chunk.usage);
  const { system_fingerprint: fingerprint } = chunk;
  const { finish_reason: finish, delta } = choiceIn(chunk);
  const thoughts = isRecord(delta) ? delta.reasoning_content : undefined;
  return {
    ...(usage === undefined ? {} : { usage }),
    ...(typeof fingerprint === "string" ? { refs: { system_fingerprint: fingerprint } } : {}),
    ...(typeof finish === "string" && finish !== "" ? { finish } : {}),
    ...(typeof thoughts === "string" && thoughts !== "" ? { takesThoughts: true } : {}),
  };
}

/** What a chunk of a chat completion says. */
function choiceIn({ choices }: Members): Members {
  const choice: unknown = Array.isArray(choices) ? choices[0] : undefined;
  return isRecord(choice) ? choice : {};
}

export function usageOf({ inputTokens, outputTokens }: LanguageModelV3Usage): ModelUsage {
  return {
    input_tokens: inputTokens.total ?? 0,
    output_tokens: outputTokens.total ?? 0,
    reasoning_tokens: outputTokens.reasoning ?? 0,
    cached_tokens: inputTokens.cacheRead ?? 0,
  };
}

/** The larger of each: what is told later is told in full, or left out. */
export function mostOf(a: ModelUsage | undefined, b: ModelUsage): ModelUsage {
  if (a === undefined) return b;
  return {
    input_tokens: Math.max(a.input_tokens, b.input_tokens),
    output_tokens: Math.max(a.output_tokens, b.output_tokens),
    reasoning_tokens: Math.max(a.reasoning_tokens, b.reasoning_tokens),
    cached_tokens: Math.max(a.cached_tokens, b.cached_tokens),
  };
}

function usageIn(usage: unknown): ModelUsage | undefined {
  if (!isRecord(usage)) return undefined;
  const details = isRecord(usage.prompt_tokens_details) ? usage.prompt_tokens_details : {};
  const outDetails = isRecord(usage.completion_tokens_details) ? usage.completion_tokens_details : {};
  const cached = count(usage.cache_read_input_tokens);
  // Gateways tell the same in two spellings. Only Anthropic's own counts what the cache gave and took beside the input.
  const beside = cached + count(usage.cache_creation_input_tokens);
  return {
    input_tokens: count(usage.prompt_tokens) || count(usage.input_tokens) + beside,
    output_tokens: count(usage.completion_tokens) || count(usage.output_tokens),
    reasoning_tokens: count(outDetails.reasoning_tokens),
    cached_tokens: count(details.cached_tokens) || cached,
  };
}

function count(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) && value > 0 ? value : 0;
}

type Members = { readonly [member: string]: unknown };

function isRecord(value: unknown): value is Members {
  return typeof value === "object" && value !== null;
}
