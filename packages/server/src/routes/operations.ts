import { dialects } from "@runwire/protocol";
import type { Route } from "../http/route.js";
import type { Rooms } from "../rooms.js";
import type { Settings } from "../settings.js";

export function operationRoutes(
  rooms: Rooms,
  settings: Settings,
  connectionCount: () => number,
): readonly Route[] {
  const live: Route["handle"] = async () => ({ status: 200, body: { status: "ok" } });
  return [
    { method: "GET", path: "/livez", does: "whether the process runs", handle: live },
    { method: "GET", path: "/healthz", does: "the same as /livez", handle: live },
    {
      method: "GET",
      path: "/readyz",
      does: "whether it takes requests, and how durably",
      handle: async () => {
        const ready = !rooms.connections.leaving;
        const body = {
          status: ready ? "ready" : "leaving",
          durability: settings.durability,
          streams: rooms.connections.count,
        };
        return { status: ready ? 200 : 503, body };
      },
    },
    {
      method: "GET",
      path: "/metrics",
      does: "what this server does, for Prometheus",
      handle: async () => {
        const { metrics, hub, store, connections } = rooms;
        const text = await metrics.text({
          ready: !connections.leaving,
          connections: connectionCount(),
          hub: hub.levels(),
          store: store.levels(),
        });
        return { status: 200, text: text.trimEnd(), headers: { "Content-Type": metrics.contentType } };
      },
    },
    {
      method: "GET",
      path: "/v1/dialects",
      does: "what this server speaks",
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
    },
  ];
}
