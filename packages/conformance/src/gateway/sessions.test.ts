// A browser that is signed in: the cookie it gets, the pages it may be used from, and how it ends.

import { createKey, revokeKey, startGateway } from "@runwire/server";
import { beforeAll, describe, expect, it } from "vitest";
import { allScopes, type Key, newKey, newRun, questionFor, revoke, routesOf } from "./access.js";
import { type Answer, ask, type Headers, type Question } from "./asking.js";
import { runPath } from "./calls.js";
import { openReading } from "./readers.js";
import { forwardClock, underTest } from "./under-test.js";

const friend = "https://friend.example";
const clock = forwardClock();
const server = underTest(startGateway, { auth: "keys", origins: [friend] }, clock);
let alice: Key;
let bob: Key;
let run_id: string;

beforeAll(async () => {
  [alice, bob] = (await Promise.all([
    newKey(createKey, server, "alice"),
    newKey(createKey, server, "bob"),
  ])) as [Key, Key];
  run_id = await newRun(server.url, alice.headers);
});

interface Session {
  readonly cookie: { readonly Cookie: string };
  readonly csrf: string;
  /** What the console's own page sends with a change. */
  readonly own: { readonly Cookie: string; readonly Origin: string; readonly "X-Runwire-CSRF": string };
}

const signIn = (given: Partial<Question>): Promise<Answer> =>
  ask(server.url, { method: "POST", path: "/v1/session", body: {}, ...given });

async function signedIn(key: string = alice.key): Promise<Session> {
  const { status, body, headers } = await signIn({ body: { key } });
  expect(status).toBe(201);
  const [set = ""] = headers["set-cookie"] ?? [];
  const cookie = { Cookie: set.split(";")[0] ?? "" };
  const csrf = body.csrf as string;
  return { cookie, csrf, own: { ...cookie, Origin: server.url, "X-Runwire-CSRF": csrf } };
}

const session = (headers: Headers): Promise<Answer> => ask(server.url, { path: "/v1/session", headers });
const pause = (headers: Headers): Promise<Answer> =>
  ask(server.url, { method: "POST", path: runPath(run_id, "pause"), headers, body: {} });

