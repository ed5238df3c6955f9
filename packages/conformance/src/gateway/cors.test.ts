// Pages of other origins: those on the list may call, exactly those, and every answer tells a browser to be careful.

import { createKey, startGateway } from "@runwire/server";
import { beforeAll, describe, expect, it } from "vitest";
import { type Key, newKey, newRun, questionFor, type RouteUnderTest, routesOf } from "./access.js";
import { type Answer, ask, type Question } from "./asking.js";
import { runPath } from "./calls.js";
import { rawAnswer } from "./raw-http.js";
import { underTest } from "./under-test.js";

const app = "https://app.example";
const local = "http://localhost:5173";
const server = underTest(startGateway, { auth: "keys", origins: [app, local] });
const closed = underTest(startGateway, { auth: "keys" });
let routes: readonly RouteUnderTest[];
let alice: Key;
let run_id: string;

beforeAll(async () => {
  routes = await routesOf(server.url);
  alice = await newKey(createKey, server, "alice");
  run_id = await newRun(server.url, alice.headers);
});

const preflight = (path: string, origin: string, method: string): Promise<Answer> =>
  ask(server.url, {
    method: "OPTIONS",
    path,
    headers: { Origin: origin, "Access-Control-Request-Method": method },
  });

const words = (value: string | undefined): readonly string[] =>
  (value ?? "").split(",").map((word) => word.trim().toLowerCase());

/** Looks like one of the list to whoever compares carelessly. */
const lookalikes = [
  "null",
  "https://evil.example",
  "http://app.example",
  "https://app.example:8443",
  "https://app.example.evil.example",
  "https://evil-app.example",
  "https://evil.example/https://app.example",
  "https://sub.app.example",
  "https://APP.example",
  "HTTPS://app.example",
  "https://app.example/",
  "https://app.example.",
  " https://evil.example https://app.example",
  "https://app.example, https://evil.example",
  "http://localhost:5174",
  "http://localhost",
  "*",
  "",
];

describe("a page of an origin on the list", () => {
  it("may ask for every route with all that it understands, and without cookies [RW-CORS-1]", async () => {
    for (const route of routes) {
      for (const origin of [app, local]) {
        const { path } = questionFor(route, { id: run_id });
        const { status, headers, text } = await preflight(path, origin, route.method);
        expect([route.name, status, text]).toEqual([route.name, 204, ""]);
        expect(headers["access-control-allow-origin"]).toBe(origin);
        expect(words(headers["access-control-allow-methods"])).toContain(route.method.toLowerCase());
        const allowed = words(headers["access-control-allow-headers"]);
        const understood = ["Authorization", "Content-Type", "X-Request-Id", ...route.headers].map((name) =>
          name.toLowerCase(),
        );
        // A browser lets a page ask for one simple range by itself.
        for (const name of understood.filter((one) => one !== "range"))
          expect([route.name, allowed]).toEqual([route.name, expect.arrayContaining([name])]);
        expect(allowed).not.toContain("*");
        expect(headers["access-control-allow-credentials"]).toBe(undefined);
        expect(words(headers.vary)).toContain("origin");
      }
    }
  });

  it("may read the answer, good or bad, page or stream, and what its headers say [RW-CORS-1]", async () => {
    const stream = runPath(run_id, "stream");
    const questions: readonly (readonly [number, Question])[] = [
      [200, { path: "/livez" }],
      [200, { path: "/v1/agent/runs", headers: alice.headers }],
      [200, { path: stream, headers: alice.headers }],
      [200, { path: stream, headers: { ...alice.headers, Accept: "application/x-ndjson" } }],
      [200, { path: `/v1/agent/stream?runs=${run_id}`, headers: alice.headers }],
      [200, { path: "/v1/agent/runs/stream", headers: alice.headers }],
      [400, { path: "/livez?token=x" }],
      [401, { path: "/v1/agent/runs" }],
      [401, { path: stream }],
      [404, { path: "/nowhere" }],
      [404, { path: runPath("run_unknown", "stream"), headers: alice.headers }],
      [405, { method: "PUT", path: "/livez" }],
      [422, { method: "POST", path: "/v1/stream-tickets", headers: alice.headers, body: {} }],
    ];
    for (const [status, question] of questions) {
      const answer = await ask(server.url, { ...question, headers: { ...question.headers, Origin: app } });
      expect([question.path, answer.status]).toEqual([question.path, status]);
      expect([question.path, answer.headers["access-control-allow-origin"]]).toEqual([question.path, app]);
      expect(words(answer.headers["access-control-expose-headers"])).toEqual(
        expect.arrayContaining([
          "location",
          "retry-after",
          "runwire-request-id",
          "idempotency-replayed",
          "etag",
        ]),
      );
      expect(answer.headers["access-control-allow-credentials"]).toBe(undefined);
      expect(words(answer.headers.vary)).toContain("origin");
    }
    // A cache must not give one page's answer to another.
    expect(words((await ask(server.url, { path: "/livez" })).headers.vary)).toContain("origin");
    const socket = { path: stream, headers: { ...alice.headers, Origin: app }, upgrade: true };
    expect((await ask(server.url, socket)).status).toBe(101);
  });
});

