import { expect, test } from "vitest";
import { retryMsOf } from "./retry-after.js";

const nowMs = Date.parse("2026-01-01T00:00:00Z");

test.each([
  ["nothing", {}, 0],
  ["seconds", { "retry-after": "7" }, 7000],
  ["half seconds", { "retry-after": "0.5" }, 500],
  ["a date", { "retry-after": "Thu, 01 Jan 2026 00:00:30 GMT" }, 30_000],
  ["a date that has passed", { "retry-after": "Wed, 31 Dec 2025 00:00:00 GMT" }, 0],
  ["milliseconds, which are exacter", { "retry-after-ms": "120", "retry-after": "1" }, 120],
  ["nonsense", { "retry-after": "soon" }, 0],
  ["a negative number", { "retry-after": "-5" }, 0],
  [
    "the limit that was hit",
    {
      "x-ratelimit-remaining-requests": "3",
      "x-ratelimit-reset-requests": "9m",
      "x-ratelimit-remaining-tokens": "0",
      "x-ratelimit-reset-tokens": "1m20.5s",
    },
    80_500,
  ],
  [
    "a limit in milliseconds",
    { "x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "20ms" },
    20,
  ],
  [
    "a limit by its date",
    {
      "anthropic-ratelimit-tokens-remaining": "0",
      "anthropic-ratelimit-tokens-reset": "2026-01-01T00:01:00Z",
    },
    60_000,
  ],
])("a provider that says %s", (_, headers, retryMs) => {
  expect(retryMsOf(headers as { [name: string]: string }, nowMs)).toBe(retryMs);
});
