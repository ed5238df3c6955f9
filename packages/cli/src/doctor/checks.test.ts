import { generateKeyPairSync } from "node:crypto";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import { sqliteStore, startGateway, systemClock } from "@runwire/server";
import { createKey, readKeys, revokeKey } from "@runwire/server/operate";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type AllSettings, allDefaults } from "../setting-rows.js";
import { selfSigned } from "../testing/certificate.js";
import { loopback } from "../testing/loopback.js";
import { access, judgeKeys } from "./access.js";
import { database, judgeDatabase } from "./database.js";
import { type Facts, inWords } from "./finding.js";
import { folder } from "./folder.js";
import { hooks } from "./hooks.js";
import { judgeNode, judgeOpenFiles, judgeSpace } from "./machine.js";
import { mcp } from "./mcp.js";
import { models } from "./models.js";
import { judgeServer } from "./server.js";
import { tls } from "./tls.js";

const dayMs = 86_400_000;
const nowMs = Date.parse("2030-01-01T00:00:00Z");
const secret = "correct horse battery staple, and some more";

let data: string;
beforeEach(() => {
  data = mkdtempSync(join(tmpdir(), "runwire-doctor-"));
});
afterEach(() => rmSync(data, { recursive: true }));

function facts(given: object = {}, now = nowMs): Facts {
  return { settings: { ...allDefaults, dataFolder: data, ...given } as AllSettings, env: {}, nowMs: now };
}

describe("the data folder", () => {
  it("must be a folder, and the key file nobody else's", async () => {
    expect(await folder(facts())).toMatchObject([{ result: "right" }]);
    const path = join(data, "keys.json");
    createKey(path, { tenant: "acme", scopes: [], name: "", lifeMs: undefined }, 0);
    expect(await folder(facts())).toMatchObject([{ result: "right" }]);
    for (const mode of [0o640, 0o604, 0o660]) {
      chmodSync(path, mode);
      const found = await folder(facts());
      expect(found).toMatchObject([{ result: "right" }, { result: "wrong", todo: `chmod 600 ${path}` }]);
    }
    expect(await folder(facts({ dataFolder: path }))).toMatchObject([{ result: "wrong" }]);
    expect(await folder(facts({ dataFolder: join(path, "below") }))).toMatchObject([{ result: "wrong" }]);
  });
});

describe("the machine", () => {
  it.each([
    ["20.19.0", "right"],
    ["20.18.3", "wrong"],
    ["18.20.1", "wrong"],
    ["22.1.0", "right"],
  ])("with Node %s is %s", (version, result) => expect(judgeNode(version).result).toBe(result));

  it.each([
    ["1024", "doubtful"],
    ["4095", "doubtful"],
    ["4096", "right"],
    ["unlimited", "right"],
  ])("with %s open files is %s", (most, result) => expect(judgeOpenFiles(most).result).toBe(result));

  it("is the worse the less space it has", () => {
    const order = ["wrong", "doubtful", "right"];
    const rank = (bytes: number, inodes: number | undefined): number =>
      Math.min(...judgeSpace({ bytes, inodes }).map(({ result }) => order.indexOf(result)));
    const bytes = fc.integer({ min: 0, max: 2 ** 41 });
    const inodes = fc.option(fc.integer({ min: 0, max: 1e6 }), { nil: undefined });
    fc.assert(
      fc.property(bytes, bytes, inodes, (a, b, files) => {
        expect(rank(Math.min(a, b), files)).toBeLessThanOrEqual(rank(Math.max(a, b), files));
      }),
    );
    expect([rank(0, 1e6), rank(2 ** 29, 1e6), rank(2 ** 31, 1e6)]).toEqual([0, 1, 2]);
    expect([rank(2 ** 40, 5), rank(2 ** 40, 5000), rank(2 ** 40, undefined)]).toEqual([0, 1, 2]);
  });

  it("counts bytes as people do", () => {
    expect([0, 1023, 1024, 1536, 200 * 1024, 5 * 1024 ** 3].map(inWords)).toEqual([
      "0 bytes",
      "1023 bytes",
      "1.0 KiB",
      "1.5 KiB",
      "200 KiB",
      "5.0 GiB",
    ]);
  });
});

