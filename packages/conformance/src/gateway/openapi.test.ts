// The server's account of itself: that it is OpenAPI, that it names every route, and that every route answers as it says.

import { dialects, type Facts } from "@runwire/protocol";
import { startGateway } from "@runwire/server";
import { Validator } from "@seriousme/openapi-schema-validator";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import { beforeAll, describe, expect, it } from "vitest";
import { append, call, createRun, lifecycle, type Reply, runPath, say } from "./calls.js";
import { underTest } from "./under-test.js";

interface Operation {
  readonly operationId: string;
  readonly parameters: readonly { readonly name: string; readonly in: string }[];
  readonly requestBody?: unknown;
  readonly responses: {
    readonly [status: string]: { readonly content?: { [type: string]: { schema: object } } };
  };
  readonly "x-runwire-scope": string;
  readonly "x-runwire-streams"?: true;
}

interface Document {
  readonly paths: { readonly [path: string]: { readonly [method: string]: Operation } };
  readonly components: { readonly schemas: { readonly [name: string]: object } };
}

let document: Document;
const ajv = new Ajv2020({ strict: false, validateFormats: false });

const server = underTest(startGateway);

beforeAll(async () => {
  document = (await call(server.url, "GET", "/openapi.json")).body as unknown as Document;
  ajv.addSchema({ $id: "https://runwire.test/", components: document.components });
});

/** A run on which everything can be asked that a route may ask for. */
async function ready(): Promise<{ readonly [param: string]: string }> {
  const run = await createRun(server.url, { planning_gate: "required" });
  const plan = { id: "plan_1", steps: [{ id: "s1", title: "look" }] };
  await append(server.url, run, say("plan.proposal", { plan }));
  const other = await createRun(server.url);
  const output = "x".repeat(70_000);
  await append(
    server.url,
    other,
    say("approval.requested", { approval_id: "appr_1", tool: "shell" }),
    say("clarify.requested", { clarify_id: "clar_1", question: "?" }),
    say("tool.start", { call_id: "call_1", tool: "t" }),
    say("tool.end", { call_id: "call_1", ok: true, output }),
    say("step.boundary", { step_index: 0, step_kind: "tool-roundtrip", checkpoint_id: "ckpt_1" }),
  );
  const session = "sess_1";
  const ended = await createRun(server.url, { session_id: session });
  await append(server.url, ended, lifecycle("done"));
  const { body } = await call(server.url, "GET", `${runPath(other, "events")}?limit=10`);
  const ref = (body.events as { payload: Facts }[]).find(({ payload }) => "blob_ref" in payload)?.payload
    .blob_ref;
  return { run, other, ended, session, ref: String(ref) };
}

interface Sample {
  /** Parameters of the path. */
  readonly at?: (of: { readonly [param: string]: string }) => { readonly [param: string]: string };
  readonly query?: (of: { readonly [param: string]: string }) => string;
  readonly body?: unknown;
}

const onRun = { at: ({ other = "" }) => ({ id: other }) };
const onPlan = { at: ({ run = "" }) => ({ id: run }) };
const onEnded = { at: ({ ended = "" }) => ({ id: ended }) };

