// The way to an MCP server behind HTTP, with the bounds that the SDK leaves out: how large a message is, how long an answer
// is listened to, how soon a broken stream is asked for again.

import { setTimeout as sleep } from "node:timers/promises";
import type { FetchLike } from "@modelcontextprotocol/sdk/shared/transport.js";
import { toolLimits } from "./limits.js";

export interface McpFetchOptions {
  /** For a request with its whole answer. */
  readonly answerMs: number;
  /** Hears of a message that is larger than any may be. */
  tooLarge(): void;
}

export function mcpFetch({ answerMs, tooLarge }: McpFetchOptions): FetchLike {
  let askedMs = performance.now();
  return async (url, { signal: given, ...init } = {}) => {
    const signals = given ? [given] : [];
    if (init.method === "GET") {
      // A stream of what nobody asked for is not opened: there is nothing in it that we would act on. One that broke off is
      // gone on with, but the server has no say in how soon, and not for longer than a call lasts.
      const isResumed = new Headers(init.headers).has("last-event-id");
      if (!isResumed || performance.now() > askedMs + answerMs) return new Response(null, { status: 405 });
      await sleep(toolLimits.mcpResumeMs, undefined, { signal: AbortSignal.any(signals), ref: false });
    } else askedMs = performance.now();
    const signal = AbortSignal.any([...signals, AbortSignal.timeout(answerMs)]);
    const response = await fetch(url, { ...init, signal });
    if (response.body === null) return response;
    const { status, statusText, headers } = response;
    const isStream = (headers.get("content-type") ?? "").toLowerCase().startsWith("text/event-stream");
    return new Response(response.body.pipeThrough(bounded(isStream, tooLarge)), {
      status,
      statusText,
      headers,
    });
  };
}

/** Passes on what comes, up to the size of a message: of all of it, or from one empty line to the next. */
function bounded(isStream: boolean, tooLarge: () => void): TransformStream<Uint8Array, Uint8Array> {
  let bytes = 0;
  let lineBytes = 0;
  let last = 0;
  const count = (chunk: Uint8Array): void => {
    for (const byte of chunk) {
      const isEnd = byte === lf || byte === cr;
      bytes++;
      // The second half of CR LF ends nothing.
      if (isEnd && !(byte === lf && last === cr)) {
        if (lineBytes === 0) bytes = 0;
        lineBytes = 0;
      } else if (!isEnd) lineBytes++;
      last = byte;
    }
  };
  return new TransformStream({
    transform(chunk, controller) {
      if (isStream) count(chunk);
      else bytes += chunk.length;
      if (bytes <= toolLimits.mcpMessageBytesMax) return controller.enqueue(chunk);
      controller.error(new Error("a message is too large"));
      tooLarge();
    },
  });
}

const lf = 0x0a;
const cr = 0x0d;
