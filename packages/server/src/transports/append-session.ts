// One long request whose lines are committed as they come. Each commit is answered with a line of its own; a bad
// line ends the session with an error line that names it, and the lines before it stay.

import type { IncomingMessage } from "node:http";
import { type Dialect, type Draft, limits, lineSplitter, RunwireError } from "@runwire/protocol";
import type { Connections } from "../connections.js";
import { parseLine } from "../http/body.js";
import type { Call } from "../http/route.js";
import type { ProducerClaim } from "../ingest.js";
import type { Rooms } from "../rooms.js";
import { draftReader } from "../routes/append.js";

export async function appendSession(
  { ingest, store, connections }: Rooms,
  { req, res, run: key }: Call,
  dialect: Dialect,
  claim: ProducerClaim | undefined,
): Promise<void> {
  res.writeHead(200, { "Content-Type": "application/x-ndjson; charset=utf-8", "Cache-Control": "no-cache" });
  res.flushHeaders();
  // An open session is a sign of life of its producer.
  const renewing = setInterval(() => store.renew(key), limits.leaseMsMin / 2);
  const read = draftReader(dialect);
  const splitter = lineSplitter(limits.lineBytesMax);
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let line = 0;
  let seq = claim?.seq ?? 0;

  async function commit(lines: readonly string[]): Promise<void> {
    const drafts: Draft[] = [];
    let bad: unknown;
    for (const text of lines) {
      line += 1;
      try {
        drafts.push(...read(parseLine(text, `line ${line}`), `line ${line}`));
      } catch (error) {
        bad = error;
        break;
      }
    }
    for (let from = 0; from < drafts.length; from += limits.batchEventsMax) {
      const batch = drafts.slice(from, from + limits.batchEventsMax);
      const { last_pos, last_producer_seq } = await ingest.append(
        key,
        batch,
        claim === undefined ? undefined : { ...claim, seq },
      );
      seq += batch.length;
      res.write(
        `${JSON.stringify(last_producer_seq === undefined ? { last_pos } : { last_pos, last_producer_seq })}\n`,
      );
    }
    if (bad !== undefined) throw bad;
  }

  try {
    for await (const chunk of untilLeaving(req, connections)) {
      await commit(splitter.push(decoder.decode(chunk, { stream: true })));
    }
    await commit([...splitter.push(decoder.decode()), ...splitter.end()]);
  } catch (error) {
    res.write(`${JSON.stringify(told(error))}\n`);
  } finally {
    clearInterval(renewing);
    res.end();
  }
}

/** The body's chunks; throws when the server leaves, so that the producer goes on elsewhere. */
async function* untilLeaving(req: IncomingMessage, connections: Connections): AsyncGenerator<Buffer> {
  const chunks = (req as AsyncIterable<Buffer>)[Symbol.asyncIterator]();
  let leave: (error: Error) => void = () => {};
  const left = new Promise<never>((_, reject) => {
    leave = reject;
  });
  left.catch(() => {});
  const remove = connections.add({
    // It answers each commit; it has no other signs of life to give.
    sentMs: Number.POSITIVE_INFINITY,
    ping: () => {},
    leave: () => leave(new RunwireError("KAI-STREAM-LEAVING-0001")),
  });
  try {
    for (;;) {
      const next = await Promise.race([chunks.next(), left]);
      if (next.done === true) return;
      yield next.value;
    }
  } finally {
    remove();
  }
}

function told(error: unknown): unknown {
  if (error instanceof RunwireError) return error;
  if (error instanceof TypeError) return new RunwireError("KAI-REQUEST-BODY-0001", "it is not valid UTF-8");
  return new RunwireError("KAI-SERVER-BUG-0001");
}