describe("the database", () => {
  it("is whole as a server leaves it, ahead of a clock that went back, and damaged when bytes change", async () => {
    expect(await database(facts())).toEqual([]);
    const gateway = await startGateway({ dataFolder: data, port: 0, log: "error" });
    for (let n = 0; n < 20; n += 1) {
      const body = JSON.stringify({ prompt: "x".repeat(5000), producer: "external" });
      const headers = { "content-type": "application/json" };
      const { status } = await fetch(`${gateway.url}/v1/agent/runs`, { method: "POST", headers, body });
      expect(status).toBe(201);
    }
    // Next to a running server, too.
    expect(await database(facts({}, Date.now()))).toMatchObject([{ result: "right" }]);
    await gateway.close();
    expect(await database(facts({}, Date.now()))).toMatchObject([{ result: "right" }]);
    expect(await database(facts({}, Date.now() - 60_000))).toMatchObject([
      { result: "right" },
      { result: "doubtful", about: "clock" },
    ]);

    const path = join(data, "runwire.db");
    const bytes = readFileSync(path);
    writeFileSync(path, Buffer.concat([bytes.subarray(0, 4096), Buffer.alloc(bytes.length - 4096, 0xa5)]));
    expect(await database(facts({}, Date.now()))).toMatchObject([{ result: "wrong" }]);
    writeFileSync(path, "not a database at all, but long enough to be read as one".repeat(100));
    expect(await database(facts({}, Date.now()))).toMatchObject([
      { result: "wrong", says: expect.stringContaining("cannot be read") },
    ]);
  });

  it.each([
    ["a run", "UPDATE runs SET record = replace(record, 'xxx', 'xxy')"],
    ["an entry of a feed", "UPDATE feed SET payload = payload || ' ' WHERE pos = 2"],
    ["what is hot", "UPDATE hot SET body = replace(body, 'xxx', 'xxy')"],
    ["a segment's body", "UPDATE segments SET body = CAST(replace(body, 'xxx', 'xxy') AS BLOB)"],
    ["a setting", "UPDATE meta SET value = '5' WHERE name = 'age'"],
  ])("is damaged where %s is not what was stored, though SQLite finds nothing wrong", async (_, damage) => {
    const gateway = await startGateway(
      { dataFolder: data, port: 0, log: "error" },
      systemClock,
      undefined,
      (options) => sqliteStore({ ...options, hotEventsMax: 3 }),
    );
    for (let n = 0; n < 10; n += 1) {
      const body = JSON.stringify({ prompt: "xxx", metadata: { of: "xxx" }, producer: "external" });
      const headers = { "content-type": "application/json" };
      await fetch(`${gateway.url}/v1/agent/runs`, { method: "POST", headers, body });
    }
    await gateway.close();
    expect(await database(facts({}, Date.now()))).toMatchObject([{ result: "right" }]);
    const db = new DatabaseSync(join(data, "runwire.db"));
    expect(db.prepare(damage).run().changes).toBeGreaterThan(0);
    db.close();
    expect(await database(facts({}, Date.now()))).toMatchObject([
      { result: "wrong", says: expect.stringContaining("its checksum differs") },
    ]);
  });

  it("of another format, too long a log, or too large to look through is told", () => {
    const formats = { format: "3", formatWanted: "3", formatBefore: "2" };
    const good = { ...formats, bytes: 1, walBytes: 0, newestMs: undefined, damage: [] };
    const results = (change: object) =>
      judgeDatabase("db", { ...good, ...change }, nowMs).map(({ result }) => result);
    expect(results({})).toEqual(["right"]);
    for (const format of ["1", "4"]) expect(results({ format })).toEqual(["wrong"]);
    expect(results({ format: "2" })).toEqual(["right", "doubtful"]);
    expect(results({ format: "2", damage: ["page 7"] })).toEqual(["wrong", "doubtful"]);
    expect(results({ walBytes: 2 ** 30 })).toEqual(["right", "doubtful"]);
    expect(results({ damage: undefined })).toEqual(["doubtful"]);
    expect(results({ damage: ["page 7"] })).toEqual(["wrong"]);
    expect(results({ newestMs: nowMs + 5001 })).toEqual(["right", "doubtful"]);
    expect(results({ newestMs: nowMs + 5000 })).toEqual(["right"]);
  });
});

describe("a server", () => {
  const seen = {
    hasLock: true,
    url: "http://127.0.0.1:1",
    port: 1,
    answer: { kind: "ours", status: "ready", durability: "fsync" } as const,
    portProblem: "EADDRINUSE",
  };
  it.each([
    [{}, ["right"]],
    [{ answer: { ...seen.answer, durability: "os" } }, ["doubtful"]],
    [{ answer: { ...seen.answer, status: "leaving" } }, ["doubtful"]],
    [{ answer: { ...seen.answer, status: "degraded" } }, ["doubtful"]],
    [{ hasLock: false }, ["doubtful"]],
    [{ answer: { kind: "none" } as const }, ["doubtful"]],
    [{ answer: { kind: "other" } as const, hasLock: false }, ["right", "wrong"]],
    [{ answer: { kind: "none" } as const, hasLock: false }, ["right", "wrong"]],
    [{ answer: { kind: "none" } as const, hasLock: false, portProblem: undefined }, ["right", "right"]],
  ])("seen as %j is %j", (change, results) => {
    expect(judgeServer({ ...seen, ...change }).map(({ result }) => result)).toEqual(results);
  });
});

