// A run's children: which there are, and one more.

import { limits } from "@runwire/protocol";
import { z } from "zod";
import { idempotencyHeader, idempotencyOf, replayedHeader } from "../http/idempotency.js";
import { limitParam, nextParam } from "../http/query.js";
import { type Call, type Reply, type Route, route } from "../http/route.js";
import { id, json, listOf, members, runSummary as runShape, words } from "../http/shapes.js";
import { readableHead } from "../reading.js";
import type { Rooms } from "../rooms.js";
import { runSummary } from "./summary.js";

const newChild = z.strictObject({
  prompt: words,
  tools_allowed: listOf(z.string()).nullish(),
  child_id: id.nullish(),
});

const listQuery = z.strictObject({
  limit: limitParam(limits.pageRunsMax, limits.pageRunsMax),
  cursor: nextParam,
});

export function childRoutes(rooms: Rooms): readonly Route[] {
  return [
    route({
      method: "GET",
      path: "/v1/agent/runs/:id/children",
      does: "child runs",
      scope: "read",
      query: listQuery,
      answers: {
        200: {
          does: "a page of children, in the order of their ids",
          content: json(members({ children: z.array(runShape), next: z.string().nullable() })),
        },
      },
      handle: (call) => children(rooms, call),
    }),
    route({
      method: "POST",
      path: "/v1/agent/runs/:id/children",
      does: "spawn a child run",
      scope: "write",
      body: newChild,
      headers: idempotencyHeader,
      answers: {
        201: {
          does: "the child",
          content: json(members({ run_id: id, parent_id: id, state: z.string(), stream_url: z.string() })),
        },
      },
      handle: (call) => spawnChild(rooms, call),
    }),
  ];
}

async function children(
  rooms: Rooms,
  { run: key, query: { limit, cursor } }: Call<z.output<typeof listQuery>>,
): Promise<Reply> {
  await readableHead(rooms, key);
  const page = await rooms.store.children(key, { limit, ...(cursor === undefined ? {} : { cursor }) });
  const heads = await Promise.all(
    page.children.map((run_id) => rooms.store.head({ tenant: key.tenant, run_id })),
  );
  return {
    status: 200,
    body: {
      children: heads.flatMap((head) => (head === undefined ? [] : [runSummary(head)])),
      next: page.next,
    },
  };
}

async function spawnChild(
  { ingest, store, agent }: Rooms,
  { req, body, run: key }: Call<unknown, z.output<typeof newChild>>,
): Promise<Reply> {
  const { prompt, child_id, tools_allowed } = body;
  const child = {
    prompt,
    ...(child_id == null ? {} : { child_id }),
    ...(tools_allowed == null ? {} : { tools_allowed }),
  };
  const spawned = await ingest.spawn(key, child, idempotencyOf(req, key.run_id, body));
  const child_key = { tenant: key.tenant, run_id: spawned.child_id };
  const made = (await store.head(child_key))?.run;
  // Whoever writes the parent writes the child.
  if (made?.external === false) agent?.take(child_key);
  const state = made?.beganPaused === true ? "paused" : "running";
  const stream_url = `/v1/agent/runs/${spawned.child_id}/stream`;
  return {
    status: 201,
    body: { run_id: spawned.child_id, parent_id: key.run_id, state, stream_url },
    headers: replayedHeader(spawned),
  };
}
