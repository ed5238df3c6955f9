// One long request whose lines are committed as they come. Each commit is answered with a line of its own; a bad
// line ends the session with an error line that names it, and the lines before it stay.

import type { IncomingMessage, ServerResponse } from "node:http";
import { type Dialect, type Draft, limits, RunwireError } from "@runwire/protocol";
import { parseLine } from "../http/body.js";
import { streamOf } from "../http/closing.js";
import type { Call } from "../http/route.js";
import type { ProducerClaim } from "../log/accept.js";
import { toldOf } from "../report.js";
import type { Rooms } from "../rooms.js";
import { draftReader, inTurn } from "../routes/append.js";
import { drained } from "./draining.js";
import { type SessionLines, sessionLines } from "./session-lines.js";

export async function appendSession(
  rooms: Rooms,
  { req, res, begin, requestId, caller, run: key }: Call,
  dialect: Dialect,
  claim: ProducerClaim | undefined,
): Promise<void> {
  const { ingest, store, connections, settings, quotas, report } = rooms;
  let read = await draftReader(rooms, key, dialect, claim);
  /** Where the log ended after what was last read and stored. */
  let stoodAt: number | undefined;
  // It may have begun while the run was looked up; whoever leaves tells those that are open by then, and no other.
  if (connections.leaving) throw new RunwireError("KAI-STREAM-LEAVING-0001");
  begin(200, { "Content-Type": "application/x-ndjson; charset=utf-8", "Cache-Control": "no-cache" });
  res.flushHeaders();
  // An open session is a sign of life of its producer.
  const renewing = setInterval(() => store.renew(key), limits.leaseMsMin / 2);
  const reader = sessionLines(settings.lineBytesMax);
  const ending = new AbortController();
  const remove = connections.add({
    // It answers each commit; it has no other signs of life to give.
    sentMs: () => Number.POSITIVE_INFINITY,
    caller,
    ping: () => {},
    leave: () => ending.abort(new RunwireError("KAI-STREAM-LEAVING-0001")),
    end: (why) => ending.abort(why),
  });
  let line = 0;
  let seq = claim?.seq ?? 0;

  const claimNow = (): ProducerClaim | undefined => claim && { ...claim, seq };

  async function append(drafts: readonly Draft[]): Promise<void> {
    const { last_pos, last_producer_seq } = await ingest.append(key, drafts, claimNow());
    seq += drafts.length;
    stoodAt = last_pos;
    const answer = last_producer_seq === undefined ? { last_pos } : { last_pos, last_producer_seq };
    res.write(`${JSON.stringify(answer)}\n`);
  }

  /** A session is read no faster than its tenant may write; others do not wait for that. */
  async function take(come: SessionLines): Promise<void> {
    if (come.lines.length > 0) await quotas.appendingLater(key.tenant, come.lines.length, ending.signal);
    await inTurn(rooms, key, dialect, () => commit(come));
  }

  /** What came together is committed together; where that is refused, line by line up to the one that is. */
  async function commit(come: SessionLines): Promise<void> {
    // It may have waited for its turn.
    ending.signal.throwIfAborted();
    // What others have said since then may be what a line goes on from.
    if (dialect.decoderAfter !== undefined && (await store.head(key))?.views.full.pos !== stoodAt)
      read = await draftReader(rooms, key, dialect, claimNow());
    const good: { readonly where: string; readonly drafts: readonly Draft[] }[] = [];
    let bad: unknown = come.bad?.at(`line ${line + come.lines.length + 1}`);
    for (const text of come.lines) {
      line += 1;
      const where = `line ${line}`;
      try {
        good.push({ where, drafts: read(parseLine(text, where), where) });
      } catch (error) {
        bad = error;
        break;
      }
    }
    for (let from = 0; from < good.length; from += settings.batchEventsMax) {
      const batch = good.slice(from, from + settings.batchEventsMax);
      const all = batch.flatMap(({ drafts }) => drafts);
      try {
        await append(all);
      } catch (error) {
        if (!(error instanceof RunwireError) || error.row.retry || batch.length === 1)
          throw named(error, batch[0]?.where);
        for (const { where, drafts } of batch) {
          await append(drafts).catch((refused: unknown) => {
            throw named(refused, where);
          });
        }
      }
    }
    if (bad !== undefined) throw bad;
  }

  try {
    for await (const chunk of untilLeaving(req, res, ending.signal)) {
      await take(reader.push(chunk));
    }
    await take(reader.end());
  } catch (error) {
    res.write(`${JSON.stringify(toldOf(report, error, requestId))}\n`);
  } finally {
    remove();
    clearInterval(renewing);
    res.end();
    if (!req.complete) hangUp(req);
  }
}

/** The producer is still sending: it gets time to read the answer, and then the connection goes. */
function hangUp(req: IncomingMessage): void {
  const { socket } = req;
  req.resume();
  socket.end();
  setTimeout(() => socket.destroy(), hangUpMs).unref();
}

const hangUpMs = 500;

/** The body's chunks; throws the signal's reason, so that the producer goes on elsewhere where the server leaves. */
export async function* untilLeaving(
  req: IncomingMessage,
  res: ServerResponse,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  const chunks = (req as AsyncIterable<Buffer>)[Symbol.asyncIterator]();
  // An answer over HTTP/2 does not say whether it is read; its stream does.
  const out = streamOf(res) ?? res;
  // Not a race with one promise that lasts as long as the session: that would hold every chunk until then.
  let leave: (why: unknown) => void = () => {};
  signal.addEventListener("abort", () => leave(signal.reason), { once: true });
  const orLeft = <T>(coming: Promise<T>): Promise<T> =>
    new Promise((resolve, reject) => {
      leave = reject;
      coming.then(resolve, reject);
      if (signal.aborted) reject(signal.reason);
    });
  for (;;) {
    // Whoever does not read its answers is not read either: nothing piles up here.
    if (out.writableNeedDrain && !out.destroyed) await orLeft(drained(out));
    const next = await orLeft(chunks.next().catch(hungUp));
    if (next.done === true) return;
    yield next.value;
  }
}

function hungUp(cause: unknown): never {
  throw new RunwireError("KAI-STREAM-CONN-0001", undefined, { cause });
}

/** The same error, with the line that met it. */
function named(error: unknown, where: string | undefined): unknown {
  return error instanceof RunwireError && where !== undefined ? error.at(where) : error;
}
