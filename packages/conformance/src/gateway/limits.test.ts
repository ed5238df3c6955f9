// Every limit that an operator can set: what is over it is refused with its name and stores nothing, the others feel
// nothing of it, and whoever waits as long as told goes on.

import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Event, Facts } from "@runwire/protocol";
import {
  type Clock,
  createKey,
  type Gateway,
  type Settings,
  startGateway,
  systemClock,
} from "@runwire/server";
import { readKeys, revokeKey, scopes } from "@runwire/server/operate";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { call, codeOf, lifecycle, messageOf, type Reply, runPath, say, text } from "./calls.js";
import { rawAnswer, rawConnection, requestText, upgradeLines } from "./raw-http.js";
import { openReading, type Reading, streamPath } from "./readers.js";

let folder: string;
let gateway: Gateway | undefined;
let aheadMs = 0;
/** Goes on by itself, and further when told to. */
const clock: Clock = { now: systemClock.now, monotonic: () => systemClock.monotonic() + aheadMs };

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "runwire-limits-"));
});

afterEach(async () => {
  await gateway?.close();
  gateway = undefined;
  rmSync(folder, { recursive: true });
});

type Headers = { readonly [name: string]: string };

interface Tenant {
  readonly bearer: Headers;
  call(method: string, path: string, body?: unknown, headers?: Headers): Promise<Reply>;
  run(): Promise<string>;
  append(run_id: string, body: unknown, headers?: Headers): Promise<Reply>;
  events(run_id: string): Promise<readonly Event[]>;
  stream(run_id: string): Promise<Reading>;
}

const lines: Headers = { "Content-Type": "application/x-ndjson" };

/** A server with these limits, and two of its tenants. */
async function served(limits: Partial<Settings>): Promise<{ url: string; acme: Tenant; globex: Tenant }> {
  const made = ["acme", "globex"].map((tenant) => {
    const wish = { tenant, scopes: [...scopes], name: "", lifeMs: undefined };
    return createKey(join(folder, "keys.json"), wish, Date.now()).key;
  });
  gateway = await startGateway(
    { port: 0, dataFolder: folder, durability: "os", auth: "keys", ...limits },
    clock,
  );
  const { url } = gateway;
  const [acme, globex] = made.map((key): Tenant => {
    const bearer = { Authorization: `Bearer ${key}` };
    const ask: Tenant["call"] = (method, path, body, headers) =>
      call(url, method, path, body, { ...bearer, ...headers });
    return {
      bearer,
      call: ask,
      async run() {
        const made = await ask("POST", "/v1/agent/runs", { producer: "external", lease_ms: 600_000 });
        if (made.status !== 201) throw new Error(made.text);
        return made.body.run_id as string;
      },
      append: (run_id, body, headers) => ask("POST", runPath(run_id, "events"), body, headers),
      async events(run_id) {
        const page = await ask("GET", runPath(run_id, "events?dialect=runwire&detail=full&limit=1000"));
        if (page.status !== 200) throw new Error(page.text);
        return page.body.events as readonly Event[];
      },
      stream: (run_id) => openReading("sse", url, streamPath({ run_id }), bearer),
    };
  }) as [Tenant, Tenant];
  return { url, acme, globex };
}

const custom = (value: unknown) => say("custom", { value });
/** `levels` objects in one another, of which the payload is one. */
const deep = (levels: number): Facts =>
  JSON.parse(`${'{"a":'.repeat(levels - 1)}{}${"}".repeat(levels - 1)}`) as Facts;
const wide = (members: number): Facts =>
  Object.fromEntries(Array.from({ length: members }, (_, i) => [`k${i}`, i]));

interface SizeCase {
  readonly limits: Partial<Settings>;
  readonly status: number;
  readonly code: string;
  readonly names: RegExp;
  /** The largest that passes, and one more. */
  fits(acme: Tenant, run_id: string): Promise<Reply>;
  exceeds(acme: Tenant, run_id: string): Promise<Reply>;
}

