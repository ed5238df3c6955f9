// Server-sent events over fetch, because EventSource can neither send headers nor show a refusal's code.

import { type Message, RunwireError } from "@runwire/protocol";
import { createParser } from "eventsource-parser";
import type { Endpoint } from "../http.js";
import { limits } from "../limits.js";
import { readBody } from "./body.js";
import { dialectOf, pagesOf, type RunStreamOptions, runStreamPath } from "./run-stream.js";
import type { Batches, Source } from "./source.js";

export function sseSource(stream: RunStreamOptions): Source {
  return {
    dialect: dialectOf(stream),
    runs: [stream.run_id],
    silenceMsMax: limits.silenceMsMax,
    open: (at, signal) => readSse(stream, runStreamPath(stream, at), signal),
    page: pagesOf(stream),
  };
}

/** One SSE connection. A block that the end cuts off is dropped, as the standard wants. */
export async function* readSse(endpoint: Endpoint, path: string, signal: AbortSignal): Batches {
  let messages: Message[] = [];
  let retryMs: number | undefined;
  const parser = createParser({
    maxBufferSize: limits.frameCharsMax,
    onEvent({ id, event, data }) {
      messages.push({ data, ...(id === undefined ? {} : { id }), ...(event === undefined ? {} : { event }) });
    },
    onRetry(ms) {
      retryMs = Math.min(ms, limits.retryMsMax);
    },
    onError(error) {
      // Fields we don't know are skipped; a block without end is not.
      if (error.type !== "max-buffer-size-exceeded") return;
      throw new RunwireError("KAI-REQUEST-SIZE-0001", error.message);
    },
  });
  const ending = yield* readBody(endpoint, { path, accept: "text/event-stream", signal }, (text) => {
    messages = [];
    parser.feed(text);
    return messages;
  });
  return retryMs === undefined ? ending : { ...ending, retryMs };
}
