// Blobs and redaction on a gateway with keys: the same bytes of two tenants are two blobs, and what must not be stored
// is not, whoever sends it.

import { type Facts, limits } from "@runwire/protocol";
import { createKey, startGateway } from "@runwire/server";
import { describe, expect, it } from "vitest";
import { writeKey } from "./access.js";
import { call, type Reply, runPath, say } from "./calls.js";
import { underTest } from "./under-test.js";

const server = underTest(startGateway, { auth: "keys", redact: ["*password*"] });
const scopes = ["read", "write", "approve", "admin"] as const;
const keys = new Map(
  ["acme", "rival"].map((tenant) => [tenant, writeKey(createKey, server.folder, tenant, { scopes })]),
);

const as = (tenant: string, method: string, path: string, body?: unknown): Promise<Reply> =>
  call(server.url, method, path, body, keys.get(tenant)?.headers);

async function newRun(tenant: string, asked: Facts = {}): Promise<string> {
  const { body } = await as(tenant, "POST", "/v1/agent/runs", {
    prompt: "go",
    producer: "external",
    ...asked,
  });
  return body.run_id as string;
}

async function payloads(tenant: string, run_id: string): Promise<readonly Facts[]> {
  const { body } = await as(tenant, "GET", runPath(run_id, "events?dialect=runwire&detail=full&limit=1000"));
  return (body.events as readonly { payload: Facts }[]).map(({ payload }) => payload);
}

describe("two tenants", () => {
  it("have nothing of each other's blobs, not even the same bytes [RW-BLOB-4]", async () => {
    const output = "the same ".repeat(limits.memberBytesMax / 8);
    const runs = new Map<string, string>();
    const end = say("tool.end", { call_id: "call_1", ok: true, output });
    const store = async (tenant: string): Promise<string> => {
      const run_id = await newRun(tenant);
      runs.set(tenant, run_id);
      expect((await as(tenant, "POST", runPath(run_id, "events"), [end])).status).toBe(200);
      return (await payloads(tenant, run_id)).at(-1)?.blob_ref as string;
    };
    const ref = await store("acme");
    const path = `/v1/blobs/${ref}`;
    const missing = await as("rival", "GET", `/v1/blobs/blob_${"0".repeat(64)}`);
    const others = await as("rival", "GET", path);
    expect([others.status, others.text]).toEqual([404, missing.text]);
    expect((await call(server.url, "GET", path)).status).toBe(401);
    expect(await store("rival")).toBe(ref);
    expect((await as("rival", "GET", path)).text).toBe(output);
    expect((await as("acme", "DELETE", `/v1/agent/runs/${runs.get("acme")}`)).status).toBe(204);
    expect((await as("acme", "GET", path)).status).toBe(404);
    expect((await as("rival", "GET", path)).text).toBe(output);
  });
});

describe("a server that redacts", () => {
  it("stores no such value, whoever sends it, and takes the same answer again [RW-REDACT-2]", async () => {
    const run_id = await newRun("acme", { metadata: { db_password: "swordfish" } });
    const ask = say("approval.requested", { approval_id: "appr_1", input: { Password: "swordfish" } });
    await as("acme", "POST", runPath(run_id, "events"), [ask]);
    const answer = (input: Facts): Promise<Reply> =>
      as("acme", "POST", runPath(run_id, "approvals/appr_1"), { decision: "once", input });
    expect((await answer({ password: "swordfish" })).status).toBe(200);
    expect((await answer({ password: "swordfish" })).status).toBe(200);
    expect((await answer({ password: "swordfish", more: 1 })).status).toBe(409);
    const said = await payloads("acme", run_id);
    expect(said.map(({ redacted }) => redacted)).toEqual([
      undefined,
      ["/metadata/db_password"],
      ["/input/Password"],
      ["/input/password"],
    ]);
    const run = await as("acme", "GET", `/v1/agent/runs/${run_id}`);
    expect(JSON.stringify([said, run.body])).not.toContain("swordfish");
  });
});