const tooLarge = { status: 413, code: "KAI-REQUEST-SIZE-0001" };
const malformed = { status: 422, code: "KAI-STREAM-PROTO-0001" };
const steered = (bytes: number) => `{"text":"${"x".repeat(bytes - 11)}"}`;
/** A draft whose payload has as many bytes. */
const sized = (bytes: number) => custom("x".repeat(bytes - 12));
const padded = (bytes: number) => `[${JSON.stringify(text("x"))}]`.padEnd(bytes);
const lineOf = (bytes: number) => JSON.stringify(text("x")).padEnd(bytes);

const sizes: { readonly [what: string]: SizeCase } = {
  "a body": {
    limits: { bodyBytesMax: 2000 },
    ...tooLarge,
    names: /a body may have 2000 bytes/,
    fits: (acme, run_id) => acme.call("POST", runPath(run_id, "steer"), steered(2000)),
    exceeds: (acme, run_id) => acme.call("POST", runPath(run_id, "steer"), steered(2001)),
  },
  "an event": {
    limits: { eventBytesMax: 2000 },
    ...tooLarge,
    names: /event 2: an event may have 2000 bytes/,
    fits: (acme, run_id) => acme.append(run_id, [text("x"), sized(2000)]),
    exceeds: (acme, run_id) => acme.append(run_id, [text("x"), sized(2001)]),
  },
  "a batch, in events,": {
    limits: { batchEventsMax: 5 },
    ...tooLarge,
    names: /a batch may have 5 events/,
    fits: (acme, run_id) => acme.append(run_id, Array(5).fill(text("x"))),
    exceeds: (acme, run_id) => acme.append(run_id, Array(6).fill(text("x"))),
  },
  "a batch of lines, in events,": {
    limits: { batchEventsMax: 5 },
    ...tooLarge,
    names: /a batch may have 5 events/,
    fits: (acme, run_id) => acme.append(run_id, `${lineOf(60)}\n`.repeat(5), lines),
    exceeds: (acme, run_id) => acme.append(run_id, `${lineOf(60)}\n`.repeat(6), lines),
  },
  "a batch, in bytes,": {
    limits: { batchBytesMax: 2000 },
    ...tooLarge,
    names: /a body may have 2000 bytes/,
    fits: (acme, run_id) => acme.append(run_id, padded(2000)),
    exceeds: (acme, run_id) => acme.append(run_id, padded(2001)),
  },
  "a line": {
    limits: { lineBytesMax: 2000 },
    ...tooLarge,
    names: /a line is longer than 2000/,
    fits: (acme, run_id) => acme.append(run_id, `${lineOf(60)}\n${lineOf(2000)}`, lines),
    exceeds: (acme, run_id) => acme.append(run_id, `${lineOf(60)}\n${lineOf(2001)}`, lines),
  },
  "the depth of an event": {
    limits: { jsonDepthMax: 8 },
    ...malformed,
    names: /event 2: `payload` is nested deeper than 8/,
    fits: (acme, run_id) => acme.append(run_id, [text("x"), say("custom", deep(8))]),
    exceeds: (acme, run_id) => acme.append(run_id, [text("x"), say("custom", deep(9))]),
  },
  "the depth of a line": {
    limits: { jsonDepthMax: 8 },
    ...malformed,
    names: /line 2: `payload` is nested deeper than 8/,
    fits: (acme, run_id) =>
      acme.append(run_id, `${lineOf(1)}\n${JSON.stringify(say("custom", deep(8)))}`, lines),
    exceeds: (acme, run_id) =>
      acme.append(run_id, `${lineOf(1)}\n${JSON.stringify(say("custom", deep(9)))}`, lines),
  },
  "the members of an event": {
    limits: { jsonKeysMax: 20 },
    ...malformed,
    names: /event 2: `payload` has more than 20 keys/,
    fits: (acme, run_id) => acme.append(run_id, [text("x"), say("custom", wide(20))]),
    exceeds: (acme, run_id) => acme.append(run_id, [text("x"), say("custom", wide(21))]),
  },
  "the depth of a body": {
    limits: { jsonDepthMax: 8 },
    status: 422,
    code: "KAI-REQUEST-BODY-0002",
    names: /the body is nested deeper than 8/,
    fits: (acme) => acme.call("POST", "/v1/agent/runs", { producer: "external", metadata: deep(7) }),
    exceeds: (acme) => acme.call("POST", "/v1/agent/runs", { producer: "external", metadata: deep(8) }),
  },
  "the members of a body": {
    limits: { jsonKeysMax: 20 },
    status: 422,
    code: "KAI-REQUEST-BODY-0002",
    names: /the body has more than 20 keys/,
    fits: (acme) => acme.call("POST", "/v1/agent/runs", { producer: "external", metadata: wide(18) }),
    exceeds: (acme) => acme.call("POST", "/v1/agent/runs", { producer: "external", metadata: wide(19) }),
  },
};

