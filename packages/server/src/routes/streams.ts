// Streams over HTTP: one run, several runs, the run list, and replays.

import { koder, limits, type Message, runwire } from "@runwire/protocol";
import { backpressureOf, badParam, cursorText, dialectOf, flagOf, framingOf, viewOf } from "../http/query.js";
import type { Call, Reply, Route } from "../http/route.js";
import { feedLog } from "../log/feeds.js";
import { feedHead } from "../log/head.js";
import type { Rooms } from "../rooms.js";
import { openStream } from "../stream.js";
import { streamMany } from "../transports/http-mux.js";
import { httpStream, isChunked } from "../transports/http-stream.js";
import { openAt, readableHead } from "../transports/open.js";
import { wire } from "../wire.js";
import { runSummary } from "./summary.js";

export function streamRoutes(rooms: Rooms): readonly Route[] {
  return [
    {
      method: "GET",
      path: "/v1/agent/runs/:id/stream",
      does: "follow a run live, from any cursor",
      handle: (call) => streamRun(rooms, call),
    },
    {
      method: "GET",
      path: "/v1/agent/runs/:id/replay.jsonl",
      does: "the whole run, one event a line",
      handle: (call) => replayRun(rooms, call),
    },
    {
      method: "GET",
      path: "/v1/agent/stream",
      does: "several runs on one connection",
      handle: (call) => streamMany(rooms, call),
    },
    {
      method: "GET",
      path: "/v1/agent/runs/stream",
      does: "the run list, live",
      handle: (call) => streamList(rooms, call),
    },
  ];
}

async function streamRun(rooms: Rooms, call: Call): Promise<Reply | undefined> {
  const { req, res, query, run: key } = call;
  const framing = framingOf(req);
  const dialect = dialectOf(query, koder.name);
  const view = viewOf(query);
  const snapshot = flagOf(query, "snapshot");
  if (snapshot && framing === "ndjson" && dialect.name === koder.name)
    throw badParam("snapshot", "0 on NDJSON of dialect koder");
  const backpressure = backpressureOf(query, dialect);
  const head = await readableHead(rooms, key, view);
  const opening = await openAt(rooms, head, dialect, view, { cursor: cursorText(query, req), snapshot });
  if (opening.finished) return { status: 204 };
  const { sink, attach } = httpStream(res, framing, rooms.clock, rooms.connections);
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
    }),
  );
  return undefined;
}

async function replayRun(rooms: Rooms, { res, query, run: key }: Call): Promise<undefined> {
  const dialect = dialectOf(query, koder.name);
  const view = viewOf(query);
  const head = await readableHead(rooms, key, view);
  const { sink, attach } = httpStream(res, "ndjson", rooms.clock, rooms.connections);
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
    }),
  );
  return undefined;
}

/** First the list as it is at N, then what changes it: the events of runs that the list shows. */
async function streamList(rooms: Rooms, call: Call): Promise<undefined> {
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
  const { sink, attach } = httpStream(res, framing, rooms.clock, rooms.connections);
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