describe("access", () => {
  it.each(["127.0.0.1", "::1", "localhost"])("may be open on %s", async (host) => {
    expect(await access(facts({ host }))).toMatchObject([{ result: "right" }]);
  });

  it.each(["0.0.0.0", "::", "10.0.0.1", "localhost.example", "127.0.0.1.example"])(
    "may not be open on %s, and should be encrypted there",
    async (host) => {
      expect(await access(facts({ host, auth: "open" }))).toMatchObject([{ result: "wrong" }]);
      const jwt = { auth: "jwt", jwtIssuer: "i", jwtAudience: "a", jwtSecret: secret };
      expect(await access(facts({ host, ...jwt }))).toMatchObject([
        { result: "doubtful" },
        { result: "right" },
      ]);
      expect(await access(facts({ host, ...jwt, tlsCert: "c" }))).toMatchObject([{ result: "right" }]);
    },
  );

  it("may not be open where a server refuses to be", async () => {
    expect(await access(facts({ host: "127.0.0.2" }))).toMatchObject([
      { result: "wrong", says: expect.stringContaining("does not start") },
    ]);
  });

  it("by keys needs a good one, and tells which end soon", async () => {
    const path = join(data, "keys.json");
    const wish = { tenant: "acme", scopes: ["read"], name: "", lifeMs: undefined } as const;
    const none = [{ result: "wrong", todo: expect.stringContaining("runwire keys create") }];
    expect(await access(facts({ auth: "keys" }))).toMatchObject(none);
    const { record } = createKey(path, wish, nowMs);
    revokeKey(path, record.id, nowMs);
    createKey(path, { ...wish, lifeMs: 1 }, nowMs - 1);
    expect(await access(facts({ auth: "keys" }))).toMatchObject(none);
    const soon = createKey(path, { ...wish, lifeMs: 14 * dayMs }, nowMs).record.id;
    createKey(path, { ...wish, lifeMs: 14 * dayMs + 1 }, nowMs);
    expect(await access(facts({ auth: "keys" }))).toMatchObject([
      { result: "right", says: "2 of 4 keys are good" },
      { result: "doubtful", says: `key ${soon} of tenant acme ends in 14 days` },
    ]);
    const [key] = readKeys(path).slice(-1);
    expect(
      judgeKeys(
        Array.from({ length: 9 }, () => key!),
        nowMs + dayMs,
      ),
    ).toHaveLength(7);
    writeFileSync(path, "{");
    expect(await access(facts({ auth: "keys" }))).toMatchObject([{ result: "wrong" }]);
  });

  it("by tokens needs an issuer, an audience and one way to check them", async () => {
    const results = async (given: object) =>
      (await access(facts({ auth: "jwt", ...given }))).map(({ result, says }) => `${result}: ${says}`);
    expect(await results({})).toEqual(["wrong: --jwt-issuer is not set", "wrong: --jwt-audience is not set"]);
    const both = { jwtIssuer: "i", jwtAudience: "a" };
    expect(await results(both)).toEqual([expect.stringMatching(/^wrong: .*exactly one/)]);
    expect(await results({ ...both, jwtSecret: "short" })).toEqual([
      expect.stringMatching(/^wrong: .*32 bytes/),
    ]);
    const good = await results({ ...both, jwtSecret: secret });
    expect(good).toEqual(["right: tokens of i for a, signed with a secret"]);
  });

  it("by published keys needs one that can be used, at an address that answers", async () => {
    const jwk = (kind: "ed25519" | "x25519") =>
      generateKeyPairSync(kind as "ed25519").publicKey.export({ format: "jwk" });
    const bodies = {
      good: { keys: [jwk("x25519"), { ...jwk("ed25519"), use: "sig" }, { kty: "nonsense" }] },
      encryption: { keys: [{ ...jwk("ed25519"), use: "enc" }] },
      exchange: { keys: [jwk("x25519")] },
      empty: { keys: [] },
      nothing: {},
    };
    const issuer = createServer((request, response) => {
      const body = bodies[request.url?.slice(1) as keyof typeof bodies];
      response.writeHead(body === undefined ? 404 : 200).end(JSON.stringify(body));
    });
    const { url, close } = await loopback(issuer);
    const says = async (path: string) => {
      const given = { auth: "jwt", jwtIssuer: "i", jwtAudience: "a", jwksUrl: `${url}/${path}` };
      const [found] = await access(facts(given));
      return `${found?.result}: ${found?.says}`;
    };
    expect(await says("good")).toMatch(/^right: .* one of 1 keys/);
    expect(await says("encryption")).toMatch(/^wrong: none of the 1 keys/);
    expect(await says("exchange")).toMatch(/^wrong: none of the 1 keys/);
    expect(await says("empty")).toMatch(/^wrong: none of the 0 keys/);
    expect(await says("nothing")).toMatch(/^wrong: .*no set of keys/);
    expect(await says("missing")).toMatch(/^wrong: .*answers 404/);
    await close();
    expect(await says("good")).toMatch(/^wrong: .*cannot be fetched/);
  });
});

