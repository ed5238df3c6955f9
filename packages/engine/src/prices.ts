// What models cost, in US dollars for a million tokens at the providers' standard rates, as known on 2026-11-16.
// Batch, priority and regional rates, writes to a cache and whatever was agreed between people are not in here: it is an
// estimate, not a bill. Reasoning is billed as output by both providers.

import type { Model, ModelUsage } from "./model.js";

interface Rates {
  readonly input: number;
  readonly cached: number;
  readonly output: number;
}

interface Price extends Rates {
  /** For a request whose input is longer than this, all of it costs that. */
  readonly long?: Rates & { readonly inputTokens: number };
}

const longGpt = 272_000;

/** Twice the input and one and a half times the output, above 272,000 tokens of input. */
function gpt(input: number, cached: number, output: number): Price {
  const long = { inputTokens: longGpt, input: 2 * input, cached: 2 * cached, output: 1.5 * output };
  return { input, cached, output, long };
}

function flat(input: number, cached: number, output: number): Price {
  return { input, cached, output };
}

const prices: { readonly [provider: string]: { readonly [model: string]: Price } } = {
  anthropic: {
    "claude-fable-5-1": flat(10, 0.25, 50),
    "claude-fable-5": flat(10, 1, 50),
    "claude-opus-5-5": flat(4, 0.2, 20),
    "claude-opus-5": flat(5, 0.5, 25),
    "claude-opus-4-8": flat(5, 0.5, 25),
    "claude-opus-4-7": flat(5, 0.5, 25),
    "claude-opus-4-6": flat(5, 0.5, 25),
    "claude-opus-4-5": flat(5, 0.5, 25),
    "claude-opus-4-1": flat(15, 1.5, 75),
    "claude-sonnet-5-5": flat(2, 0.2, 10),
    "claude-sonnet-5": flat(2, 0.2, 10),
    "claude-sonnet-4-6": flat(3, 0.3, 15),
    "claude-sonnet-4-5": flat(3, 0.3, 15),
    "claude-haiku-5-5": {
      ...flat(0.1, 0.01, 0.5),
      long: { inputTokens: 100_000, input: 0.5, cached: 0.05, output: 2.5 },
    },
    "claude-haiku-4-5": flat(1, 0.1, 5),
  },
  openai: {
    "gpt-6.1-sol": gpt(2, 0.1, 10),
    "gpt-6-astra": gpt(10, 1, 50),
    "gpt-6-sol": gpt(2, 0.2, 10),
    "gpt-6-luna": gpt(0.1, 0.01, 0.5),
    "gpt-5.6-sol": gpt(4, 0.4, 20),
    "gpt-5.6-terra": gpt(2, 0.2, 12),
    "gpt-5.6-luna": gpt(0.2, 0.02, 1.2),
    "gpt-5.5": gpt(5, 0.5, 30),
    "gpt-5.4": gpt(2.5, 0.25, 15),
    "gpt-5.4-mini": flat(0.75, 0.075, 4.5),
    "gpt-5.2": flat(1.75, 0.175, 14),
    "gpt-5.1": flat(1.25, 0.125, 10),
    "gpt-5": flat(1.25, 0.125, 10),
    "gpt-5-mini": flat(0.25, 0.025, 2),
    "gpt-5-nano": flat(0.05, 0.005, 0.4),
    "gpt-4.1": flat(2, 0.5, 8),
    "gpt-4.1-mini": flat(0.4, 0.1, 1.6),
    "gpt-4o": flat(2.5, 1.25, 10),
    "gpt-4o-mini": flat(0.15, 0.075, 0.6),
    o3: flat(2, 0.5, 8),
    "o4-mini": flat(1.1, 0.275, 4.4),
  },
};

/** What nobody sends a bill for. */
export function isFree({ provider }: Pick<Model, "provider">): boolean {
  return provider === "local" || provider === "runwire";
}

/** In US dollars; null where the price is not known, or what was used is not. */
export function costOf(
  { provider, name }: Pick<Model, "provider" | "name">,
  usage: ModelUsage | undefined,
): number | null {
  if (isFree({ provider })) return 0;
  const price = priceOf(provider, name);
  if (price === undefined || usage === undefined) return null;
  const { input_tokens, output_tokens, cached_tokens } = usage;
  const { input, cached, output } =
    price.long !== undefined && input_tokens > price.long.inputTokens ? price.long : price;
  const plain_tokens = Math.max(0, input_tokens - cached_tokens);
  return (plain_tokens * input + cached_tokens * cached + output_tokens * output) / 1_000_000;
}

/** A dated name (`-20250929`, `-2025-08-07`, `-latest`) costs what the undated one does. */
function priceOf(provider: string, name: string): Price | undefined {
  const table = Object.hasOwn(prices, provider) ? prices[provider]! : {};
  const undated = name.replace(/-(\d{8}|\d{4}-\d{2}-\d{2}|latest)$/, "");
  return Object.hasOwn(table, undated) ? table[undated] : undefined;
}
