import { z } from "zod";
import { type Route, route } from "../http/route.js";
import { json, members } from "../http/shapes.js";
import type { Rooms } from "../rooms.js";
import { loomSocket } from "./loom-socket.js";

export function loomRoutes(rooms: Rooms): readonly Route[] {
  return [
    route({
      method: "GET",
      path: "/v1/loom",
      does: "Loom's own WebSocket: start runs, follow, cancel and answer them on one connection; needs `read` too",
      scope: "write",
      answers: {
        200: {
          does: "what it takes, where no WebSocket is asked for",
          content: json(members({ websocket: z.literal(true), requests: z.array(z.string()) })),
        },
      },
      handle: async () => ({
        status: 200,
        body: { websocket: true, requests: ["run", "cancel_run", "tool_approval_response", "ping"] },
      }),
      upgrade: loomSocket(rooms),
    }),
  ];
}
