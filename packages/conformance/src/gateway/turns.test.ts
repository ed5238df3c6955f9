// Sessions: what turns they have, in which order, and whose they are.

import type { Facts } from "@runwire/protocol";
import { createKey, startGateway } from "@runwire/server";
import { describe, expect, it } from "vitest";
import { writeKey } from "./access.js";
import { call, codeOf, lifecycle, type Reply, runPath, say } from "./calls.js";
import { underTest } from "./under-test.js";

const server = underTest(startGateway, { auth: "keys" });
const scopes = ["read", "write", "admin"] as const;
const keys = new Map(
  ["acme", "rival"].map((tenant) => [tenant, writeKey(createKey, server.folder, tenant, { scopes })]),
);

const as = (tenant: string, method: string, path: string, body?: unknown): Promise<Reply> =>
  call(server.url, method, path, body, keys.get(tenant)?.headers);

async function turn(tenant: string, session_id: string, ...drafts: readonly object[]): Promise<string> {
  const asked = { prompt: "go", producer: "external", lease_ms: 600_000, session_id };
  const run_id = (await as(tenant, "POST", "/v1/agent/runs", asked)).body.run_id as string;
  if (drafts.length > 0) await as(tenant, "POST", runPath(run_id, "events"), drafts);
  return run_id;
}

const titled = (title: string): object => say("title", { title });

async function listed(tenant: string, limit: number): Promise<readonly Facts[]> {
  const found: Facts[] = [];
  for (let cursor = ""; ; ) {
    const { body } = await as(tenant, "GET", `/v1/agent/sessions?limit=${limit}${cursor}`);
    found.push(...(body.sessions as readonly Facts[]));
    if (body.next === null) return found;
    cursor = `&cursor=${body.next}`;
  }
}

describe("a session", () => {
  it("has its root runs as turns, oldest first, and the first title of them [RW-TURN-2] [RW-TURN-3]", async () => {
    const first = await turn("acme", "sess_a", lifecycle("done"));
    const second = await turn("acme", "sess_a", titled("Tidy up"), lifecycle("done"));
    const third = await turn("acme", "sess_a", titled("Something else"));
    const helper = await as("acme", "POST", runPath(third, "children"), { prompt: "help" });
    expect(helper.status).toBe(201);
    const { body } = await as("acme", "GET", "/v1/agent/sessions/sess_a");
    expect(body).toMatchObject({ session_id: "sess_a", title: "Tidy up", state: "running", turns_total: 3 });
    expect((body.turns as Facts[]).map(({ run_id, state }) => [run_id, state])).toEqual([
      [first, "done"],
      [second, "done"],
      [third, "running"],
    ]);
    const few = (await as("acme", "GET", "/v1/agent/sessions/sess_a?limit=2")).body;
    expect([(few.turns as Facts[]).map(({ run_id }) => run_id), few.turns_total, few.title]).toEqual([
      [second, third],
      3,
      "Tidy up",
    ]);
    expect((await as("acme", "GET", second.replace("run_", "/v1/agent/sessions/run_"))).status).toBe(404);
  });

  it("comes before those whose last turn is older, on whatever pages [RW-TURN-3]", async () => {
    for (const session_id of ["sess_1", "sess_2", "sess_3", "sess_2", "sess_4", "sess_1"])
      await turn("rival", session_id);
    const order = ["sess_1", "sess_4", "sess_2", "sess_3"];
    for (const limit of [1, 2, 3, 50]) {
      const sessions = await listed("rival", limit);
      expect([limit, sessions.map(({ session_id }) => session_id)]).toEqual([limit, order]);
      expect(sessions.map(({ turns_total }) => turns_total)).toEqual([2, 1, 2, 1]);
      for (const { session_id, last_turn } of sessions) expect(last_turn).toMatchObject({ session_id });
    }
  });

  it("is its tenant's own, and is gone with its last turn [RW-TURN-3]", async () => {
    const own = await turn("acme", "sess_shared", titled("Ours"));
    const missing = await as("rival", "GET", "/v1/agent/sessions/sess_shared");
    expect([missing.status, codeOf(missing)]).toEqual([404, "KAI-RUN-SESSION-0001"]);
    const theirs = await turn("rival", "sess_shared");
    const { body } = await as("rival", "GET", "/v1/agent/sessions/sess_shared");
    expect([body.title, (body.turns as Facts[]).map(({ run_id }) => run_id)]).toEqual([null, [theirs]]);
    expect((await as("acme", "DELETE", `/v1/agent/runs/${own}`)).status).toBe(204);
    expect((await as("acme", "GET", "/v1/agent/sessions/sess_shared")).status).toBe(404);
    expect((await as("rival", "GET", "/v1/agent/sessions/sess_shared")).status).toBe(200);
  });
});
