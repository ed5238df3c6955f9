// Streams over HTTP: one run, several runs, the run list, and replays.

import { limits } from "@runwire/protocol";
import { z } from "zod";
import {
  backpressureOf,
  checkSnapshot,
  cursorParams,
  cursorText,
  detailParam,
  dialectParam,
  flagParam,
  framingOf,
  hasCursor,
  streamParams,
  viewOf,
} from "../http/query.js";
import { type Call, type Reply, type Route, route } from "../http/route.js";
import { streamAnswers } from "../http/shapes.js";
import type { Rooms } from "../rooms.js";
import { openStream } from "../stream.js";
import { type FeedQuery, feedQuery, streamFeed } from "../transports/http-feed.js";
import { parseRuns, streamMany } from "../transports/http-mux.js";
import { httpStream, isChunked } from "../transports/http-stream.js";
import { followableHead, openAt } from "../transports/open.js";
import type { Sockets } from "../transports/websocket.js";
import { wire } from "../wire.js";
import { runSummary } from "./summary.js";

export const lastEventId = { "Last-Event-ID": "resume after this; `EventSource` sends it by itself" };

const runQuery = z.strictObject({
  ...streamParams,
  ...cursorParams,
  snapshot: flagParam.describe("1: first the transcript at N, then what follows N"),
});
const manyQuery = z.strictObject({
  ...streamParams,
  runs: z.string().default("").describe("run ids with cursors, as in `a:12,b`"),
});
const replayQuery = z.strictObject({ dialect: dialectParam("koder"), detail: detailParam });

export type RunStreamQuery = z.output<typeof runQuery>;
export type ManyQuery = z.output<typeof manyQuery>;

export function streamRoutes(rooms: Rooms, sockets: Sockets): readonly Route[] {
  return [
    route({
      method: "GET",
      path: "/v1/agent/runs/:id/stream",
      does: "follow a run live, from any cursor; a WebSocket if the request asks for one",
      scope: "read",
      query: runQuery,
      headers: { ...lastEventId, Detail: "`full`, on a WebSocket" },
      answers: streamAnswers,
      streams: true,
      ticket: ({ param }) => [`run:${param("id")}`],
      handle: (call) => streamRun(rooms, call),
      upgrade: sockets.one,
    }),
    route({
      method: "GET",
      path: "/v1/agent/runs/:id/replay.jsonl",
      does: "the whole run, one event a line",
      scope: "read",
      query: replayQuery,
      answers: {
        200: { does: "all that is stored by now", content: { "application/x-ndjson": z.string() } },
      },
      streams: true,
      handle: (call) => replayRun(rooms, call),
    }),
    route({
      method: "GET",
      path: "/v1/agent/stream",
      does: "several runs on one connection; a WebSocket if the request asks for one",
      scope: "read",
      query: manyQuery,
      headers: lastEventId,
      answers: streamAnswers,
      streams: true,
      ticket: ({ query }) => [...parseRuns(query.runs).keys()].map((run_id) => `run:${run_id}`),
      handle: (call) => streamMany(rooms, call),
      upgrade: sockets.many,
    }),
    // Before a run of that name could be meant.
    route({
      method: "GET",
      path: "/v1/agent/runs/stream",
      does: "the run list, live",
      scope: "read",
      query: feedQuery,
      headers: lastEventId,
      answers: { 200: streamAnswers[200] },
      streams: true,
      ticket: () => ["runs"],
      handle: (call) => streamList(rooms, call),
    }),
  ];
}

async function streamRun(rooms: Rooms, call: Call<RunStreamQuery>): Promise<Reply | undefined> {
  const { req, res, query, run: key } = call;
  const framing = framingOf(req);
  const { dialect, snapshot } = query;
  const view = viewOf(query);
  if (framing === "ndjson") checkSnapshot(query, "NDJSON");
  const backpressure = backpressureOf(query);
  const head = await followableHead(rooms, key, view);
  const cursor = cursorText(query, req);
  const isAgain = snapshot && !hasCursor(query);
  const bytes = wire(dialect, framing, isChunked(res));
  const opening = await openAt(rooms, head, bytes, view, { cursor, snapshot, isAgain });
  if (opening.finished) return { status: 204 };
  const { sink, attach } = httpStream(call, framing, rooms);
  if (opening.first.length > 0) sink.send(opening.first, opening.number);
  attach(await openStream(rooms, { ...opening, key, view, wire: bytes, backpressure, sink }));
  return undefined;
}

async function replayRun(rooms: Rooms, call: Call<z.output<typeof replayQuery>>): Promise<undefined> {
  const { res, query, run: key } = call;
  const { dialect } = query;
  const view = viewOf(query);
  const head = await followableHead(rooms, key, view);
  rooms.metrics.streamBegan("start");
  const { sink, attach } = httpStream(call, "ndjson", rooms, { hasEnd: true });
  attach(
    await openStream(rooms, {
      key,
      view,
      after: 0,
      until: head.views[view].pos,
      state: dialect.first,
      wire: wire(dialect, "ndjson", isChunked(res)),
      backpressure: "lossless",
      sink,
    }),
  );
  return undefined;
}

/** First the list as it is at N, then what changes it: the events of runs that the list shows. */
function streamList(rooms: Rooms, call: Call<FeedQuery>): Promise<undefined> {
  return streamFeed(rooms, call, "runs", async (pos) => {
    const { heads } = await rooms.store.listRuns(call.tenant, { limit: limits.pageRunsMax });
    return { pos, shown: { runs: heads.map(runSummary) } };
  });
}