/** One good request for each operation; a route without one fails the test below. */
const samples: { readonly [operationId: string]: Sample } = {
  get_agent_runs_id_stream: onEnded,
  get_agent_runs_id_replay_jsonl: onRun,
  get_agent_stream: { query: ({ ended }) => `runs=${ended}` },
  get_agent_runs_stream: {},
  get_agent_inbox: { query: () => "limit=10" },
  get_agent_inbox_stream: {},
  get_agent_sessions: { query: () => "limit=2" },
  get_agent_sessions_session: { at: ({ session = "" }) => ({ session }) },
  post_agent_runs: { body: { prompt: "go", producer: "external" } },
  get_agent_runs: { query: () => "limit=2&state=running" },
  get_agent_runs_id: onRun,
  delete_agent_runs_id: onEnded,
  get_agent_runs_id_events: { ...onRun, query: () => "dialect=runwire&detail=full&after=1" },
  get_agent_runs_id_snapshot: { ...onRun, query: () => "at=2" },
  get_agent_runs_id_steps: onRun,
  get_agent_runs_id_checkpoints: onRun,
  get_agent_runs_id_children: onRun,
  get_agent_runs_id_trace: onRun,
  get_agent_runs_id_evidence: onRun,
  get_agent_runs_id_review: onRun,
  post_agent_runs_id_children: { ...onRun, body: { prompt: "help" } },
  post_agent_runs_id_fork: { ...onEnded, query: () => "dialect=runwire", body: { at: 2, prompt: "again" } },
  post_agent_runs_id_rewind: { ...onRun, body: { checkpoint_id: "ckpt_1" } },
  post_agent_runs_id_events: { ...onRun, body: [{ type: "text.delta", payload: { text: "hi" } }] },
  post_agent_runs_id_heartbeat: { ...onRun, body: {} },
  get_agent_runs_id_producers_producer: { at: ({ other = "" }) => ({ id: other, producer: "p" }) },
  post_agent_runs_id_approve_plan: { ...onPlan, body: {} },
  post_agent_runs_id_pause: { ...onRun, body: { reason: "a break" } },
  post_agent_runs_id_resume: { ...onRun, body: {} },
  post_agent_runs_id_redirect: { ...onRun, body: { instruction: "left" } },
  post_agent_runs_id_steer: { ...onRun, body: { text: "faster" } },
  post_agent_runs_id_abort: { ...onRun, body: {} },
  post_agent_runs_id_approvals_request: {
    at: ({ other = "" }) => ({ id: other, request: "appr_1" }),
    body: { decision: "always" },
  },
  post_agent_runs_id_clarifications_request: {
    at: ({ other = "" }) => ({ id: other, request: "clar_1" }),
    body: { answer: "yes" },
  },
  get_agent_approvals: { query: () => "session_id=sess_1" },
  delete_agent_approvals: { query: () => "tool=shell" },
  get_blobs_ref: { at: ({ ref = "" }) => ({ ref }) },
  get_loom: {},
  get_retention: {},
  put_retention: { body: { done_days: 90, aborted_days: 30, error_days: null, full_days: 7 } },
  delete_retention: {},
  post_retention_apply: { body: { dry_run: true } },
  post_stream_tickets: { body: { run_list: true } },
  get_session: {},
  post_session: { body: { key: "none" } },
  delete_session: {},
  get_livez: {},
  get_healthz: {},
  get_readyz: {},
  get_metrics: {},
  get_dialects: {},
  get_openapi_json: {},
  get_docs: {},
  get_schemas_name: { at: () => ({ name: "runtime-event" }) },
};

/** An open server has nothing to sign in with, and only an agent keeps checkpoints: so they say. */
const refused = new Map([
  ["post_session", 422],
  ["post_agent_runs_id_rewind", 410],
]);
const endless = new Set(["get_agent_runs_stream", "get_agent_inbox_stream"]);

async function ask(
  method: string,
  path: string,
  { at, query, body }: Sample,
  operation: Operation,
): Promise<Reply> {
  const of = await ready();
  const params = at?.(of) ?? {};
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => params[name] ?? "");
  const asked = query === undefined ? filled : `${filled}?${query(of)}`;
  if (!endless.has(operation.operationId)) return call(server.url, method.toUpperCase(), asked, body);
  // A feed never ends: its head and first bytes are enough.
  const stopping = new AbortController();
  const response = await fetch(server.url + asked, { signal: stopping.signal });
  const { status, headers } = response;
  const first = await response.body?.getReader().read();
  stopping.abort();
  return { status, headers, text: new TextDecoder().decode(first?.value), body: {} };
}

/** Says whether an answer is what the document promises. */
function validatorOf(content: { readonly schema: object } | undefined): ValidateFunction {
  const text = JSON.stringify(content?.schema ?? {});
  return ajv.compile(JSON.parse(text.replaceAll('"#/', '"https://runwire.test/#/')));
}

