// Stream tickets: what they open, for how long, and what they never open.

import { createKey, revokeKey, startGateway } from "@runwire/server";
import { EventSource } from "eventsource";
import { beforeAll, describe, expect, it } from "vitest";
import { faultProxy } from "../fault-proxy.js";
import {
  bearer,
  type Key,
  newKey,
  newRun,
  questionFor,
  revoke,
  routesOf,
  write,
  writeKey,
} from "./access.js";
import { type Answer, ask } from "./asking.js";
import { lifecycle, runPath, text } from "./calls.js";
import { openReading, readAll, type WireName, wireNames } from "./readers.js";
import { forwardClock, underTest } from "./under-test.js";

const clock = forwardClock();
const server = underTest(startGateway, { auth: "keys" }, clock);
let auth: "keys" | "open" = "keys";
const turned = underTest(startGateway, () => ({ auth }));
let alice: Key;
let bob: Key;
let run_id: string;
let other: string;
let foreign: string;

beforeAll(async () => {
  [alice, bob] = (await Promise.all([
    newKey(createKey, server, "alice"),
    newKey(createKey, server, "bob"),
  ])) as [Key, Key];
  run_id = await newRun(server.url, alice.headers);
  other = await newRun(server.url, alice.headers);
  foreign = await newRun(server.url, bob.headers);
});

const make = (body: unknown, headers = alice.headers): Promise<Answer> =>
  ask(server.url, { method: "POST", path: "/v1/stream-tickets", headers, body });

async function ticketFor(body: unknown, headers = alice.headers): Promise<string> {
  const { status, body: made, text: said } = await make(body, headers);
  expect([status, said]).toEqual([201, said]);
  return made.ticket as string;
}

const streamOf = (id: string, ticket: string): string => `${runPath(id, "stream")}?ticket=${ticket}`;

async function statusOf(path: string, upgrade = false): Promise<number> {
  const { status, code } = await ask(server.url, { path, upgrade });
  if (status === 401) expect(code).toBe("KAI-AUTH-TICKET-0001");
  return status;
}