/** `{"a":"…"}` of as many bytes, in characters of three. */
const bulk = (bytes: number): Facts => ({ a: "€".repeat((bytes - 8) / 3) });

describe("the limit of", () => {
  it("a run's metadata is 413 with its name [RW-LIMIT-1]", async () => {
    const { acme } = await served({});
    const created = (metadata: Facts) =>
      acme.call("POST", "/v1/agent/runs", { producer: "external", metadata });
    const bytesMax = 64 * 1024;
    const fits = bulk(bytesMax);
    expect(Buffer.byteLength(JSON.stringify(fits))).toBe(bytesMax - 2);
    expect((await created(fits)).status).toBe(201);
    const runs = (await acme.call("GET", "/v1/agent/runs")).text;
    const refused = await created(bulk(bytesMax + 3));
    expect([refused.status, codeOf(refused)]).toEqual([413, "KAI-REQUEST-SIZE-0001"]);
    expect(messageOf(refused)).toContain(`\`metadata\` may have ${bytesMax} bytes`);
    expect((await acme.call("GET", "/v1/agent/runs")).text).toBe(runs);
  });

  it.each(Object.entries(sizes))(
    "%s is the operator's, and what is over it stores nothing [RW-LIMIT-1]",
    async (_, { limits, status, code, names, fits, exceeds }) => {
      const { acme, globex } = await served(limits);
      const [run_id, other] = [await acme.run(), await globex.run()];
      const passed = await fits(acme, run_id);
      expect([passed.text, Math.floor(passed.status / 100)]).toEqual([passed.text, 2]);
      const before = await acme.events(run_id);
      const runs = (await acme.call("GET", "/v1/agent/runs")).text;
      const refused = await exceeds(acme, run_id);
      expect([refused.status, codeOf(refused)]).toEqual([status, code]);
      expect(messageOf(refused)).toMatch(names);
      expect(await acme.events(run_id)).toEqual(before);
      expect((await acme.call("GET", "/v1/agent/runs")).text).toBe(runs);
      // Whoever is refused may go on, and so may the others.
      expect((await acme.append(run_id, [text("y")])).status).toBe(200);
      expect((await globex.append(other, [text("y")])).status).toBe(200);
    },
  );

  it("a body that needs no credential is 413 with its name, however much others may send [RW-LIMIT-1]", async () => {
    const { url, acme } = await served({});
    const key = acme.bearer.Authorization?.slice("Bearer ".length);
    const signIn = (bytes: number) =>
      call(url, "POST", "/v1/session", JSON.stringify({ key }).padEnd(bytes), {
        "Content-Type": "application/json",
      });
    expect((await signIn(16 * 1024)).status).toBe(201);
    const refused = await signIn(16 * 1024 + 1);
    expect([refused.status, codeOf(refused)]).toEqual([413, "KAI-REQUEST-SIZE-0001"]);
    expect(messageOf(refused)).toContain("a body may have 16384 bytes");
  });

  it("a body holds where its length was not told, too [RW-LIMIT-1]", async () => {
    const { url, acme } = await served({ bodyBytesMax: 2000 });
    const run_id = await acme.run();
    const raw = await rawConnection(url);
    const bearer = `Authorization: ${acme.bearer.Authorization}`;
    raw.write(requestText(url, "POST", runPath(run_id, "steer"), [bearer, "Transfer-Encoding: chunked"]));
    // It is refused before it ends.
    for (let sent = 0; sent <= 2000; sent += 500) raw.write(`1f4\r\n${"x".repeat(500)}\r\n`);
    await raw.until((answer) => answer.includes("a body may have 2000 bytes"));
    expect(raw.text).toMatch(/^HTTP\/1\.1 413 /);
    raw.socket.destroy();
  });

  it("headers is 431 with its name [RW-LIMIT-1]", async () => {
    const { url } = await served({ headerBytesMax: 2000 });
    const ask = (bytes: number) =>
      rawAnswer(url, requestText(url, "GET", "/livez", [`X: ${"x".repeat(bytes)}`, "Connection: close"]));
    expect(await ask(1500)).toMatch(/^HTTP\/1\.1 200 /);
    const refused = await ask(2500);
    expect(refused).toMatch(/^HTTP\/1\.1 431 /);
    expect(refused).toContain("headers may have 2000 bytes");
  });

  it("a line, an event and its members ends a session at that line; those before it stay [RW-LIMIT-1]", async () => {
    const { url, acme } = await served({ lineBytesMax: 3000, eventBytesMax: 2000, jsonDepthMax: 8 });
    const bearer = `Authorization: ${acme.bearer.Authorization}`;
    for (const [bad, names] of [
      [lineOf(3001), /line 3: a line is longer than 3000/],
      [JSON.stringify(sized(2001)), /line 3: an event may have 2000 bytes/],
      [JSON.stringify(say("custom", deep(9))), /line 3: `payload` is nested deeper than 8/],
    ] as const) {
      const run_id = await acme.run();
      const raw = await rawConnection(url);
      const head = [bearer, "Transfer-Encoding: chunked", "Content-Type: application/x-ndjson"];
      const body = `${lineOf(60)}\n${lineOf(60)}\n${bad}\n${lineOf(60)}\n`;
      const chunk = `${Buffer.byteLength(body).toString(16)}\r\n${body}\r\n`;
      raw.write(requestText(url, "POST", runPath(run_id, "events"), head) + chunk);
      await raw.until((answer) => answer.includes('"error"') && answer.includes('"retry"'));
      expect(raw.text).toMatch(names);
      expect(raw.text).toContain('{"last_pos":4}');
      expect(await acme.events(run_id)).toHaveLength(4);
      raw.socket.destroy();
    }
  });
});

