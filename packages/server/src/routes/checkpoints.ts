// The checkpoints of a run: those that its steps name, and which of them can still be gone back to.

import type { Step } from "@runwire/protocol";
import { z } from "zod";
import { type Call, type Reply, type Route, route } from "../http/route.js";
import { checkpoint, json, members } from "../http/shapes.js";
import { readableHead } from "../reading.js";
import type { Rooms } from "../rooms.js";

export function checkpointRoutes(rooms: Rooms): readonly Route[] {
  return [
    route({
      method: "GET",
      path: "/v1/agent/runs/:id/checkpoints",
      does: "the checkpoints of its steps, and which are kept",
      scope: "read",
      answers: {
        200: { does: "checkpoints", content: json(members({ checkpoints: z.array(checkpoint) })) },
      },
      handle: (call) => list(rooms, call),
    }),
  ];
}

async function list(rooms: Rooms, { run: key }: Call): Promise<Reply> {
  const { run, views } = await readableHead(rooms, key);
  const { steps } = await rooms.transcripts.at(key, "default", views.default.pos);
  const kept = run.external ? undefined : await rooms.agent?.checkpoints.kept(run);
  const checkpoints = steps.flatMap(({ checkpoint_id, ...step }: Step) => {
    if (checkpoint_id === undefined) return [];
    const bytes = kept?.get(checkpoint_id) ?? null;
    return [{ checkpoint_id, ...step, bytes, kept: bytes !== null }];
  });
  return { status: 200, body: { checkpoints } };
}