describe("a stream ticket", () => {
  it("opens the streams of its runs, on every transport, without a header [RW-TICKET-1]", async () => {
    const ticket = await ticketFor({ run_id });
    for (const wire of wireNames) {
      const reading = await openReading(wire, server.url, streamOf(run_id, ticket));
      await reading.until(({ events }) => events.length > 0);
      expect(reading.events[0]).toMatchObject({ run_id, type: "run.lifecycle" });
      reading.stop();
    }
    const both = await ticketFor({ runs: [run_id, other] });
    for (const runs of [run_id, other, `${run_id},${other}:1`]) {
      expect(await statusOf(`/v1/agent/stream?runs=${runs}&ticket=${both}`)).toBe(200);
      expect(await statusOf(`/v1/agent/stream?runs=${runs}&ticket=${both}`, true)).toBe(101);
    }
    const list = await openReading(
      "sse",
      server.url,
      `/v1/agent/runs/stream?ticket=${await ticketFor({ run_list: true })}`,
    );
    await list.until(({ heard }) => heard.length > 0);
    expect(JSON.parse(list.heard[0]?.data ?? "")).toMatchObject({ runs: [{ run_id: other }, { run_id }] });
    list.stop();
  });

  it("opens no other run, no other route, and nothing that it is only a part of [RW-TICKET-1]", async () => {
    const ticket = await ticketFor({ run_id });
    const refused = [
      streamOf(other, ticket),
      streamOf(foreign, ticket),
      streamOf("run_unknown", ticket),
      `/v1/agent/stream?runs=${run_id},${other}&ticket=${ticket}`,
      `/v1/agent/stream?runs=${run_id},${foreign}&ticket=${ticket}`,
      `/v1/agent/runs/stream?ticket=${ticket}`,
    ];
    for (const path of refused) {
      for (const upgrade of [false, true]) expect([path, await statusOf(path, upgrade)]).toEqual([path, 401]);
    }
    for (const made of [{ run_list: true }, { inbox: true }, { session_id: "ses_1" }]) {
      expect(await statusOf(streamOf(run_id, await ticketFor(made)))).toBe(401);
    }
    const routes = (await routesOf(server.url)).filter(
      ({ takesTicket, scope }) => !takesTicket && scope !== "anyone",
    );
    expect(routes.length).toBeGreaterThan(20);
    for (const route of routes) {
      const { path, ...question } = questionFor(route, { id: run_id });
      const { status } = await ask(server.url, { ...question, path: `${path}?ticket=${ticket}` });
      expect([400, 401], route.name).toContain(status);
      // Nor by any other way than the address of a stream.
      for (const headers of [bearer(ticket), { Cookie: `runwire_session=${ticket}` }]) {
        expect([route.name, (await ask(server.url, { ...question, path, headers })).status]).toEqual([
          route.name,
          401,
        ]);
      }
    }
  });

  it("lets a WebSocket subscribe to its runs and to no others [RW-TICKET-1]", async () => {
    const ticket = await ticketFor({ run_id });
    const many = await openReading("websocket", server.url, `/v1/agent/stream?ticket=${ticket}`);
    const errors = (): readonly unknown[] =>
      many.heard
        .map(({ data }) => JSON.parse(data) as { type: string })
        .filter(({ type }) => type === "error");
    for (const id of [other, foreign, "run_unknown"]) many.send({ type: "subscribe", run_id: id });
    await many.until(() => errors().length === 3);
    for (const error of errors()) expect(error).toMatchObject({ error: { code: "KAI-AUTH-TICKET-0001" } });
    many.send({ type: "subscribe", run_id });
    await many.until(({ events }) => events.some((e) => e.type === "run.lifecycle"));
    expect(new Set(many.events.filter((e) => "id" in e).map((e) => e.run_id))).toEqual(new Set([run_id]));
    many.stop();
  });

  it("opens every run of its session, also a later one and a child, and no other [RW-TICKET-1]", async () => {
    const runOf = async (session_id: string): Promise<string> => {
      const body = { prompt: "go", producer: "external", lease_ms: 86_400_000, session_id };
      const made = await ask(server.url, {
        method: "POST",
        path: "/v1/agent/runs",
        headers: alice.headers,
        body,
      });
      return made.body.run_id as string;
    };
    const ticket = await ticketFor({ session_id: "ses_mine" });
    // Named as what has no session might be.
    const nobodys = await Promise.all(["null", "undefined"].map((session_id) => ticketFor({ session_id })));
    const [mine, next, theirs] = [await runOf("ses_mine"), await runOf("ses_mine"), await runOf("ses_other")];
    const child = `${mine}_child`;
    await write(server.url, alice.headers, mine, {
      type: "child.spawn",
      payload: { child_id: child, prompt: "help" },
    });
    for (const wire of wireNames) {
      const reading = await openReading(wire, server.url, streamOf(mine, ticket));
      await reading.until(({ events }) => events.length > 0);
      reading.stop();
    }
    for (const upgrade of [false, true]) {
      const opens = upgrade ? 101 : 200;
      const many = (runs: string): string => `/v1/agent/stream?runs=${runs}&ticket=${ticket}`;
      expect(await statusOf(many(`${mine},${next}:1,${child}`), upgrade)).toBe(opens);
      expect(await statusOf(many(`${mine},${theirs}`), upgrade)).toBe(401);
      for (const id of [theirs, foreign, "run_unknown"])
        expect(await statusOf(streamOf(id, ticket), upgrade)).toBe(401);
      for (const no of nobodys) expect(await statusOf(streamOf("run_unknown", no), upgrade)).toBe(401);
    }
    expect(await statusOf(`/v1/agent/runs/stream?ticket=${ticket}`)).toBe(401);
    // Another tenant may have a session of the same name.
    expect(await statusOf(streamOf(mine, await ticketFor({ session_id: "ses_mine" }, bob.headers)))).toBe(
      401,
    );

    const many = await openReading("websocket", server.url, `/v1/agent/stream?ticket=${ticket}`);
    many.send({ type: "subscribe", run_id: theirs });
    many.send({ type: "subscribe", run_id: next });
    await many.until(({ events }) => events.some((e) => e.type === "run.lifecycle"));
    const told = many.heard.map(({ data }) => JSON.parse(data) as { type: string; run_id: string });
    expect(told[0]).toMatchObject({
      type: "error",
      run_id: theirs,
      error: { code: "KAI-AUTH-TICKET-0001" },
    });
    expect(new Set(told.slice(1).map((e) => e.run_id))).toEqual(new Set([next]));
    many.stop();
  });

  it("is first used within a minute, and then until it ends, also on the next server [RW-TICKET-2]", async () => {
    const [late, used] = [await ticketFor({ run_id }), await ticketFor({ run_id, ttl_s: 7200 })];
    clock.pass(59_000);
    expect(await statusOf(streamOf(run_id, used))).toBe(200);
    clock.pass(2000);
    expect(await statusOf(streamOf(run_id, late))).toBe(401);
    expect(await statusOf(streamOf(run_id, used))).toBe(200);
    await server.restart();
    expect(await statusOf(streamOf(run_id, late))).toBe(401);
    expect(await statusOf(streamOf(run_id, used))).toBe(200);
    clock.pass(7200_000 - 61_000 - 60_000);
    for (const wire of ["sse", "websocket"] as const satisfies readonly WireName[]) {
      const reading = await openReading(wire, server.url, streamOf(run_id, used));
      await reading.until(({ events }) => events.length > 0);
      reading.stop();
    }
    clock.pass(61_000);
    expect(await statusOf(streamOf(run_id, used))).toBe(401);
  });

  it("that was refused has not been used [RW-TICKET-2]", async () => {
    const ticket = await ticketFor({ run_id });
    expect(await statusOf(streamOf(other, ticket))).toBe(401);
    clock.pass(61_000);
    expect(await statusOf(streamOf(run_id, ticket))).toBe(401);
  });

  it("says when it ends, and never lives longer than the key that made it [RW-TICKET-3]", async () => {
    const nowMs = clock.now();
    const lifeMs = 10 * 60_000;
    const brief = writeKey(createKey, server.folder, "alice", { lifeMs, nowMs });
    await expect.poll(async () => (await make({ run_id }, brief.headers)).status).toBe(201);
    const { body } = await make({ run_id, ttl_s: 3600 }, brief.headers);
    expect(Date.parse(body.expires_at as string)).toBe(nowMs + lifeMs);
    const usual = (await make({ run_id })).body as { expires_at: string; first_use_before: string };
    expect(Date.parse(usual.expires_at) - clock.now()).toBeGreaterThan(3_590_000);
    expect(Date.parse(usual.expires_at) - clock.now()).toBeLessThanOrEqual(3_600_000);
    expect(Date.parse(usual.first_use_before) - clock.now()).toBeLessThanOrEqual(60_000);
    const path = streamOf(run_id, body.ticket as string);
    const reading = await openReading("sse", server.url, path);
    clock.pass(lifeMs + 1000);
    expect(await statusOf(path)).toBe(401);
    expect((await reading.ended).clean).toBe(true);
    expect(reading.heard.at(-1)).toMatchObject({ event: "closing" });
  });

  it("ends with its key, and so does the stream it opened; others' go on [RW-TICKET-3]", async () => {
    const gone = await newKey(createKey, server, "alice");
    const [ticket, stays] = [await ticketFor({ run_id }, gone.headers), await ticketFor({ run_id })];
    const [reading, staying] = await Promise.all(
      [ticket, stays].map((one) => openReading("sse", server.url, streamOf(run_id, one))),
    );
    await revoke(revokeKey, server, gone);
    expect(await statusOf(streamOf(run_id, ticket))).toBe(401);
    expect(await reading?.ended).toEqual({ clean: true, code: null });
    await write(server.url, alice.headers, run_id, text("still"));
    await staying?.until(({ events }) => events.some((e) => e.type === "text.delta"));
    staying?.stop();
  });

  it("ends with its key also where the next server asks for none [RW-TICKET-3]", async () => {
    const key = await newKey(createKey, turned, "acme");
    const id = await newRun(turned.url, key.headers);
    const tickets = { method: "POST", path: "/v1/stream-tickets" };
    const made = await ask(turned.url, { ...tickets, headers: key.headers, body: { run_id: id } });
    const path = streamOf(id, made.body.ticket as string);
    expect((await ask(turned.url, { path })).status).toBe(200);
    auth = "open";
    await turned.restart();
    const refused = await ask(turned.url, { path });
    expect([refused.status, refused.code]).toEqual([401, "KAI-AUTH-TICKET-0001"]);
    const own = await newRun(turned.url, {});
    const open = await ask(turned.url, { ...tickets, body: { run_id: own } });
    expect((await ask(turned.url, { path: streamOf(own, open.body.ticket as string) })).status).toBe(200);
  });

  it("is made only for runs that can be read, with a life from a second to a day [RW-TICKET-4]", async () => {
    for (const body of [
      { run_id: "run_unknown" },
      { run_id: foreign },
      { runs: [run_id, "run_unknown"] },
      { runs: [run_id, foreign] },
      { run_id: "feed:alice:runs" },
    ]) {
      const { status, code } = await make(body);
      expect([body, status, code]).toEqual([body, 404, "KAI-RUN-MISSING-0001"]);
    }
    const wrong = [0, -1, 86_401, 1.5, "60", 1e99].map((ttl_s) => ({ run_id, ttl_s }));
    const many = { runs: Array.from({ length: 51 }, (_, i) => `run_${i}`) };
    for (const body of [
      ...wrong,
      many,
      {},
      { runs: [] },
      { run_id: "" },
      { run_list: false },
      { run_id, scope: "admin" },
    ]) {
      const { status, code } = await make(body);
      expect([body, status, code]).toEqual([body, 422, "KAI-REQUEST-BODY-0002"]);
    }
    for (const ttl_s of [1, 86_400]) expect((await make({ run_id, ttl_s })).status).toBe(201);
    const writer = await newKey(createKey, server, "alice", { scopes: ["write", "admin"] });
    expect((await make({ run_id }, writer.headers)).status).toBe(403);
    for (const no of ["", "tkt_", "tkt_unknown", alice.id])
      expect(await statusOf(streamOf(run_id, no))).toBe(401);
    const { status, code } = await ask(server.url, { path: streamOf(run_id, alice.key) });
    expect([status, code]).toEqual([400, "KAI-AUTH-URL-0001"]);
  });

  it("opens no more than reading, whatever its maker could do, and decides even beside a key [RW-TICKET-4]", async () => {
    const ticket = await ticketFor({ run_id });
    const { status } = await ask(server.url, { path: streamOf(other, ticket), headers: alice.headers });
    expect(status).toBe(401);
  });

  it("carries an EventSource through a cut connection to the end of its run [RW-TICKET-2]", async () => {
    const own = await newRun(server.url, alice.headers);
    const ticket = await ticketFor({ run_id: own });
    const { hostname: host, port } = new URL(server.url);
    const proxy = await faultProxy({ host, port: Number(port) });
    const source = new EventSource(proxy.url + streamOf(own, ticket));
    const heard: { seq: number; type: string }[] = [];
    const until = (count: number): Promise<void> =>
      expect.poll(() => heard.length).toBeGreaterThanOrEqual(count);
    source.onmessage = ({ data }) =>
      void heard.push(JSON.parse(data as string) as { seq: number; type: string });
    await until(1);
    clock.pass(90_000);
    proxy.cutAll("rst");
    await write(server.url, alice.headers, own, text("after the cut"));
    await proxy.reached("connections", 2);
    await until(2);
    await write(server.url, alice.headers, own, lifecycle("done"));
    await until(3);
    source.close();
    await proxy.close();
    expect(heard.map(({ seq }) => seq)).toEqual([1, 2, 3]);
    const whole = await readAll("ndjson", server.url, streamOf(own, ticket));
    expect(whole.events.map(({ type }) => type)).toEqual(heard.map(({ type }) => type));
  });
});
