// A feed over HTTP: first what it shows at N, then what changes it. A cursor that is still kept gets the changes alone.

import { type Message, runwire } from "@runwire/protocol";
import { z } from "zod";
import { cursorParams, cursorText, framingOf, ticketParam } from "../http/query.js";
import type { Call } from "../http/route.js";
import { feedLog, type Topic } from "../log/feeds.js";
import { feedHead } from "../log/head.js";
import { isCursor } from "../resume.js";
import type { Rooms } from "../rooms.js";
import { openStream } from "../stream.js";
import { wire } from "../wire.js";
import { httpStream, isChunked } from "./http-stream.js";

export const feedQuery = z.strictObject({ ...cursorParams, ticket: ticketParam });

export type FeedQuery = z.output<typeof feedQuery>;

/** What a feed adds up to, and at which of its positions. */
export interface FeedSnapshot {
  readonly pos: number;
  readonly shown: object;
}

export async function streamFeed(
  rooms: Rooms,
  call: Call<FeedQuery>,
  topic: Topic,
  snapshotAt: (pos: number) => Promise<FeedSnapshot>,
): Promise<undefined> {
  const { req, res, query, tenant } = call;
  const framing = framingOf(req);
  const log = feedLog(tenant, topic);
  const key = { tenant, run_id: log };
  const head = (await rooms.store.head(key)) ?? feedHead(tenant, log);
  const cursor = cursorText(query, req);
  const last = head.views.default.pos;
  let after = isCursor(cursor) && Number(cursor) <= last ? Number(cursor) : undefined;
  // A cursor that is not or no longer kept gets the snapshot too, and is told that it starts anew.
  if (after !== undefined && after < (await rooms.store.oldest(key)) - 1) after = undefined;
  rooms.metrics.streamBegan(after !== undefined ? "resumed" : cursor === undefined ? "snapshot" : "reset");
  const first = after === undefined ? await snapshotAt(last) : undefined;
  const { sink, attach } = httpStream(call, framing, rooms);
  const bytes = wire(feedDialect, framing, isChunked(res));
  if (first !== undefined) {
    const { pos, shown } = first;
    const data = JSON.stringify({ type: "snapshot", pos, reset: cursor !== undefined, ...shown });
    sink.send(bytes.frame([{ id: String(pos), event: "snapshot", data }]), pos);
  }
  attach(
    await openStream(rooms, {
      key,
      view: "default",
      after: after ?? first?.pos ?? last,
      state: null,
      wire: bytes,
      backpressure: "lossless",
      sink,
    }),
  );
  return undefined;
}

const { says: _, ...spoken } = runwire;
/** A feed's entry names the run it is about as its run, not the feed: it is not said as it is stored. */
const feedDialect = {
  ...spoken,
  name: "feed",
  step(_state: unknown, e: Parameters<typeof runwire.step>[1]): readonly [null, readonly Message[]] {
    const { id, ts, type, child_id, pos, payload } = e;
    return [
      null,
      [{ id: String(pos), data: JSON.stringify({ id, ts, type, run_id: child_id, pos, payload }) }],
    ];
  },
};