describe("/openapi.json", () => {
  it("is OpenAPI 3.1", async () => {
    const result = await new Validator().validate(
      structuredClone(document) as unknown as Record<string, unknown>,
    );
    expect(result).toMatchObject({ valid: true });
  });

  it("has a good request here for each of its operations, and no two of one name", () => {
    const ids = Object.values(document.paths).flatMap((methods) =>
      Object.values(methods).map(({ operationId }) => operationId),
    );
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids.toSorted()).toEqual(Object.keys(samples).toSorted());
  });

  it("says of each route what it answers, and the route answers so", async () => {
    for (const [path, methods] of Object.entries(document.paths)) {
      for (const [method, operation] of Object.entries(methods)) {
        const { operationId, responses } = operation;
        const reply = await ask(method, path, samples[operationId] ?? {}, operation);
        if (refused.has(operationId)) {
          expect([operationId, reply.status]).toEqual([operationId, refused.get(operationId)]);
          continue;
        }
        const told = responses[String(reply.status)];
        expect([operationId, reply.status, reply.text.slice(0, 200), told !== undefined]).toEqual([
          operationId,
          reply.status,
          reply.text.slice(0, 200),
          true,
        ]);
        const type = (reply.headers.get("content-type") ?? "").split(";", 1)[0] ?? "";
        expect([operationId, Object.keys(told?.content ?? { "": 0 })]).toEqual([
          operationId,
          expect.arrayContaining([type]),
        ]);
        if (type !== "application/json") continue;
        const isRight = validatorOf(told?.content?.[type]);
        const errors = isRight(JSON.parse(reply.text)) ? [] : isRight.errors;
        expect([operationId, errors]).toEqual([operationId, []]);
      }
    }
  });

  it("tells the pages of every dialect", async () => {
    const { ended = "" } = await ready();
    const path = "/v1/agent/runs/{id}/events";
    const isRight = validatorOf(document.paths[path]?.get?.responses[200]?.content?.["application/json"]);
    for (const dialect of dialects.keys()) {
      const { text } = await call(server.url, "GET", `${runPath(ended, "events")}?dialect=${dialect}`);
      const errors = isRight(JSON.parse(text)) ? [] : isRight.errors;
      expect([dialect, errors]).toEqual([dialect, []]);
    }
  });

  it("asks for a body only where a request without one is refused", async () => {
    const { other = "" } = await ready();
    for (const [action, isNeeded] of [
      ["heartbeat", false],
      ["pause", false],
      ["steer", true],
      ["children", true],
    ] as const) {
      const { requestBody } = document.paths[`/v1/agent/runs/{id}/${action}`]?.post ?? {};
      expect([action, requestBody]).toMatchObject([action, { required: isNeeded }]);
      const { status } = await call(server.url, "POST", runPath(other, action));
      expect([action, status === 422]).toEqual([action, isNeeded]);
    }
  });

  it("names every parameter: one that it does not name is refused", async () => {
    for (const [path, methods] of Object.entries(document.paths)) {
      for (const method of Object.keys(methods)) {
        const reply = await call(
          server.url,
          method.toUpperCase(),
          `${path.replace(/\{\w+\}/g, "run_x")}?surprise=1`,
          method === "get" || method === "delete" ? undefined : {},
        );
        expect([method, path, reply.status]).toEqual([method, path, 400]);
      }
    }
  });
});

describe("/docs", () => {
  it("shows every route on one page that runs nothing and fetches nothing", async () => {
    const { headers, text, status } = await call(server.url, "GET", "/docs");
    expect(status).toBe(200);
    expect(headers.get("content-security-policy")).toMatch(/^default-src 'none'; style-src 'sha256-/);
    expect(text).not.toMatch(/<script|\son\w+=|https?:\/\//);
    for (const path of Object.keys(document.paths)) expect(text).toContain(path.replace(/\{(\w+)\}/g, ":$1"));
  });
});