describe("signing in", () => {
  it("gives a cookie that scripts and other sites cannot use, and tells who it is [RW-SESSION-1]", async () => {
    for (const given of [
      { body: { key: alice.key } },
      { headers: alice.headers },
      { body: { key: alice.key }, headers: { Origin: server.url } },
    ]) {
      const { status, headers, body, text } = await signIn(given);
      expect([status, body]).toMatchObject([201, { auth: "keys", tenant: "alice", scopes: [...allScopes] }]);
      expect(headers["set-cookie"]).toHaveLength(1);
      const [cookie = ""] = headers["set-cookie"] ?? [];
      expect(cookie).toMatch(
        /^runwire_session=ses_[A-Za-z0-9_-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=43200$/,
      );
      // The page is told the word, not the secret.
      expect(text).not.toContain(cookie.split(/[=;]/)[1]);
      expect(text).not.toContain(alice.key);
      expect(headers["cache-control"]).toBe("no-store");
      const told = await session({ Cookie: cookie.split(";")[0] ?? "" });
      expect(told.body).toEqual(body);
    }
    const [one, another] = [await signedIn(), await signedIn()];
    expect(one.cookie).not.toEqual(another.cookie);
    expect(one.csrf).not.toBe(another.csrf);
  });

  it("behind TLS gives a cookie that is bound to the host and never leaves TLS [RW-SESSION-1]", async () => {
    const Origin = server.url.replace("http:", "https:");
    const { status, headers } = await signIn({ body: { key: alice.key }, headers: { Origin } });
    expect(status).toBe(201);
    const [cookie = ""] = headers["set-cookie"] ?? [];
    expect(cookie).toMatch(
      /^__Host-runwire_session=ses_\S+; Path=\/; HttpOnly; SameSite=Strict; Max-Age=43200; Secure$/,
    );
    const [name = ""] = cookie.split(";");
    expect((await session({ Cookie: name })).status).toBe(200);
    // A sibling of the host can set a cookie without the prefix, and have it sent first.
    const planted = (await signedIn(bob.key)).cookie.Cookie;
    for (const Cookie of [`${planted}; ${name}`, `${name}; ${planted}`]) {
      expect((await session({ Cookie })).body.tenant).toBe("alice");
    }
  });

  it("is refused without a good key, and to the page of another site [RW-SESSION-4]", async () => {
    for (const given of [
      {},
      { body: { key: "x" } },
      { body: { key: `${alice.key}x` } },
      { headers: { Authorization: "Basic eDp5" } },
      // A session begets no session.
      { headers: (await signedIn()).own },
    ]) {
      const { status, headers } = await signIn(given);
      expect([given, status, headers["set-cookie"]]).toEqual([given, 401, undefined]);
    }
    for (const [Origin, code] of [
      ["https://evil.example", "KAI-REQUEST-HOST-0001"],
      ["null", "KAI-REQUEST-HOST-0001"],
      [friend, "KAI-AUTH-CSRF-0001"],
    ] as const) {
      const answer = await signIn({ body: { key: bob.key }, headers: { Origin } });
      expect([Origin, answer.status, answer.code]).toEqual([Origin, 403, code]);
      expect(answer.headers["set-cookie"]).toBe(undefined);
    }
    // Browsers that leave the origin out still say where a page is from.
    for (const type of ["application/json", "application/x-www-form-urlencoded"]) {
      const headers = { "Sec-Fetch-Site": "cross-site", "Content-Type": type };
      const sent = await signIn({ body: JSON.stringify({ key: bob.key }), headers });
      expect([sent.status, sent.headers["set-cookie"]]).toEqual([403, undefined]);
    }
  });
});

describe("a signed-in browser", () => {
  it("reads and follows runs with its cookie alone, from its own pages [RW-SESSION-2]", async () => {
    const { cookie } = await signedIn();
    for (const site of [
      {},
      { "Sec-Fetch-Site": "same-origin" },
      { "Sec-Fetch-Site": "none" },
      { Origin: server.url },
    ]) {
      const headers = { ...cookie, ...site };
      expect((await ask(server.url, { path: "/v1/agent/runs", headers })).status).toBe(200);
      for (const path of [
        runPath(run_id, "stream"),
        `/v1/agent/stream?runs=${run_id}`,
        "/v1/agent/runs/stream",
      ]) {
        expect((await ask(server.url, { path, headers })).status).toBe(200);
      }
    }
    for (const site of ["cross-site", "same-site", "x"]) {
      const { status, code } = await session({ ...cookie, "Sec-Fetch-Site": site });
      expect([site, status, code]).toEqual([site, 403, "KAI-AUTH-CSRF-0001"]);
    }
    const { status, code } = await session({ ...cookie, Origin: friend });
    expect([status, code]).toEqual([403, "KAI-AUTH-CSRF-0001"]);
  });

  it("changes nothing without its page's word, from any other origin, or from none [RW-SESSION-2]", async () => {
    const { own, csrf } = await signedIn();
    const theirs = await signedIn();
    const { Origin: _, ...noOrigin } = own;
    const { "X-Runwire-CSRF": __, ...noWord } = own;
    const refused: readonly Headers[] = [
      noOrigin,
      noWord,
      { ...own, "X-Runwire-CSRF": "" },
      { ...own, "X-Runwire-CSRF": `${csrf}x` },
      { ...own, "X-Runwire-CSRF": csrf.slice(0, -1) },
      { ...own, "X-Runwire-CSRF": [csrf, csrf] },
      { ...own, "X-Runwire-CSRF": theirs.csrf },
      { ...own, Origin: friend },
      { ...own, Origin: "https://evil.example" },
      { ...own, Origin: "null" },
      { ...own, Origin: server.url.replace(/:\d+$/, ":1") },
      { ...own, "Sec-Fetch-Site": "cross-site" },
      { ...own, "Sec-Fetch-Site": "same-site" },
    ];
    const changing = (await routesOf(server.url)).filter(
      ({ method, scope }) => method !== "GET" && scope !== "anyone",
    );
    expect(new Set(changing.map(({ method }) => method))).toEqual(new Set(["POST", "PUT", "DELETE"]));
    for (const route of changing) {
      for (const headers of refused) {
        const { status, code } = await ask(server.url, { ...questionFor(route, { id: run_id }), headers });
        expect([route.name, headers, status]).toEqual([route.name, headers, 403]);
        expect(code).toMatch(/^KAI-(AUTH-CSRF|REQUEST-HOST)-0001$/);
      }
    }
    expect(
      (await ask(server.url, { path: `/v1/agent/runs/${run_id}`, headers: alice.headers })).body.state,
    ).toBe("running");
    expect((await pause({ ...own, "Sec-Fetch-Site": "same-origin" })).status).toBe(202);
    expect((await session(own)).body.csrf).toBe(csrf);
  });

  it("opens a WebSocket only from its own origin [RW-SESSION-2]", async () => {
    const { cookie } = await signedIn();
    const upgrade = (headers: Headers): Promise<Answer> =>
      ask(server.url, { path: runPath(run_id, "stream"), headers, upgrade: true });
    for (const site of [
      {},
      { Origin: friend },
      { Origin: "https://evil.example" },
      { Origin: "null" },
      { Origin: server.url, "Sec-Fetch-Site": "cross-site" },
    ]) {
      expect([site, (await upgrade({ ...cookie, ...site })).status]).toEqual([site, 403]);
    }
    expect((await upgrade({ ...cookie, Origin: server.url })).status).toBe(101);
  });

  it("is who its key is, unless it sends another: a bearer wins [RW-SESSION-4]", async () => {
    const { cookie, own } = await signedIn();
    expect((await session({ ...cookie, ...bob.headers })).body).toMatchObject({ tenant: "bob", csrf: null });
    expect((await session({ ...cookie, Authorization: "Bearer x" })).status).toBe(401);
    // And then the page's word is not asked for, because nobody sends a bearer by accident.
    expect((await pause({ ...cookie, ...bob.headers })).status).toBe(404);
    const out = await ask(server.url, {
      method: "DELETE",
      path: "/v1/session",
      headers: { ...own, ...bob.headers },
    });
    expect(out.status).toBe(204);
    expect((await session(cookie)).status).toBe(200);
  });

  it("holds no more than its key", async () => {
    const reader = await newKey(createKey, server, "alice", { scopes: ["read"] });
    const { own } = await signedIn(reader.key);
    const { status, code } = await pause(own);
    expect([status, code]).toEqual([403, "KAI-AUTH-SCOPE-0001"]);
  });
});

describe("a session", () => {
  it("is over when it is signed out, and only it [RW-SESSION-3]", async () => {
    const [one, another] = [await signedIn(), await signedIn()];
    const out = await ask(server.url, { method: "DELETE", path: "/v1/session", headers: one.own });
    expect(out.status).toBe(204);
    expect(out.headers["set-cookie"]?.[0]).toMatch(/^runwire_session=; .*Max-Age=0$/);
    const { status, code } = await session(one.cookie);
    expect([status, code]).toEqual([401, "KAI-AUTH-TOKEN-0003"]);
    expect((await session(another.cookie)).status).toBe(200);
  });

  it("takes its streams with it when it is signed out, and no other [RW-SESSION-3]", async () => {
    const [one, another] = [await signedIn(), await signedIn()];
    const open = (cookie: Session["cookie"]) =>
      openReading("sse", server.url, runPath(run_id, "stream"), cookie);
    const [gone, stays] = [await open(one.cookie), await open(another.cookie)];
    await ask(server.url, { method: "DELETE", path: "/v1/session", headers: one.own });
    expect((await gone.ended).clean).toBe(true);
    expect(gone.heard.at(-1)?.event).toBe("closing");
    expect(stays.heard.some(({ event }) => event === "closing")).toBe(false);
    stays.stop();
  });

  it("takes its tickets with it when it is signed out, and their streams [RW-SESSION-3] [RW-TICKET-3]", async () => {
    const [one, another] = [await signedIn(), await signedIn()];
    const pathWith = async (headers: Headers): Promise<string> => {
      const asked = { method: "POST", path: "/v1/stream-tickets", headers, body: { run_id } };
      return `${runPath(run_id, "stream")}?ticket=${(await ask(server.url, asked)).body.ticket}`;
    };
    const [path, theirs] = [await pathWith(one.own), await pathWith(another.own)];
    const [gone, stays] = [
      await openReading("sse", server.url, path),
      await openReading("sse", server.url, theirs),
    ];
    await ask(server.url, { method: "DELETE", path: "/v1/session", headers: one.own });
    expect((await gone.ended).clean).toBe(true);
    expect(gone.heard.at(-1)?.event).toBe("closing");
    const { status, code } = await ask(server.url, { path });
    expect([status, code]).toEqual([401, "KAI-AUTH-TICKET-0001"]);
    expect(stays.heard.some(({ event }) => event === "closing")).toBe(false);
    expect((await ask(server.url, { path: theirs })).status).toBe(200);
    stays.stop();
  });

  it("outlives a restart [RW-SESSION-3]", async () => {
    const { cookie, own } = await signedIn();
    await server.restart();
    expect((await session(cookie)).body).toMatchObject({ tenant: "alice", csrf: own["X-Runwire-CSRF"] });
    expect((await pause(own)).status).toBe(202);
  });

  it("is over when its key is revoked, and its streams end [RW-SESSION-3]", async () => {
    const gone = await newKey(createKey, server, "alice");
    const { cookie } = await signedIn(gone.key);
    const reading = await openReading("sse", server.url, runPath(run_id, "stream"), cookie);
    await revoke(revokeKey, server, gone);
    expect((await session(cookie)).status).toBe(401);
    expect((await reading.ended).clean).toBe(true);
    expect(reading.heard.at(-1)?.event).toBe("closing");
  });

  it("is over after twelve hours, and never after its key [RW-SESSION-3]", async () => {
    const nowMs = clock.now();
    const lifeMs = 60_000;
    const brief = await newKey(createKey, server, "alice", { nowMs, lifeMs });
    const [long, short] = [await signedIn(), await signedIn(brief.key)];
    expect(Date.parse((await session(short.cookie)).body.expires_at as string)).toBe(nowMs + lifeMs);
    clock.pass(lifeMs);
    expect((await session(short.cookie)).status).toBe(401);
    expect((await session(long.cookie)).status).toBe(200);
    clock.pass(12 * 3600_000);
    expect((await session(long.cookie)).status).toBe(401);
  });
});
