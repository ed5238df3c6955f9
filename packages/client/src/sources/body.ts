// A streamed response body as batches of messages, for SSE and NDJSON alike.

import type { Message } from "@runwire/protocol";
import { RunwireError } from "@runwire/protocol";
import { ask, type Endpoint } from "../http.js";
import { endingOf } from "./run-stream.js";
import type { Batches, Ending } from "./source.js";

/** Gives the messages that a piece of text completes. */
export type Parse = (text: string) => readonly Message[];

export async function* readBody(
  endpoint: Endpoint,
  request: { readonly path: string; readonly accept: string; readonly signal: AbortSignal },
  parse: Parse,
): Batches {
  const answer = await ask(endpoint, {
    path: request.path,
    headers: { accept: request.accept },
    signal: request.signal,
  });
  if (!answer.ok) return endingOf(answer);
  const response = answer.value;
  if (response.status === 204 || response.body === null) return { close: "finished" };
  const type = response.headers.get("content-type") ?? "no content type";
  if (!type.startsWith(request.accept)) {
    await response.body.cancel();
    throw new RunwireError(
      "KAI-STREAM-PROTO-0001",
      `${response.url} answered ${type}, not ${request.accept}`,
    );
  }
  yield [];
  return yield* readPieces(response.body, parse, request.signal);
}

async function* readPieces(body: ReadableStream<Uint8Array>, parse: Parse, signal: AbortSignal): Batches {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  const next = () => reader.read().catch((cause: unknown): Ending => ({ close: "broken", cause }));
  // Fails where the body already has; there is nobody left to tell.
  const stop = () => void reader.cancel().catch(() => {});
  // Once for all pieces: the body of a fetch that knows no signal goes on after it, and a read of it would never end.
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) stop();
  try {
    for (;;) {
      const piece = await next();
      if (signal.aborted) return { close: "broken", cause: signal.reason };
      if ("close" in piece) return piece;
      // A clean end: a terminal event, had there been one, would have ended the reading before.
      if (piece.done) return { close: "leaving" };
      yield parse(decoder.decode(piece.value, { stream: true }));
    }
  } finally {
    signal.removeEventListener("abort", stop);
    stop();
  }
}
