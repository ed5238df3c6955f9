// Streams over HTTP: one run, several runs, the run list, and replays.

import { koder, limits, type Message, runwire } from "@runwire/protocol";
import { z } from "zod";
import { badParam } from "../http/check.js";
import {
  cursorParams,
  cursorText,
  detailParam,
  dialectParam,
  flagParam,
  framingOf,
  streamParams,
  ticketParam,
  viewOf,
} from "../http/query.js";
import { type Call, type Reply, type Route, route } from "../http/route.js";
import { streamAnswers } from "../http/shapes.js";
import { feedLog } from "../log/feeds.js";
import { feedHead } from "../log/head.js";
import type { Rooms } from "../rooms.js";
import { openStream } from "../stream.js";
import { parseRuns, streamMany } from "../transports/http-mux.js";
import { httpStream, isChunked } from "../transports/http-stream.js";
import { followableHead, openAt } from "../transports/open.js";
import type { Sockets } from "../transports/websocket.js";
import { wire } from "../wire.js";
import { runSummary } from "./summary.js";

const lastEventId = { "Last-Event-ID": "resume after this; `EventSource` sends it by itself" };

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
const listQuery = z.strictObject({ ...cursorParams, ticket: ticketParam });

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
      query: listQuery,
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
  if (snapshot && framing === "ndjson" && dialect.name === koder.name)
    throw badParam("`snapshot`", "must be 0 on NDJSON of dialect koder");
  const backpressure = query.backpressure ?? dialect.backpressure;
  const head = await followableHead(rooms, key, view);
  const opening = await openAt(rooms, head, dialect, view, { cursor: cursorText(query, req), snapshot });
  if (opening.finished) return { status: 204 };
  const { sink, attach } = httpStream(call, framing, rooms);
  const bytes = wire(dialect, framing, isChunked(res));
  if (opening.first.length > 0) sink.send(bytes.frame(opening.first), opening.number);
  const { after, state } = opening;
  attach(
    await openStream(rooms.hub, {
      key,
      view,
      after,
      state,
      wire: bytes,
      backpressure,
      sink,
      report: rooms.report,
      metrics: rooms.metrics,
    }),
  );
  return undefined;
}

async function replayRun(rooms: Rooms, call: Call<z.output<typeof replayQuery>>): Promise<undefined> {
  const { res, query, run: key } = call;
  const { dialect } = query;
  const view = viewOf(query);
  const head = await followableHead(rooms, key, view);
  rooms.metrics.streamBegan("start");
  const { sink, attach } = httpStream(call, "ndjson", rooms);
  attach(
    await openStream(rooms.hub, {
      key,
      view,
      after: 0,
      until: head.views[view].pos,
      state: dialect.first,
      wire: wire(dialect, "ndjson", isChunked(res)),
      backpressure: "lossless",
      sink,
      report: rooms.report,
      metrics: rooms.metrics,
    }),
  );
  return undefined;
}

/** First the list as it is at N, then what changes it: the events of runs that the list shows. */
async function streamList(rooms: Rooms, call: Call<z.output<typeof listQuery>>): Promise<undefined> {
  const { req, res, query, tenant } = call;
  const framing = framingOf(req);
  const log = feedLog(tenant, "runs");
  const key = { tenant, run_id: log };
  const head = (await rooms.store.head(key)) ?? feedHead(tenant, log);
  const cursor = cursorText(query, req);
  const { pos } = head.views.default;
  const after =
    cursor !== undefined && /^[0-9]{1,15}$/.test(cursor) && Number(cursor) <= pos
      ? Number(cursor)
      : undefined;
  // A cursor that is not or no longer kept gets the snapshot too, and is told that it starts anew.
  const kept = after !== undefined && after >= (await rooms.store.oldest(key)) - 1;
  rooms.metrics.streamBegan(kept ? "resumed" : cursor === undefined ? "snapshot" : "reset");
  const { sink, attach } = httpStream(call, framing, rooms);
  const bytes = wire(feedDialect, framing, isChunked(res));
  if (!kept) {
    const { heads } = await rooms.store.listRuns(tenant, { limit: limits.pageRunsMax });
    const data = JSON.stringify({
      type: "snapshot",
      pos,
      reset: cursor !== undefined,
      runs: heads.map(runSummary),
    });
    sink.send(bytes.frame([{ id: String(pos), event: "snapshot", data }]), pos);
  }
  attach(
    await openStream(rooms.hub, {
      key,
      view: "default",
      after: kept ? after : pos,
      state: null,
      wire: bytes,
      backpressure: "lossless",
      sink,
      report: rooms.report,
      metrics: rooms.metrics,
    }),
  );
  return undefined;
}

/** A feed's entry names the run it is about as its run, not the feed. */
const feedDialect = {
  ...runwire,
  name: "feed",
  step(_state: unknown, e: Parameters<typeof runwire.step>[1]): readonly [null, readonly Message[]] {
    const { id, ts, type, child_id, pos, payload } = e;
    return [
      null,
      [{ id: String(pos), data: JSON.stringify({ id, ts, type, run_id: child_id, pos, payload }) }],
    ];
  },
};
