// What waits for a person, across the runs of a tenant.

import { limits } from "@runwire/protocol";
import { z } from "zod";
import { limitParam } from "../http/query.js";
import { type Route, route } from "../http/route.js";
import { inboxItem, json, members, streamAnswers } from "../http/shapes.js";
import type { Rooms } from "../rooms.js";
import { feedQuery, streamFeed } from "../transports/http-feed.js";
import { lastEventId } from "./streams.js";

const inboxQuery = z.strictObject({ limit: limitParam(limits.inboxItemsMax, limits.inboxItemsMax) });

export function inboxRoutes(rooms: Rooms): readonly Route[] {
  const { store } = rooms;
  return [
    route({
      method: "GET",
      path: "/v1/agent/inbox",
      does: "what waits for a person, oldest first",
      scope: "read",
      query: inboxQuery,
      answers: {
        200: {
          does: "what waits, and how much there is of it",
          content: json(members({ pos: z.number(), items: z.array(inboxItem), total: z.number() })),
        },
      },
      handle: async ({ query, tenant }) => ({ status: 200, body: await store.inbox(tenant, query.limit) }),
    }),
    route({
      method: "GET",
      path: "/v1/agent/inbox/stream",
      does: "what waits for a person, live",
      scope: "read",
      query: feedQuery,
      headers: lastEventId,
      answers: { 200: streamAnswers[200] },
      streams: true,
      ticket: () => ["inbox"],
      handle: (call) =>
        streamFeed(rooms, call, "inbox", async () => {
          const { pos, items, total } = await store.inbox(call.tenant, limits.inboxItemsMax);
          return { pos, shown: { items, total } };
        }),
    }),
  ];
}
