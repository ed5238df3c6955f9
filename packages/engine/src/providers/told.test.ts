import { expect, test } from "vitest";
import { toldBy } from "./told.js";

test.each([
  ["OpenAI", { prompt_tokens: 1000, completion_tokens: 50, prompt_tokens_details: { cached_tokens: 800 } }],
  [
    "Anthropic",
    { input_tokens: 150, output_tokens: 50, cache_read_input_tokens: 800, cache_creation_input_tokens: 50 },
  ],
  [
    "a gateway that adds what the cache gave",
    {
      prompt_tokens: 1000,
      completion_tokens: 50,
      prompt_tokens_details: { cached_tokens: 800 },
      cache_read_input_tokens: 800,
      cache_creation_input_tokens: 50,
    },
  ],
  [
    "a gateway that spells everything twice",
    {
      ...{ prompt_tokens: 1000, input_tokens: 1000, completion_tokens: 50, output_tokens: 50 },
      cache_read_input_tokens: 800,
    },
  ],
  [
    "a gateway that leaves one spelling empty",
    {
      ...{ prompt_tokens: 0, input_tokens: 200, completion_tokens: 0, output_tokens: 50 },
      ...{ prompt_tokens_details: { cached_tokens: 0 }, cache_read_input_tokens: 800 },
    },
  ],
])("each token that %s tells of is counted once", (_, usage) => {
  expect(toldBy({ usage }).usage).toEqual({
    ...{ input_tokens: 1000, output_tokens: 50, reasoning_tokens: 0, cached_tokens: 800 },
  });
});
