// The gate, held against every route that the server has: who is let in, what a scope opens, and what another tenant
// can find out, which is nothing.

import { limits } from "@runwire/protocol";
import { createKey, revokeKey, sqliteStore, startGateway } from "@runwire/server";
import { beforeAll, describe, expect, it } from "vitest";
import {
  allScopes,
  bearer,
  each,
  type Key,
  newKey,
  newRun,
  questionFor,
  type RouteUnderTest,
  revoke,
  routesOf,
  ways,
  writeKey,
} from "./access.js";
import { type Answer, ask, type Headers, type Question } from "./asking.js";
import { runPath, say, text } from "./calls.js";
import { type Overheard, overhear } from "./overhear.js";
import { openReading } from "./readers.js";
import { underTest } from "./under-test.js";

/** What the server has asked its store since a test last looked, and what it was told. */
let overheard: Overheard[] = [];
const server = underTest(
  (settings: object, clock) =>
    startGateway(settings, clock, undefined, (options) =>
      overhear(sqliteStore(options), (one) => overheard.push(one)),
    ),
  { auth: "keys", requestsPerSecond: 0 },
);
const other = underTest(startGateway, { auth: "keys" });
let routes: readonly RouteUnderTest[];
let operator: Key;
let alice: Key;
let bob: Key;

beforeAll(async () => {
  routes = await routesOf(server.url);
  [operator, alice, bob] = (await Promise.all(
    ["operator", "alice", "bob"].map((tenant) => newKey(createKey, server, tenant)),
  )) as [Key, Key, Key];
});

const guarded = (): readonly RouteUnderTest[] => routes.filter(({ scope }) => scope !== "anyone");

