// For those who run the server: is it alive, does it take requests, what does it speak.

import { dialects } from "@runwire/protocol";
import { z } from "zod";
import { type Route, route } from "../http/route.js";
import { json, members } from "../http/shapes.js";
import type { Rooms } from "../rooms.js";
import type { Settings } from "../settings.js";

const status = members({ status: z.string() });

export function operationRoutes(rooms: Rooms, settings: Settings): readonly Route[] {
  const live = (path: string, does: string): Route =>
    route({
      method: "GET",
      path,
      does,
      scope: "anyone",
      answers: { 200: { does: "it runs", content: json(status) } },
      handle: async () => ({ status: 200, body: { status: "ok" } }),
    });
  return [
    live("/livez", "whether the process runs"),
    live("/healthz", "the same as /livez"),
    route({
      method: "GET",
      path: "/readyz",
      does: "whether it takes requests, and how durably",
      scope: "anyone",
      answers: {
        200: { does: "it does", content: json(status) },
        503: { does: "it does not, or no longer", content: json(status) },
      },
      handle: async () => {
        const ready = !rooms.connections.leaving;
        const body = { status: ready ? "ready" : "leaving", durability: settings.durability };
        return { status: ready ? 200 : 503, body };
      },
    }),
    route({
      method: "GET",
      path: "/v1/dialects",
      does: "what this server speaks",
      scope: "read",
      answers: {
        200: {
          does: "dialects",
          content: json(members({ dialects: z.array(members({ name: z.string() })) })),
        },
      },
      handle: async () => ({
        status: 200,
        body: {
          dialects: [...dialects.values()].map(({ name, cursor, backpressure, carries }) => ({
            name,
            cursor,
            backpressure,
            carries: carries === "all" ? "all" : [...carries],
            reads: true,
            writes: true,
          })),
        },
      }),
    }),
  ];
}