describe("a certificate", () => {
  const begins = new Date(nowMs - 10 * dayMs);
  const ends = new Date(nowMs + 90 * dayMs);
  let cert: string;
  let key: string;
  beforeEach(() => {
    cert = join(data, "cert.pem");
    key = join(data, "key.pem");
    const made = selfSigned(begins, ends);
    writeFileSync(cert, made.certificate);
    writeFileSync(key, made.key, { mode: 0o600 });
  });
  const at = async (now: number, given: object = { tlsCert: cert, tlsKey: key }) =>
    (await tls(facts(given, now))).map(({ result, says }) => `${result}: ${says}`);

  it("is good from its beginning to its end, and soon to be renewed for the last three weeks", async () => {
    expect(await at(nowMs)).toEqual([`right: ${cert} is good for 90 days`]);
    expect(await at(begins.getTime() - 1)).toEqual([expect.stringMatching(/^wrong: .*not good before/)]);
    expect(await at(begins.getTime())).toEqual([expect.stringMatching(/^right/)]);
    expect(await at(ends.getTime() - 21 * dayMs - 1)).toEqual([expect.stringMatching(/^right/)]);
    expect(await at(ends.getTime() - 21 * dayMs)).toEqual([`doubtful: ${cert} is good for 21 days only`]);
    expect(await at(ends.getTime() - 1)).toEqual([`doubtful: ${cert} is good for less than a day only`]);
    expect(await at(ends.getTime())).toEqual([expect.stringMatching(/^wrong: .*ended on/)]);
  });

  it("needs its own key, both readable, and the key nobody else's", async () => {
    chmodSync(key, 0o644);
    expect(await at(nowMs)).toEqual([
      expect.stringMatching(/^right/),
      expect.stringMatching(/^doubtful: .*key\.pem/),
    ]);
    chmodSync(key, 0o640);
    expect(await at(nowMs)).toHaveLength(1);
    writeFileSync(key, selfSigned(begins, ends).key);
    expect(await at(nowMs)).toEqual([expect.stringMatching(/^wrong: .*do not belong together/)]);
    writeFileSync(key, "no key");
    expect(await at(nowMs)).toEqual([expect.stringMatching(/^wrong: .*key\.pem is no readable key/)]);
    rmSync(cert);
    expect(await at(nowMs)).toEqual([
      expect.stringMatching(/^wrong: .*cert\.pem is no readable certificate/),
    ]);
    expect(await at(nowMs, { tlsCert: cert })).toEqual(["wrong: --tls-cert is set, and --tls-key is not"]);
    expect(await at(nowMs, {})).toEqual([]);
  });
});

describe("models", () => {
  it("that go on for another must be there, or the server does not start", async () => {
    const fallbackModels = ["demo", "openai/gpt-x", "nobody/knows"];
    expect(await models(facts({ fallbackModels }))).toMatchObject([
      { result: "right" },
      { result: "wrong", says: expect.stringContaining("OPENAI_API_KEY") },
      { result: "wrong", says: expect.stringContaining("nobody") },
    ]);
  });
});

describe("MCP servers", () => {
  it("are reached, or it is said that runs go on without them", async () => {
    expect(await mcp(facts())).toEqual([]);
    const servers = [{ name: "nowhere", command: join(data, "no-such-program") }];
    expect(await mcp(facts({ mcp: servers }))).toMatchObject([
      {
        result: "doubtful",
        says: expect.stringContaining("nowhere"),
        todo: expect.stringContaining("without"),
      },
    ]);
  });
});

describe("hooks", () => {
  it("have programs that are there, or it is said what happens without them", async () => {
    expect(await hooks(facts())).toEqual([]);
    const hook = { point: "pre_tool_use", tools: ["*"], timeoutMs: 1000 };
    const given = [
      { ...hook, name: "bare", command: ["sh"], required: true },
      { ...hook, name: "whole", command: [process.execPath], required: true },
      { ...hook, name: "gone", command: [join(data, "no-such-program")], required: false },
      { ...hook, name: "needed", command: ["no-such-program"], required: true },
    ];
    expect(await hooks(facts({ hooks: given }))).toMatchObject([
      { result: "right" },
      { result: "right" },
      {
        result: "doubtful",
        says: expect.stringContaining("gone"),
        todo: expect.stringContaining("go on without"),
      },
      {
        result: "doubtful",
        says: expect.stringContaining("needed"),
        todo: expect.stringContaining("is refused"),
      },
    ]);
  });
});
