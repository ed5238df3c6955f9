// Approvals that stand: what people have allowed for more than one call, and can take back.

import { RunwireError } from "@runwire/protocol";
import { z } from "zod";
import { badParam } from "../http/check.js";
import { type Route, route } from "../http/route.js";
import { id, json, members } from "../http/shapes.js";
import type { Rooms } from "../rooms.js";

const session_id = id.optional().describe("those of this session too, or instead");
const shape = members({
  approvals: z.array(
    members({
      tool: z.string(),
      decision: z.enum(["session", "always"]),
      session_id: z.string().nullable(),
      run_id: id,
      approval_id: z.string(),
      answered_at: z.string(),
    }),
  ),
});

const toolCharsTold = 200;

export function approvalRoutes({ store }: Rooms): readonly Route[] {
  return [
    route({
      method: "GET",
      path: "/v1/agent/approvals",
      does: "tools that are approved for more than one call",
      scope: "read",
      query: z.strictObject({ session_id }),
      answers: {
        200: { does: "oldest first, each with the answer that it comes from", content: json(shape) },
      },
      async handle({ tenant, query }) {
        const allowed = await store.allowances(tenant, query.session_id ?? null);
        const approvals = allowed.map(({ at, ...rest }) => ({
          ...rest,
          decision: rest.session_id === null ? "always" : "session",
          answered_at: at,
        }));
        return { status: 200, body: { approvals } };
      },
    }),
    route({
      method: "DELETE",
      path: "/v1/agent/approvals",
      does: "take back what was approved for a tool; from its next call on it is asked about again",
      scope: "approve",
      query: z.strictObject({ tool: z.string().optional().describe("the tool's name; needed"), session_id }),
      answers: { 204: { does: "taken back" } },
      async handle({ tenant, query }) {
        const { tool } = query;
        if (tool === undefined) throw badParam("`tool`", "is needed");
        const wasAllowed = await store.disallow(tenant, tool, query.session_id ?? null);
        if (!wasAllowed) throw new RunwireError("KAI-RUN-APPROVAL-0001", tool.slice(0, toolCharsTold));
        return { status: 204 };
      },
    }),
  ];
}
