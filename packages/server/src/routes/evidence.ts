// What a run can be shown to have done, and what people decided about it: folds over its log, made when somebody asks.

import { createHash } from "node:crypto";
import { type Event, evidencer, type LogDigest, reviewer, runwireText, type View } from "@runwire/protocol";
import { z } from "zod";
import { type Call, type Reply, type Route, route } from "../http/route.js";
import { facts, id, json, members } from "../http/shapes.js";
import type { Rooms } from "../rooms.js";
import type { RunKey } from "../store.js";
import { readableHead } from "../transports/open.js";

const packShape = members({ run_id: id, refs: facts, log: facts, signals: facts });
const reviewShape = members({ run_id: id, decisions: z.array(facts), decisions_total: z.number() });

export function evidenceRoutes(rooms: Rooms): readonly Route[] {
  return [
    route({
      method: "GET",
      path: "/v1/agent/runs/:id/evidence",
      does: "the evidence pack of a run: refs, the log's digest, attempts, permissions, failures, costs",
      scope: "read",
      answers: { 200: { does: "the pack, up to now", content: json(packShape) } },
      handle: (call) => evidence(rooms, call),
    }),
    route({
      method: "GET",
      path: "/v1/agent/runs/:id/review",
      does: "what people have decided about a run",
      scope: "read",
      answers: { 200: { does: "decisions in their order, and what waits", content: json(reviewShape) } },
      handle: (call) => review(rooms, call),
    }),
  ];
}

async function evidence(rooms: Rooms, { run: key }: Call): Promise<Reply> {
  const head = await readableHead(rooms, key);
  // Where the full view is no longer kept, the other has all of it but where its words were cut.
  const view = head.fullGone ? "default" : "full";
  const { hear, pack } = evidencer(key.run_id);
  const digest = createHash("sha256");
  const { pos } = head.views[view];
  let bytes = 0;
  for await (const e of eventsOf(rooms, key, view, pos)) {
    hear(e);
    const line = `${runwireText(e)}\n`;
    digest.update(line);
    bytes += Buffer.byteLength(line);
  }
  const log: LogDigest = { view, events: pos, bytes, sha256: digest.digest("hex") };
  return { status: 200, body: pack(log) };
}

async function review(rooms: Rooms, { run: key }: Call): Promise<Reply> {
  const { views } = await readableHead(rooms, key);
  const people = reviewer(key.run_id);
  for await (const e of eventsOf(rooms, key, "default", views.default.pos)) people.hear(e);
  return { status: 200, body: people.review() };
}

const readBytesMax = 256 * 1024;

/** A view up to a position, a stretch at a time. */
async function* eventsOf({ store }: Rooms, key: RunKey, view: View, until: number): AsyncGenerator<Event> {
  for (let after = 0; after < until; ) {
    const { events } = await store.read(key, view, after, readBytesMax);
    const last = events.at(-1);
    // Erased meanwhile.
    if (last === undefined) return;
    for (const e of events) if (e.pos <= until) yield e;
    after = last.pos;
  }
}
