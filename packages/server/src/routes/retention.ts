// How long a tenant's runs are kept, and what would go now.

import { z } from "zod";
import { type Call, type Reply, type Route, route } from "../http/route.js";
import { facts, json, members } from "../http/shapes.js";
import type { Rooms } from "../rooms.js";
import { retentionOf } from "../settings.js";

const days = z.int().min(1).max(36_500).nullable().describe("days after the end; null for ever");
const settings = z.strictObject({
  done_days: days,
  aborted_days: days,
  error_days: days,
  full_days: days.describe("days for which the full view is kept; null for as long as the run"),
});
const shape = members({ ...settings.shape, source: z.enum(["tenant", "server"]) });
const round = z.strictObject({
  dry_run: z.boolean().nullish().describe("true: only say what would go"),
});
const total = members({ trees: z.number(), runs: z.number(), bytes: z.number() });
const outcome = members({
  dry_run: z.boolean(),
  totals: members({ trees: total, full_views: total }),
  trees: z.array(facts).optional().describe("the first hundred of a dry run"),
  full_views: z.array(facts).optional(),
});

export function retentionRoutes(rooms: Rooms): readonly Route[] {
  return [
    route({
      method: "GET",
      path: "/v1/retention",
      does: "how long runs are kept after they have ended",
      scope: "read",
      answers: { 200: { does: "days, and who set them", content: json(shape) } },
      handle: (call) => told(rooms, call.tenant),
    }),
    route({
      method: "PUT",
      path: "/v1/retention",
      does: "set how long this tenant's runs are kept",
      scope: "admin",
      body: settings,
      answers: { 200: { does: "set", content: json(shape) } },
      handle: async ({ tenant, body }) => {
        await rooms.store.setTenantSettings(tenant, { retention: body });
        return told(rooms, tenant);
      },
    }),
    route({
      method: "DELETE",
      path: "/v1/retention",
      does: "go back to how long the server keeps runs",
      scope: "admin",
      answers: { 200: { does: "as it is now", content: json(shape) } },
      handle: async ({ tenant }) => {
        await rooms.store.setTenantSettings(tenant, null);
        return told(rooms, tenant);
      },
    }),
    route({
      method: "POST",
      path: "/v1/retention/apply",
      does: "let go now what need not be kept, or say what that would be",
      scope: "admin",
      body: round,
      answers: { 200: { does: "what went, or would", content: json(outcome) } },
      handle: (call) => apply(rooms, call),
    }),
  ];
}

async function told({ store, settings: given }: Rooms, tenant: string): Promise<Reply> {
  const own = (await store.tenantSettings(tenant))?.retention;
  const source = own === undefined ? "server" : "tenant";
  return { status: 200, body: { ...(own ?? retentionOf(given)), source } };
}

async function apply(
  { retention }: Rooms,
  { tenant, body }: Call<unknown, z.output<typeof round>>,
): Promise<Reply> {
  const dry_run = body.dry_run ?? false;
  if (dry_run) return { status: 200, body: { dry_run, ...(await retention.plan(tenant)) } };
  return { status: 200, body: { dry_run, totals: await retention.apply(tenant) } };
}
