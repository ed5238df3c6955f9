// When a provider says to come back. Each has headers of its own, and none of them is to be trusted to be there.

type Headers = { readonly [name: string]: string };

/** 0 where it does not say. */
export function retryMsOf(headers: Headers, nowMs: number): number {
  const told = [
    milliseconds(headers["retry-after-ms"]),
    secondsOrDate(headers["retry-after"], nowMs),
    // What is used up says when it is full again; whichever takes longest is the one that was hit.
    Math.max(0, ...windows.map((window) => resetMs(headers, window, nowMs) ?? 0)),
  ];
  return told.find((ms) => ms !== undefined && ms > 0) ?? 0;
}

const windows = [
  { left: "x-ratelimit-remaining-requests", reset: "x-ratelimit-reset-requests" },
  { left: "x-ratelimit-remaining-tokens", reset: "x-ratelimit-reset-tokens" },
  { left: "anthropic-ratelimit-requests-remaining", reset: "anthropic-ratelimit-requests-reset" },
  { left: "anthropic-ratelimit-tokens-remaining", reset: "anthropic-ratelimit-tokens-reset" },
  { left: "anthropic-ratelimit-input-tokens-remaining", reset: "anthropic-ratelimit-input-tokens-reset" },
  { left: "anthropic-ratelimit-output-tokens-remaining", reset: "anthropic-ratelimit-output-tokens-reset" },
] as const;

function resetMs(
  headers: Headers,
  { left, reset }: (typeof windows)[number],
  nowMs: number,
): number | undefined {
  if (headers[left] !== "0") return undefined;
  return span(headers[reset]) ?? secondsOrDate(headers[reset], nowMs);
}

function milliseconds(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,9}(\.\d+)?$/.test(text) ? Math.ceil(Number(text)) : undefined;
}

function secondsOrDate(text: string | undefined, nowMs: number): number | undefined {
  if (text === undefined) return undefined;
  if (/^\d{1,9}(\.\d+)?$/.test(text)) return Math.ceil(Number(text) * 1000);
  const dateMs = Date.parse(text);
  return Number.isNaN(dateMs) ? undefined : Math.max(0, dateMs - nowMs);
}

const unitMs = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1000, ms: 1 } as const;

/** As OpenAI writes it: `20ms`, `1.5s`, `6m0s`. */
function span(text: string | undefined): number | undefined {
  if (text === undefined || !/^(\d+(\.\d+)?(ms|[dhms]))+$/.test(text)) return undefined;
  const pieces = [...text.matchAll(/(\d+(?:\.\d+)?)(ms|[dhms])/g)];
  return Math.ceil(
    pieces.reduce((sum, [, n, unit]) => sum + Number(n) * unitMs[unit as keyof typeof unitMs], 0),
  );
}