describe("a page of any other origin", () => {
  it("is refused, however it is spelled, whatever it asks and whatever it holds [RW-CORS-2]", async () => {
    for (const origin of [...lookalikes, server.url.replace(/\d+$/, "1")]) {
      for (const question of [
        { path: "/livez" },
        { path: "/v1/agent/runs", headers: alice.headers },
        { path: runPath(run_id, "stream"), headers: alice.headers },
        { path: runPath(run_id, "stream"), headers: alice.headers, upgrade: true },
        { method: "POST", path: runPath(run_id, "pause"), headers: alice.headers, body: {} },
        { method: "OPTIONS", path: "/v1/agent/runs" },
      ] satisfies readonly Question[]) {
        const asked: Question = question;
        const headers = { ...asked.headers, Origin: origin };
        const { status, code, headers: told } = await ask(server.url, { ...asked, headers });
        const facts = [origin, asked.path, status, code];
        expect(facts).toEqual([origin, asked.path, 403, "KAI-REQUEST-HOST-0001"]);
        expect([facts, told["access-control-allow-origin"]]).toEqual([facts, undefined]);
      }
    }
  });

  it("is every one, where there is no list [RW-CORS-2]", async () => {
    for (const origin of [app, "null"]) {
      const { status, headers } = await ask(closed.url, { path: "/livez", headers: { Origin: origin } });
      expect([status, headers["access-control-allow-origin"]]).toEqual([403, undefined]);
    }
    const own = await ask(closed.url, { path: "/livez", headers: { Origin: closed.url } });
    expect([own.status, own.headers["access-control-allow-origin"]]).toEqual([200, undefined]);
  });
});

describe("every answer", () => {
  const guards = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "content-security-policy": expect.stringContaining("default-src 'none'") as string,
  };

  it("tells a browser to run, embed and tell nothing [RW-CORS-3]", async () => {
    const stream = runPath(run_id, "stream");
    const some: readonly Question[] = [
      ...routes.map((route) => questionFor(route, { id: "run_unknown" })),
      ...routes.map((route) => ({ ...questionFor(route, { id: "run_unknown" }), headers: alice.headers })),
      { path: stream, headers: alice.headers },
      { path: `/v1/agent/stream?runs=${run_id}`, headers: alice.headers },
      { path: "/nowhere" },
      { method: "PUT", path: "/livez" },
      { method: "OPTIONS", path: "/v1/agent/runs" },
      { path: "/livez?token=x" },
      { path: "/livez", headers: { Origin: "https://evil.example" } },
      { path: stream, upgrade: true },
      { path: "/livez", headers: { Origin: "https://evil.example" }, upgrade: true },
      { path: "/livez", headers: { "X-Large": "x".repeat(20_000) } },
    ];
    for (const question of some) {
      const { status, headers } = await ask(server.url, question);
      expect(status, question.path).toBeLessThan(500);
      expect([question, headers]).toEqual([question, expect.objectContaining(guards)]);
    }
    const broken = await rawAnswer(server.url, "HELLO\r\n\r\n");
    for (const name of Object.keys(guards)) expect(broken.toLowerCase()).toContain(`${name}: `);
    expect(broken.toLowerCase()).toContain("cache-control: no-store\r\n");
    const refused = await ask(server.url, { path: stream, upgrade: true });
    expect([refused.status, refused.headers["cache-control"]]).toEqual([401, "no-store"]);
  });

  it("does so whatever the request is called [RW-CORS-1] [RW-CORS-3]", async () => {
    const names = ["X-Content-Type-Options", "Referrer-Policy", "Cross-Origin-Resource-Policy", "Vary"];
    for (const id of [...names, "Content-Security-Policy", "Access-Control-Allow-Origin"]) {
      const { headers } = await ask(server.url, {
        path: "/livez",
        headers: { Origin: app, "X-Request-Id": id },
      });
      const told = { "runwire-request-id": id, "access-control-allow-origin": app, vary: "Origin" };
      expect(headers).toMatchObject({ ...guards, ...told });
    }
  });
});
