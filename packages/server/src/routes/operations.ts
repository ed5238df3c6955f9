// For those who run the server: is it alive, does it take requests, what does it speak.

import { dialects, RunwireError } from "@runwire/protocol";
import { z } from "zod";
import { type Route, route } from "../http/route.js";
import { json, members } from "../http/shapes.js";
import type { Rooms } from "../rooms.js";
import type { Settings } from "../settings.js";

/** Whose admins run the server. */
const operatorTenant = "operator";
const status = members({ status: z.string() });
const readiness = members({
  status: z.enum(["ready", "degraded", "leaving", "broken"]),
  durability: z.enum(["fsync", "os"]),
  store: z.enum(["ok", "full", "broken"]),
  disk: z.enum(["ok", "low"]),
});
/** Below this an operator should look. */
const diskLowBytes = 256 * 1024 * 1024;

export function operationRoutes(
  rooms: Rooms,
  settings: Settings,
  connectionCount: () => number,
): readonly Route[] {
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
        200: { does: "it does; `degraded` where the disk is full or nearly so", content: json(readiness) },
        503: { does: "it leaves, or its store is broken", content: json(readiness) },
      },
      handle: async () => {
        const { writing, diskFreeBytes } = rooms.store.levels();
        const isLow = writing === "full" || diskFreeBytes < diskLowBytes;
        const checks = { durability: settings.durability, store: writing, disk: isLow ? "low" : "ok" };
        if (rooms.connections.leaving) return { status: 503, body: { status: "leaving", ...checks } };
        if (writing === "broken") return { status: 503, body: { status: "broken", ...checks } };
        // Who reads must not be sent away because nobody can write.
        return { status: 200, body: { status: isLow ? "degraded" : "ready", ...checks } };
      },
    }),
    route({
      method: "GET",
      path: "/metrics",
      does: "what this server does, for Prometheus",
      scope: "admin",
      answers: { 200: { does: "metrics of the whole server", content: { "text/plain": z.string() } } },
      handle: async ({ caller }) => {
        // They tell of all tenants together, so they are for whoever runs the server.
        if (caller.credential !== "open" && caller.tenant !== operatorTenant)
          throw new RunwireError(
            "KAI-AUTH-SCOPE-0001",
            `this needs a key of the tenant \`${operatorTenant}\``,
          );
        const { metrics, hub, store, connections } = rooms;
        const text = await metrics.text({
          leaving: connections.leaving,
          connections: connectionCount(),
          hub: hub.levels(),
          store: store.levels(),
        });
        return { status: 200, text: text.trimEnd(), headers: { "Content-Type": metrics.contentType } };
      },
    }),
    route({
      method: "GET",
      path: "/v1/dialects",
      does: "what this server speaks",
      scope: "read",
      answers: {
        200: {
          does: "dialects, each over all of the transports",
          content: json(
            members({
              dialects: z.array(members({ name: z.string() })),
              transports: z.array(members({ name: z.string() })),
            }),
          ),
        },
      },
      handle: async () => ({
        status: 200,
        body: {
          dialects: [...dialects.values()].map(({ name, cursor, backpressure, carries }) => ({
            name,
            cursor: typeof cursor === "string" ? cursor : "own",
            backpressure,
            carries: carries === "all" ? "all" : [...carries],
            reads: true,
            writes: true,
          })),
          // Some come by a command that is a client of this server.
          transports: [
            ...["sse", "ndjson", "websocket"].map((name) => ({ name, at: "/v1/agent/runs/:id/stream" })),
            { name: "stdio", by: "runwire rpc" },
            { name: "nats", by: "runwire nats" },
          ],
        },
      }),
    }),
  ];
}
