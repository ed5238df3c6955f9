// Several runs over SSE or NDJSON. On SSE the connection's cursor is an id-only block after each write: it sets
// the client's last event id and dispatches nothing.

import { limits, sseCursor } from "@runwire/protocol";
import { badParam } from "../http/check.js";
import { backpressureOf, framingOf, viewOf } from "../http/query.js";
import type { Call, Reply } from "../http/route.js";
import type { Rooms } from "../rooms.js";
import type { ManyQuery } from "../routes/streams.js";
import { chunk, wire } from "../wire.js";
import { httpStream, isChunked } from "./http-stream.js";
import { findMember, mux } from "./mux.js";

export async function streamMany(rooms: Rooms, call: Call<ManyQuery>): Promise<Reply | undefined> {
  const { req, res, query, tenant } = call;
  const runs = askedRuns(query.runs, 1);
  // EventSource repeats the address it was given, so the last id of the interrupted connection, which has the same
  // form, wins for the runs it names.
  const lastId = req.headers["last-event-id"];
  for (const [run_id, cursor] of parseRuns(typeof lastId === "string" ? lastId : ""))
    if (runs.has(run_id)) runs.set(run_id, cursor);
  const { dialect } = query;
  const framing = framingOf(req);
  const options = {
    tenant,
    view: viewOf(query),
    backpressure: backpressureOf(query),
    wire: wire(dialect, framing === "sse" ? "sse-mux" : "ndjson", isChunked(res)),
  };
  const members = await Promise.all(
    [...runs].map(([run_id, cursor]) => findMember(rooms, options, run_id, cursor)),
  );
  if (members.every(({ finished }) => finished)) return { status: 204 };

  const { sink, attach } = httpStream(call, framing, rooms);
  const many = mux(
    rooms,
    options,
    {
      isFull: sink.isFull,
      send(bytes, cursors) {
        const id = [...cursors].map(([run_id, cursor]) => `${run_id}:${cursor}`).join(",");
        if (framing === "ndjson") {
          sink.send(bytes, 0);
          return;
        }
        const block = Buffer.from(sseCursor(id));
        sink.send(Buffer.concat([bytes, isChunked(res) ? chunk(block) : block]), 0);
      },
      close: sink.close,
    },
    "end",
  );
  attach(many);
  // All are members before the first can end the connection.
  await Promise.all(members.map((member) => many.add(member)));
  return undefined;
}

/** `a:12,b,c:40`: run ids with cursors, as many as a connection carries. */
export function askedRuns(text: string, runsMin: number): Map<string, string | undefined> {
  const runs = parseRuns(text);
  const { runsPerStreamMax } = limits;
  if (runs.size < runsMin || runs.size > runsPerStreamMax)
    throw badParam("`runs`", `takes ${runsMin} to ${runsPerStreamMax} runs, as in \`runs=a:12,b\``);
  return runs;
}

export function parseRuns(text: string): Map<string, string | undefined> {
  const runs = new Map<string, string | undefined>();
  for (const item of text.split(",")) {
    // The last colon: a run id may hold one itself.
    const at = item.lastIndexOf(":");
    const run_id = at < 0 ? item : item.slice(0, at);
    if (run_id !== "") runs.set(run_id, at < 0 ? undefined : item.slice(at + 1));
  }
  return runs;
}