/** Refused for now: with the name of the limit, and for how long. */
function expectLater(reply: Reply, code: string, names: RegExp): number {
  expect([reply.status, codeOf(reply)]).toEqual([429, code]);
  expect(messageOf(reply)).toMatch(names);
  expect((reply.body.error as { retry?: boolean }).retry).toBe(true);
  const seconds = Number(reply.headers.get("retry-after"));
  expect(seconds).toBeGreaterThanOrEqual(1);
  return seconds * 1000;
}

describe("a tenant", () => {
  it.each([
    ["asks", "GET", "/v1/agent/runs", undefined],
    ["signs in", "POST", "/v1/session", {}],
  ])(
    "that %s too fast is told when to come back, and is let in then [RW-LIMIT-2]",
    async (_, method, path, body) => {
      const { acme, globex } = await served({ requestsPerSecond: 20 });
      let refused: Reply | undefined;
      for (let i = 0; i < 500 && refused === undefined; i++) {
        const reply = await acme.call(method, path, body);
        if (reply.status >= 300) refused = reply;
      }
      aheadMs += expectLater(refused as Reply, "KAI-LIMIT-RATE-0001", /20 requests a second are allowed/);
      expect((await acme.call("GET", "/v1/agent/runs")).status).toBe(200);
      for (let i = 0; i < 10; i++) expect((await globex.call("GET", "/v1/agent/runs")).status).toBe(200);
      // What asks for no credential costs none of it.
      for (let i = 0; i < 100; i++) expect((await acme.call("GET", "/livez")).status).toBe(200);
    },
  );

  it("that appends too much is told when to come back; nothing of it is stored until then [RW-LIMIT-2]", async () => {
    const { acme, globex } = await served({ eventsPerSecond: 10 });
    const [run_id, other] = [await acme.run(), await globex.run()];
    // More than a second's worth, once: a large batch is never impossible.
    const large = Array.from({ length: 500 }, (_, i) => custom(i));
    expect((await acme.append(run_id, large)).status).toBe(200);
    const before = await acme.events(run_id);
    for (const body of [[custom("late")], `${JSON.stringify(custom("late"))}\n`]) {
      const kind = typeof body === "string" ? lines : undefined;
      const refused = await acme.append(run_id, body, kind);
      const waitMs = expectLater(refused, "KAI-LIMIT-RATE-0001", /10 events a second are allowed/);
      expect(waitMs).toBeGreaterThan(45_000);
    }
    expect(await acme.events(run_id)).toEqual(before);
    expect((await globex.append(other, [custom("in time")])).status).toBe(200);
    const refused = await acme.append(run_id, [custom("late")]);
    aheadMs += expectLater(refused, "KAI-LIMIT-RATE-0001", /10 events/);
    expect((await acme.append(run_id, [custom("late")])).status).toBe(200);
    expect(await acme.events(run_id)).toHaveLength(before.length + 1);
  });

  it("whose session is too fast is read more slowly, and loses nothing [RW-LIMIT-2]", async () => {
    const { url, acme, globex } = await served({ eventsPerSecond: 100 });
    const [run_id, other] = [await acme.run(), await globex.run()];
    const raw = await rawConnection(url);
    const head = ["Transfer-Encoding: chunked", "Content-Type: application/x-ndjson"];
    const bearer = `Authorization: ${acme.bearer.Authorization}`;
    raw.write(requestText(url, "POST", runPath(run_id, "events"), [bearer, ...head]));
    const send = (body: string) => raw.write(`${body.length.toString(16)}\r\n${body}\r\n`);
    send(`${JSON.stringify(custom("x"))}\n`.repeat(120));
    await raw.until((answer) => answer.includes('"last_pos":122'));
    // The bucket is some 20 below zero now.
    const beganMs = performance.now();
    send(`${JSON.stringify(custom("y"))}\n`);
    expect((await globex.append(other, [custom("in time")])).status).toBe(200);
    await raw.until((answer) => answer.includes('"last_pos":123'));
    expect(performance.now() - beganMs).toBeGreaterThan(50);
    raw.write("0\r\n\r\n");
    await raw.until((answer) => answer.endsWith("0\r\n\r\n"));
    expect(raw.text).not.toContain("error");
    expect(await acme.events(run_id)).toHaveLength(123);
    raw.socket.destroy();
  });

  it("whose session waits until it may append hears that its key is over, and that the server leaves", async () => {
    const { url, acme, globex } = await served({ eventsPerSecond: 1 });
    const sessions = [];
    for (const tenant of [acme, globex]) {
      const run_id = await tenant.run();
      const raw = await rawConnection(url);
      const head = ["Transfer-Encoding: chunked", "Content-Type: application/x-ndjson"];
      const bearer = `Authorization: ${tenant.bearer.Authorization}`;
      raw.write(requestText(url, "POST", runPath(run_id, "events"), [bearer, ...head]));
      const send = (body: string) => raw.write(`${body.length.toString(16)}\r\n${body}\r\n`);
      send(`${JSON.stringify(custom("x"))}\n`.repeat(500));
      await raw.until((answer) => answer.includes('"last_pos":502'));
      // It may be stored in some minutes.
      send(`${JSON.stringify(custom("y"))}\n`);
      sessions.push(raw);
    }
    const [revoked, left] = sessions as [(typeof sessions)[0], (typeof sessions)[0]];
    const keys = join(folder, "keys.json");
    const key = readKeys(keys).find(({ tenant }) => tenant === "acme");
    revokeKey(keys, key?.id ?? "", Date.now());
    await revoked.until((answer) => answer.includes("KAI-AUTH-TOKEN-0003"));
    const closing = gateway?.close();
    await left.until((answer) => answer.includes("KAI-STREAM-LEAVING-0001"));
    await closing;
  });

  it("whose socket is too fast is read more slowly, and gets every answer [RW-LIMIT-2]", async () => {
    const { url, acme, globex } = await served({ requestsPerSecond: 50 });
    const other = await globex.run();
    const raw = await rawConnection(url);
    raw.write(
      requestText(url, "GET", "/v1/loom", [`Authorization: ${acme.bearer.Authorization}`, ...upgradeLines]),
    );
    await raw.until((answer) => answer.includes("101"));
    const ping = (id: string): Buffer => {
      const message = Buffer.from(JSON.stringify({ type: "ping", id }));
      return Buffer.concat([Buffer.from([0x81, 0x80 | message.length, 0, 0, 0, 0]), message]);
    };
    const beganMs = performance.now();
    raw.socket.write(Buffer.concat(Array.from({ length: 70 }, (_, i) => ping(`p${i}`))));
    expect((await globex.append(other, [custom("in time")])).status).toBe(200);
    await raw.until((answer) => answer.includes('"p69"'));
    // Some 20 more than a second's worth.
    expect(performance.now() - beganMs).toBeGreaterThan(300);
    expect(raw.text.match(/"pong"/g)).toHaveLength(70);
    raw.socket.destroy();
  });

  it("counts the messages on a socket that takes none [RW-LIMIT-2]", async () => {
    const { url, acme } = await served({ requestsPerSecond: 50 });
    const raw = await rawConnection(url);
    const path = streamPath({ run_id: await acme.run() });
    raw.write(
      requestText(url, "GET", path, [`Authorization: ${acme.bearer.Authorization}`, ...upgradeLines]),
    );
    await raw.until((answer) => answer.includes("101"));
    const frame = (opcode: number, said: string): Buffer =>
      Buffer.concat([Buffer.from([0x80 | opcode, 0x80 | said.length, 0, 0, 0, 0]), Buffer.from(said)]);
    raw.socket.write(
      Buffer.concat([...Array.from({ length: 100 }, () => frame(1, "hello")), frame(9, "all sent")]),
    );
    await raw.until((answer) => answer.includes("all sent"));
    const asked = await Promise.all(Array.from({ length: 5 }, () => acme.call("GET", "/v1/dialects")));
    expect(asked.map(({ status }) => status)).toContain(429);
    raw.socket.destroy();
  });

  it("has so many live runs at once, and another when one has ended [RW-LIMIT-3]", async () => {
    const { acme, globex } = await served({ liveRunsPerTenantMax: 2 });
    const [run_id] = [await acme.run(), await acme.run()];
    const runs = (await acme.call("GET", "/v1/agent/runs")).text;
    const refused = await acme.call("POST", "/v1/agent/runs", { producer: "external" });
    expectLater(refused, "KAI-LIMIT-RUNS-0001", /2 may live at once/);
    expect((await acme.call("GET", "/v1/agent/runs")).text).toBe(runs);
    await globex.run();
    await acme.append(run_id, [lifecycle("done")]);
    await acme.run();
  });

  it("has so many connections at once, of whatever kind [RW-LIMIT-3]", async () => {
    const { url, acme, globex } = await served({ connectionsPerTenantMax: 3 });
    const [run_id, other] = [await acme.run(), await globex.run()];
    const socket = await openReading("websocket", url, streamPath({ run_id }), acme.bearer);
    const open = [socket, await acme.stream(run_id), await acme.stream(run_id)];
    for (const refused of [
      await acme.call("GET", `/v1/agent/runs/${run_id}`),
      await acme.append(run_id, [text("x")]),
    ])
      expectLater(refused, "KAI-LIMIT-CONNECTIONS-0001", /3 may be open at once/);
    const another = await openReading("websocket", url, streamPath({ run_id }), acme.bearer);
    expect(await another.ended).toEqual({ clean: true, code: 4429 });
    expect([another.status, another.heard]).toEqual([429, []]);
    // Those that are open stay so, and the others have their own.
    expect((await globex.append(other, [text("x")])).status).toBe(200);
    open[0]?.stop();
    await expect.poll(async () => (await acme.append(run_id, [text("heard")])).status).toBe(200);
    await open[1]?.until(({ events }) => events.some((e) => e.type === "text.delta"));
    for (const reading of open) reading.stop();
  });

  it("gets its connections back however they end, and never one more [RW-LIMIT-3]", {
    timeout: 120_000,
  }, async () => {
    const connectionsPerTenantMax = 25;
    const { url, acme } = await served({ connectionsPerTenantMax });
    const run_id = await acme.run();
    const free = (): Promise<void> =>
      expect.poll(async () => (await acme.call("GET", "/v1/dialects")).status, { interval: 5 }).toBe(200);
    for (let round = 0; round < 50; round++) {
      await free();
      const wire = (["sse", "websocket", "ndjson"] as const)[round % 3] ?? "sse";
      const readings = await Promise.all(
        Array.from({ length: 20 }, () => openReading(wire, url, streamPath({ run_id }), acme.bearer)),
      );
      for (const reading of readings) reading.stop();
    }
    await free();
    await expectExactly(acme, run_id, connectionsPerTenantMax);
  });

  it("gets back also those whose client had gone before it was let in [RW-LIMIT-3]", async () => {
    const connectionsPerTenantMax = 5;
    const { url, acme } = await served({ connectionsPerTenantMax });
    const { port } = new URL(url);
    const run_id = await acme.run();
    for (let round = 0; round < 40; round++) {
      const { body } = await acme.call("POST", "/v1/stream-tickets", { run_id });
      const path = `${streamPath({ run_id })}ticket=${body.ticket as string}`;
      const socket = connect({ host: "127.0.0.1", port: Number(port) });
      socket.on("error", () => {});
      await once(socket, "connect");
      // The first use of a ticket is written to disk; by then nobody is there.
      socket.write(requestText(url, "GET", path, round % 2 === 0 ? [] : upgradeLines), () =>
        setTimeout(() => socket.resetAndDestroy(), round % 4 === 0 ? 0 : 1),
      );
      await once(socket, "close");
    }
    await expectExactly(acme, run_id, connectionsPerTenantMax);
  });
});

/** That many streams can be open at once, and no more. */
async function expectExactly(acme: Tenant, run_id: string, count: number): Promise<void> {
  const open: Reading[] = [];
  await expect
    .poll(
      async () => {
        while (open.length < count) {
          const reading = await acme.stream(run_id);
          if (reading.status !== 200) break;
          open.push(reading);
        }
        return open.length;
      },
      { timeout: 5000 },
    )
    .toBe(count);
  expect((await acme.stream(run_id)).status).toBe(429);
  for (const reading of open) reading.stop();
}
