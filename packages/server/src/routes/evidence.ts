// What a run can be shown to have done, and what people decided about it: folds over its log, made when somebody asks.

import { createHash } from "node:crypto";
import { evidencer, type LogDigest, reviewer, runwireText, type View } from "@runwire/protocol";
import { z } from "zod";
import { type Call, type Reply, type Route, route } from "../http/route.js";
import { facts, id, json, members } from "../http/shapes.js";
import type { Head } from "../log/head.js";
import { isLogGone, readableHead, stretches } from "../reading.js";
import type { Rooms } from "../rooms.js";

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
  if (head.fullGone) return packOf(rooms, head, "default");
  return packOf(rooms, head, "full").catch((error: unknown) => {
    if (isLogGone(error)) return packOf(rooms, head, "default");
    throw error;
  });
}

async function packOf({ store }: Rooms, { run: key, views }: Head, view: View): Promise<Reply> {
  const { hear, pack } = evidencer(key.run_id);
  const digest = createHash("sha256");
  let [events, bytes] = [0, 0];
  for await (const stretch of stretches(store, key, view, { to: views[view].pos })) {
    for (const e of stretch) {
      hear(e);
      const line = `${runwireText(e)}\n`;
      digest.update(line);
      events += 1;
      bytes += Buffer.byteLength(line);
    }
  }
  const log: LogDigest = { view, events, bytes, sha256: digest.digest("hex") };
  return { status: 200, body: pack(log) };
}

async function review(rooms: Rooms, { run: key }: Call): Promise<Reply> {
  const { views } = await readableHead(rooms, key);
  const people = reviewer(key.run_id);
  for await (const stretch of stretches(rooms.store, key, "default", { to: views.default.pos }))
    stretch.forEach(people.hear);
  return { status: 200, body: people.review() };
}
