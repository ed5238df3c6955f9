// SSE and NDJSON over HTTP/1.1. The head of the response is Node's; after it the bytes go straight to the
// socket, already in chunk framing, because `res.write` would frame them again for every reader.

import type { ServerResponse } from "node:http";
import { type Close, keepalive, sseFrame, sseRetry } from "@runwire/protocol";
import { breakOff, streamOf, whenClosed } from "../http/closing.js";
import { piecesOf, watch } from "../http/giving.js";
import type { Call } from "../http/route.js";
import type { Rooms } from "../rooms.js";
import type { Sink, Stream } from "../stream.js";
import { chunk } from "../wire.js";
import { waitsForDrain } from "./draining.js";

export type HttpFraming = "sse" | "ndjson";

const contentTypes = {
  sse: "text/event-stream; charset=utf-8",
  ndjson: "application/x-ndjson; charset=utf-8",
};
const signs = { sse: Buffer.from(keepalive), ndjson: Buffer.from("\n") };
const retryMsMin = 50;
const retryMsMax = 2000;
/** How long whoever has no right to the connection any more may keep it, by not reading that it is over. */
const comeForEndMs = 5000;

export interface HttpStream {
  readonly sink: Sink;
  /** Connects the socket's events to the stream that feeds the sink. */
  attach(stream: Stream): void;
}

/** HTTP/1.0 knows no chunks: its streams end with the connection. HTTP/2 has frames of its own. */
export function isChunked(res: ServerResponse): boolean {
  return res.req.httpVersion === "1.1";
}

/** One that has an end, as a replay does, is broken off where nothing of it is taken for long. */
export function httpStream(
  { res, caller, begin }: Pick<Call, "res" | "caller" | "begin">,
  framing: HttpFraming,
  { clock, connections }: Pick<Rooms, "clock" | "connections">,
  { hasEnd = false } = {},
): HttpStream {
  // Where the bytes go: to the connection itself, or to the one stream of it that is ours.
  const socket = streamOf(res) ?? res.socket;
  let stream: Stream | undefined;
  let sentMs = clock.monotonic();
  let gone = false;
  let ended = false;
  /** The credential has ended, and no event follows. It may do so before there is a stream to close. */
  let isOver = false;
  let letGo: NodeJS.Timeout | undefined;
  let full = false;
  const taken = hasEnd ? watch(res) : undefined;
  const framed = (bytes: Buffer): Buffer => (isChunked(res) ? chunk(bytes) : bytes);

  begin(200, {
    "Content-Type": contentTypes[framing],
    "Cache-Control": "no-cache, no-transform",
    "X-Accel-Buffering": "no",
    ...(isChunked(res) ? { "Transfer-Encoding": "chunked" } : {}),
  });
  res.flushHeaders();

  const remove = connections.add({
    sentMs: () => sentMs,
    caller,
    ping() {
      // Greetings would pile up behind what a reader that has stopped does not take; what waits there is sign enough.
      if (full) sentMs = clock.monotonic();
      else write(framed(signs[framing]));
    },
    leave: () => stream?.close("leaving"),
    end(why) {
      if (isOver) return;
      isOver = true;
      const told = JSON.stringify(why);
      write(
        framed(Buffer.from(framing === "sse" ? sseFrame({ event: "closing", data: told }) : `${told}\n`)),
      );
      stream?.close("leaving", "credentials");
      letGo = setTimeout(() => breakOff(res), comeForEndMs).unref();
    },
  });
  const drained = (): void => {
    if (!full) return;
    full = false;
    stream?.drained();
  };
  socket?.on("drain", drained);
  whenClosed(res, () => {
    gone = true;
    clearTimeout(letGo);
    remove();
    socket?.off("drain", drained);
    stream?.close("broken");
  });

  function write(bytes: Buffer): void {
    // After its end the connection is the next answer's.
    if (gone || ended || socket === null) return;
    sentMs = clock.monotonic();
    if (taken === undefined) socket.write(bytes);
    // In pieces, so that it is seen whether some of it is taken.
    else for (const piece of piecesOf(bytes)) socket.write(piece, taken);
    full = waitsForDrain(socket);
  }

  return {
    sink: {
      isFull: () => full,
      send(bytes) {
        if (!isOver) write(bytes);
      },
      close(close: Close) {
        if (gone) return;
        if (close === "broken") {
          breakOff(res);
          return;
        }
        if (close === "leaving" && framing === "sse") {
          const spread = Math.round(retryMsMin + Math.random() * (retryMsMax - retryMsMin));
          write(framed(Buffer.from(sseRetry(spread))));
        }
        ended = true;
        remove();
        res.end();
      },
    },
    attach(opened) {
      stream = opened;
      if (gone) opened.close("broken");
      else if (isOver) opened.close("leaving", "credentials");
      else if (connections.leaving) opened.close("leaving");
    },
  };
}