describe("every route", () => {
  it("is in the server's own document, streams and all", () => {
    expect(routes.length).toBeGreaterThan(30);
    expect(routes.filter(({ scope }) => scope === "anyone").map(({ name }) => name)).toEqual(
      expect.arrayContaining(["GET /livez", "GET /readyz", "GET /openapi.json", "POST /v1/session"]),
    );
    for (const scope of allScopes) expect(guarded().some((route) => route.scope === scope)).toBe(true);
    expect(routes.filter(({ streams }) => streams).length).toBeGreaterThanOrEqual(4);
  });

  it("refuses a stranger before it looks at anything, and says how to come in [RW-AUTH-1]", () =>
    each(
      guarded().flatMap((route) => ways(route)),
      async (question) => {
        for (const body of question.body === undefined ? [undefined] : [question.body, "{not json"]) {
          const { status, code, headers } = await ask(server.url, { ...question, body });
          expect([question, status, code]).toEqual([question, 401, "KAI-AUTH-TOKEN-0001"]);
          expect(headers["www-authenticate"]).toBe('Bearer realm="runwire"');
        }
      },
    ));

  it("that is for anyone answers all alike, whatever they bring [RW-AUTH-1]", () =>
    each(
      routes.filter(({ scope, method }) => scope === "anyone" && method === "GET"),
      async (route) => {
        const question = questionFor(route, { name: "runtime-event" });
        const stranger = await ask(server.url, question);
        expect([route.name, stranger.status]).toEqual([route.name, 200]);
        for (const headers of [bob.headers, bearer("x"), { Authorization: "Basic eDp5" }]) {
          expect((await ask(server.url, { ...question, headers })).text).toBe(stranger.text);
        }
      },
    ));

  it("refuses what is no credential, or no longer, or only looks like one [RW-AUTH-2]", async () => {
    const revoked = await newKey(createKey, server, "alice");
    await revoke(revokeKey, server, revoked);
    const expired = writeKey(createKey, server.folder, "alice", { lifeMs: 1000, nowMs: Date.now() - 5000 });
    const foreign = await newKey(createKey, other, "alice");
    const [, , secret = ""] = alice.key.split("_");
    const wrong: readonly Headers[] = [
      revoked.headers,
      expired.headers,
      foreign.headers,
      // Another's id with one's own secret, a letter more, less or other, another case.
      bearer(`rw_${bob.id}_${secret}`),
      bearer(alice.key.slice(0, -1)),
      bearer(`${alice.key}A`),
      bearer(`${alice.key.slice(0, -1)}${alice.key.endsWith("A") ? "B" : "A"}`),
      bearer(alice.key.toUpperCase()),
      bearer(alice.id),
      bearer(`key:${alice.id}`),
      bearer("open"),
      bearer("eyJhbGciOiJub25lIn0.eyJ0ZW5hbnQiOiJhbGljZSJ9."),
      bearer("%00"),
      { Authorization: alice.key },
      { Authorization: "Bearer" },
      { Authorization: `Bearer ${alice.key} ${alice.key}` },
      { Authorization: `Bearer ${alice.key}, Bearer ${alice.key}` },
      { Authorization: `Basic ${Buffer.from(`alice:${alice.key}`).toString("base64")}` },
      { Authorization: `Token ${alice.key}` },
      { Authorization: [`Bearer ${alice.key}`, `Bearer ${bob.key}`] },
      { Authorization: [`Bearer ${alice.key}`, `Bearer ${alice.key}`] },
      bearer("x".repeat(10 * 1024)),
      { "X-Api-Key": alice.key },
      { Cookie: `runwire_session=${alice.key}` },
      { "Sec-WebSocket-Protocol": `bearer.${alice.key}` },
    ];
    await each(guarded(), async (route) => {
      for (const question of ways(route)) {
        for (const headers of wrong) {
          const { status, code } = await ask(server.url, { ...question, headers });
          expect([route.name, headers, status]).toEqual([route.name, headers, 401]);
          expect(code).toMatch(/^KAI-AUTH-TOKEN-000[123]$/);
        }
      }
    });
    const swollen = bearer("x".repeat(20 * 1024));
    expect((await ask(server.url, { path: "/v1/dialects", headers: swollen })).status).toBe(431);
  }, 120_000);

  it("opens to its own scope and to no other [RW-AUTH-3]", async () => {
    const keys = await Promise.all(
      allScopes.map(async (scope) => ({
        scope,
        key: await newKey(createKey, server, "operator", { scopes: [scope] }),
      })),
    );
    await each(guarded(), async (route) => {
      for (const { scope, key } of keys) {
        for (const question of ways(route)) {
          const { status, code } = await ask(server.url, { ...question, headers: key.headers });
          const facts = [route.name, scope, question.upgrade ?? false, status, code];
          expect(status, String(facts)).not.toBe(401);
          expect(status, String(facts)).toBeLessThan(500);
          if (route.scope === "any" || scope === route.scope) expect(status, String(facts)).not.toBe(403);
          else expect([status, code], String(facts)).toEqual([403, "KAI-AUTH-SCOPE-0001"]);
        }
      }
    });
  }, 120_000);

  it("that starts runs and tells them asks for both scopes [RW-AUTH-3] [RW-LOOM-5]", async () => {
    const runs = async () => (await ask(server.url, { path: "/v1/agent/runs", headers: alice.headers })).text;
    const before = await runs();
    const writer = await newKey(createKey, server, "alice", { scopes: ["write"] });
    const socket = await openReading("websocket", server.url, "/v1/loom", writer.headers);
    socket.send({ type: "run", id: "a", message: "repeat what was said" });
    await socket.until(({ heard }) => heard.length > 0);
    expect(JSON.parse(socket.heard[0]?.data ?? "")).toMatchObject({
      type: "error",
      id: "a",
      code: "KAI-AUTH-SCOPE-0001",
    });
    expect(await runs()).toBe(before);
    socket.stop();
  });

  it(
    "takes no credential in its address, good or bad [RW-AUTH-4]",
    () =>
      each(
        routes.flatMap((route) => ways(route)),
        async (question) => {
          for (const query of [
            "token=x",
            "access_token=",
            "ACCESS_TOKEN=x",
            "id_token=x",
            "api_key=x",
            "apikey=x",
            "key=x",
            "password=x",
            "authorization=Bearer%20x",
            `api_key=${alice.key}`,
            `after=${alice.key}`,
            `limit=1&x=${alice.key.replace("_", "%5F")}`,
            `ticket=${alice.key}`,
            "q=eyJhbGciOiJIUzI1NiJ9.eyJ0ZW5hbnQiOiJhIn0.c2ln",
          ]) {
            for (const headers of [{}, alice.headers]) {
              const path = `${question.path}?${query}`;
              const answer = await ask(server.url, { ...question, path, headers });
              expect([path, answer.status, answer.code]).toEqual([path, 400, "KAI-AUTH-URL-0001"]);
              expect(answer.text).not.toContain(alice.key);
            }
          }
        },
      ),
    120_000,
  );
});

