// A run as a trace, for whoever collects those of everything else.

import { otlpTrace, tracer } from "@runwire/protocol";
import { z } from "zod";
import { type Call, type Reply, type Route, route } from "../http/route.js";
import { facts, json, members } from "../http/shapes.js";
import { readableHead, stretches } from "../reading.js";
import type { Rooms } from "../rooms.js";
import { version } from "../version.js";

export function traceRoutes(rooms: Rooms): readonly Route[] {
  return [
    route({
      method: "GET",
      path: "/v1/agent/runs/:id/trace",
      does: "the run and those below it as a trace of OpenTelemetry, in OTLP's JSON",
      scope: "read",
      answers: {
        200: {
          does: "for `POST /v1/traces` of a collector",
          content: json(members({ resourceSpans: z.array(facts) })),
        },
      },
      handle: (call) => trace(rooms, call),
    }),
  ];
}

async function trace(rooms: Rooms, { run: key }: Call): Promise<Reply> {
  const { views } = await readableHead(rooms, key);
  const { hear, spans } = tracer(key.run_id);
  for await (const stretch of stretches(rooms.store, key, "default", { to: views.default.pos }))
    stretch.forEach(hear);
  return { status: 200, body: otlpTrace(spans(), version) };
}
