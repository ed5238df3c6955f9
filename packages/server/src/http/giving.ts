// Gives out answers that have an end. What of one is not taken is kept, so whoever takes nothing of it for long does not
// get the rest. Streams are not given so: nothing may be all that they have to say. A replay is written as they are, but
// it has an end, and is watched like the others.

import type { ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { breakOff, streamOf, whenClosed } from "./closing.js";

/**
 * How long nothing may be taken. It is taken in leaps: the system asks for more when a third of what it keeps has gone, and
 * that may be a megabyte.
 */
const stalledMs = 60_000;

/** What is given at once; of more it is seen whether some of it was taken. */
const pieceBytes = 64 * 1024;

/** A whole text, which the head was written for. */
export function giveText(res: ServerResponse, text: string): void {
  if (text.length > pieceBytes) {
    // Where it fails the client has gone, and there is nobody to tell.
    give(res, Readable.from(piecesOf(Buffer.from(text)))).catch(() => {});
    return;
  }
  res.end(text);
  if (res.writableLength > 0) res.on("drain", watch(res));
}

/** Settles when all of it was taken; throws where it was not. */
export async function give(res: ServerResponse, body: Readable): Promise<void> {
  res.on("drain", watch(res));
  await pipeline(body, res);
}

export function* piecesOf(bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += pieceBytes) yield bytes.subarray(at, at + pieceBytes);
}

/** Breaks an answer off where what this gives is not called for too long: when some of the answer was taken. */
export function watch(res: ServerResponse): () => void {
  let isBroken = false;
  const timer = setTimeout(() => {
    if (isBroken) streamOf(res)?.session?.destroy();
    isBroken = true;
    breakOff(res);
    // Over HTTP/2 that is to be taken, too, and where nothing is the whole connection has stopped.
    timer.refresh();
  }, stalledMs).unref();
  whenClosed(res, () => clearTimeout(timer));
  return () => timer.refresh();
}