describe("the server's metrics", () => {
  it("are for the admins of the tenant that operates it [RW-AUTH-5]", async () => {
    expect((await ask(server.url, { path: "/metrics", headers: operator.headers })).text).toContain("# TYPE");
    for (const { headers } of [alice, bob]) {
      const { status, code } = await ask(server.url, { path: "/metrics", headers });
      expect([status, code]).toEqual([403, "KAI-AUTH-SCOPE-0001"]);
    }
  });
});

describe("another tenant's admin", () => {
  const child_id = "run_child.of.alice";
  const approval_id = "appr_1";
  let run_id: string;
  let ref: string;

  beforeAll(async () => {
    const created = await ask(server.url, {
      method: "POST",
      path: "/v1/agent/runs",
      headers: alice.headers,
      body: { prompt: "go", producer: "external", lease_ms: 600_000, session_id: "ses_of_alice" },
    });
    run_id = created.body.run_id as string;
    const written = await ask(server.url, {
      method: "POST",
      path: runPath(run_id, "events"),
      headers: { ...alice.headers, "Producer-Id": "alice", "Producer-Seq": "1" },
      body: [
        text("a secret"),
        say("child.spawn", { child_id, prompt: "dig" }),
        say("approval.requested", { approval_id }),
        say("clarify.requested", { clarify_id: "clar_1", question: "?" }),
        say("tool.end", { call_id: "c", ok: true, output: "s".repeat(limits.memberBytesMax + 1) }),
      ],
    });
    expect(written.status).toBe(200);
    const { events } = (await ofAlice(runPath(run_id, "events?dialect=runwire"))).body;
    ref =
      (events as readonly { payload: { blob_ref?: string } }[]).flatMap(
        ({ payload }) => payload.blob_ref ?? [],
      )[0] ?? "";
    expect(ref).toMatch(/^blob_/);
  });

  const ofAlice = (path: string): Promise<Answer> => ask(server.url, { path, headers: alice.headers });

  /** All there is to know of Alice's runs. */
  async function everything(): Promise<readonly string[]> {
    const logs = [run_id, child_id].flatMap((id) => [
      `/v1/agent/runs/${id}`,
      ...["default", "full"].map((view) => runPath(id, `events?dialect=runwire&limit=1000&detail=${view}`)),
      runPath(id, "snapshot"),
      runPath(id, "producers/alice"),
    ]);
    const paths = [...logs, `/v1/blobs/${ref}`, "/v1/agent/runs", "/v1/retention"];
    const answers = await Promise.all(paths.map(ofAlice));
    for (const [i, { status }] of answers.entries()) expect([paths[i], status]).toEqual([paths[i], 200]);
    return answers.map((answer) => answer.text);
  }

  const blur = (said: string, ids: readonly string[]): string =>
    ids
      .toSorted((one, other) => other.length - one.length)
      .reduce((words, id) => words.replaceAll(id, "ID"), said);

  /** As it reads to someone who does not know which id was asked for. */
  function blurred({ status, headers, text: said }: Answer, ids: readonly string[]): unknown {
    const { date: _, "runwire-request-id": __, ...rest } = headers;
    return { status, headers: rest, text: blur(said, ids) };
  }

  /** The same, and what the server went through for it: with the same answers on the way it has nothing to tell apart by. */
  async function askedAsBob(question: Question, ids: readonly string[]): Promise<readonly unknown[]> {
    overheard = [];
    const answer = await ask(server.url, { ...question, headers: bob.headers });
    // What the server does by itself meanwhile names neither.
    const forBob = overheard.filter(({ asked }) => ['"bob"', ...ids].some((name) => asked.includes(name)));
    return [blurred(answer, ids), forBob.map(({ asked, told }) => blur(`${asked}: ${told}`, ids))];
  }

  const known = (): { readonly [name: string]: string } => ({
    id: run_id,
    ref,
    request: approval_id,
    producer: "alice",
    session: "ses_of_alice",
  });
  /** Of the same form, and nobody's. */
  const unknown = (): { readonly [name: string]: string } => ({
    ...known(),
    id: `${run_id.slice(0, -6)}ZZZZZZ`,
    ref: `${ref.slice(0, -6)}abcdef`,
    session: "ses_of_carol",
  });

  it("is answered on every route as if Alice's runs had never been, by the same way, and changes none [RW-TENANT-1]", async () => {
    const before = await everything();
    const children = { ...known(), id: child_id };
    const never = { ...known(), id: `${child_id.slice(0, -5)}never` };
    const named = routes.filter(({ path, scope }) => path.includes("{") && scope !== "anyone");
    expect(named.length).toBeGreaterThan(15);
    for (const route of named) {
      for (const [theirs, nobodys] of [
        [known(), unknown()],
        [children, never],
      ] as const) {
        const missing = ways(route, nobodys);
        for (const [i, question] of ways(route, theirs).entries()) {
          const told = await askedAsBob(question, Object.values(theirs));
          const expected = await askedAsBob(missing[i] as Question, Object.values(nobodys));
          expect([route.name, ...told]).toEqual([route.name, ...expected]);
          expect([route.name, told[0]]).toMatchObject([route.name, { status: 404 }]);
          // Where there is no WebSocket, nothing is looked up.
          if (question.upgrade !== true) expect([route.name, told[1]]).not.toEqual([route.name, []]);
        }
      }
    }
    expect(await everything()).toEqual(before);
  });

  it("neither has nor takes back what Alice has approved for good [RW-TENANT-1]", async () => {
    const path = "/v1/agent/approvals";
    const own = await newRun(server.url, alice.headers);
    const asked = [say("approval.requested", { approval_id: "appr_good", tool: "shell" })];
    const post = (rest: string, body: unknown): Promise<Answer> =>
      ask(server.url, { method: "POST", path: runPath(own, rest), headers: alice.headers, body });
    expect((await post("events", asked)).status).toBe(200);
    expect((await post("approvals/appr_good", { decision: "always" })).status).toBe(200);
    const take = (headers: Headers): Promise<Answer> =>
      ask(server.url, { method: "DELETE", path: `${path}?tool=shell`, headers });
    expect((await ask(server.url, { path, headers: bob.headers })).body).toEqual({ approvals: [] });
    expect((await take(bob.headers)).status).toBe(404);
    expect((await ask(server.url, { path, headers: alice.headers })).body.approvals).toHaveLength(1);
    expect((await take(alice.headers)).status).toBe(204);
    await ask(server.url, {
      method: "DELETE",
      path: runPath(own, "").replace(/\/$/, ""),
      headers: alice.headers,
    });
  });

  it("finds nothing of them in lists, streams of several runs, tickets and retention [RW-TENANT-1]", async () => {
    const before = await everything();
    const { id: nobodys = "" } = unknown();
    const headers = bob.headers;
    for (const pattern of [
      (id: string): Question => ({ path: `/v1/agent/stream?runs=${id}` }),
      (id: string): Question => ({ path: `/v1/agent/stream?runs=${id}:3`, upgrade: true }),
      (id: string): Question => ({ path: `/v1/agent/runs?cursor=${id}` }),
      (id: string): Question => ({ method: "POST", path: "/v1/stream-tickets", body: { run_id: id } }),
      (id: string): Question => ({ method: "POST", path: "/v1/stream-tickets", body: { runs: [id] } }),
    ]) {
      const told = await ask(server.url, { ...pattern(run_id), headers });
      const expected = await ask(server.url, { ...pattern(nobodys), headers });
      expect(blurred(told, [run_id])).toEqual(blurred(expected, [nobodys]));
    }
    for (const path of ["/v1/agent/runs", "/v1/agent/runs?session_id=ses_of_alice"]) {
      expect((await ask(server.url, { path, headers })).body).toEqual({ runs: [], next: null });
    }
    const list = await openReading("sse", server.url, "/v1/agent/runs/stream", headers);
    const many = await openReading("websocket", server.url, "/v1/agent/stream", headers);
    many.send({ type: "subscribe", run_id });
    await many.until(({ heard }) => heard.length > 0);
    expect(JSON.parse(many.heard[0]?.data ?? "")).toMatchObject({ error: { code: "KAI-RUN-MISSING-0001" } });
    await list.until(({ heard }) => heard.length > 0);
    expect(JSON.parse(list.heard[0]?.data ?? "")).toMatchObject({ type: "snapshot", runs: [] });

    const retention = { done_days: 1, aborted_days: 1, error_days: 1, full_days: 1 };
    const put = await ask(server.url, { method: "PUT", path: "/v1/retention", headers, body: retention });
    expect(put.body).toMatchObject({ ...retention, source: "tenant" });
    const body = { dry_run: true };
    const apply = await ask(server.url, { method: "POST", path: "/v1/retention/apply", headers, body });
    expect(apply.body).toMatchObject({ trees: [], full_views: [] });
    expect(await everything()).toEqual(before);

    // Alice's run moves; what Bob hears next is his own.
    await ask(server.url, {
      method: "POST",
      path: runPath(run_id, "events"),
      headers: alice.headers,
      body: [say("title", { title: "t" })],
    });
    const own = await ask(server.url, {
      method: "POST",
      path: "/v1/agent/runs",
      headers,
      body: { prompt: "go", producer: "external" },
    });
    await list.until(({ heard }) => heard.length > 1);
    expect(JSON.parse(list.heard[1]?.data ?? "")).toMatchObject({ run_id: own.body.run_id });
    list.stop();
    many.stop();
  });

  it("may use Alice's ids for its own, and neither notices [RW-TENANT-2]", async () => {
    const before = await everything();
    const own = await ask(server.url, {
      method: "POST",
      path: "/v1/agent/runs",
      headers: bob.headers,
      body: { prompt: "go", producer: "external", lease_ms: 600_000, session_id: "ses_of_alice" },
    });
    const spawned = await ask(server.url, {
      method: "POST",
      path: runPath(own.body.run_id as string, "children"),
      headers: bob.headers,
      body: { prompt: "dig", child_id },
    });
    expect([spawned.status, spawned.body.run_id]).toEqual([201, child_id]);
    const ended = await ask(server.url, {
      method: "POST",
      path: runPath(child_id, "abort"),
      headers: bob.headers,
      body: {},
    });
    expect(ended.body).toMatchObject({ run_id: child_id, state: "aborted" });
    const erased = await ask(server.url, {
      method: "DELETE",
      path: `/v1/agent/runs/${own.body.run_id}`,
      headers: bob.headers,
    });
    expect(erased.status).toBe(204);
    expect((await ask(server.url, { path: `/v1/agent/runs/${child_id}`, headers: bob.headers })).status).toBe(
      410,
    );
    expect(await everything()).toEqual(before);
  });
});
