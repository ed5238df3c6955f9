// What is stored of a run, without a stream: pages of its log, its transcript at a point, its steps.

import { limits, type Message } from "@runwire/protocol";
import { z } from "zod";
import { detailParam, dialectParam, limitParam, viewOf } from "../http/query.js";
import { type Call, type Reply, type Route, route } from "../http/route.js";
import { event, facts, json, members, messageOf, transcript } from "../http/shapes.js";
import { readableHead, stretches } from "../reading.js";
import { resumeFrom } from "../resume.js";
import type { Rooms } from "../rooms.js";

const pageQuery = z.strictObject({
  after: z.string().optional().describe("stored events after this number"),
  limit: limitParam(100, limits.pageEventsMax),
  dialect: dialectParam("koder"),
  detail: detailParam,
});

const snapshotQuery = z.strictObject({
  at: z
    .string()
    .regex(/^[0-9]{1,15}$/, { error: "takes a number of the dialect's cursor" })
    .optional(),
  dialect: dialectParam("koder"),
  detail: detailParam,
});

export function pageRoutes(rooms: Rooms): readonly Route[] {
  return [
    route({
      method: "GET",
      path: "/v1/agent/runs/:id/events",
      does: "a page of stored events",
      scope: "read",
      query: pageQuery,
      answers: {
        200: {
          does: "events, and the `after` of the next page",
          content: json(members({ events: z.array(messageOf(event)), next: z.number().nullable() })),
        },
      },
      handle: (call) => eventsPage(rooms, call),
    }),
    route({
      method: "GET",
      path: "/v1/agent/runs/:id/snapshot",
      does: "the transcript at a point",
      scope: "read",
      query: snapshotQuery,
      answers: {
        200: {
          does: "the fold of the events up to there",
          content: json(members({ pos: z.number(), seq: z.number(), transcript })),
        },
      },
      handle: (call) => snapshot(rooms, call),
    }),
    route({
      method: "GET",
      path: "/v1/agent/runs/:id/steps",
      does: "the step index",
      scope: "read",
      answers: { 200: { does: "steps", content: json(members({ steps: z.array(facts) })) } },
      handle: (call) => steps(rooms, call),
    }),
  ];
}

async function eventsPage(
  rooms: Rooms,
  { query, run: key }: Call<z.output<typeof pageQuery>>,
): Promise<Reply> {
  const { dialect, limit } = query;
  const view = viewOf(query);
  const head = await readableHead(rooms, key, view);
  let { after, state, number: heard } = await resumeFrom(rooms, head, dialect, view, query.after);
  const found: Message[] = [];
  let bytes = 0;
  // By bytes too: what is small by count may be more than fits into one text.
  const isFull = (): boolean => found.length >= limit || bytes >= limits.pageBytesMax;
  for await (const events of stretches(rooms.store, key, view, { after, to: head.views[view].pos })) {
    for (const e of events) {
      const [next, said] = dialect.step(state, e);
      state = next;
      after = e.pos;
      for (const message of said) {
        if (Number(message.id) <= heard) continue;
        found.push(message);
        bytes += Buffer.byteLength(message.data);
      }
      if (isFull()) break;
    }
    if (isFull()) break;
  }
  const messages = found.slice(0, limit);
  const isWhole = messages.length === found.length && after >= head.views[view].pos;
  // The events are JSON texts already; they are put together, not parsed and made again.
  const next = isWhole ? null : (messages.at(-1)?.id ?? null);
  const text = `{"events":[${messages.map(({ data }) => data).join(",")}],"next":${JSON.stringify(next === null ? null : Number(next))}}`;
  return { status: 200, text };
}

async function snapshot(
  rooms: Rooms,
  { query, run: key }: Call<z.output<typeof snapshotQuery>>,
): Promise<Reply> {
  const { dialect, at } = query;
  const view = viewOf(query);
  const head = await readableHead(rooms, key, view);
  let { pos } = head.views[view];
  if (at !== undefined) {
    const { after, number } = await resumeFrom(rooms, head, dialect, view, at);
    // A point that is not reached yet is the head.
    if (number > 0 || Number(at) === 0) pos = after;
  }
  const transcript = await rooms.transcripts.at(key, view, pos);
  return { status: 200, body: { pos: transcript.pos, seq: transcript.seq, transcript } };
}

async function steps(rooms: Rooms, { run: key }: Call): Promise<Reply> {
  const head = await readableHead(rooms, key);
  const transcript = await rooms.transcripts.at(key, "default", head.views.default.pos);
  return { status: 200, body: { steps: transcript.steps } };
}
