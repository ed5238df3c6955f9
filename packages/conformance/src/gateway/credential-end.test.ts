// A credential that is over ends what was opened with it: soon, saying why, and nothing else.

import { createHmac } from "node:crypto";
import { createKey, revokeKey, startGateway } from "@runwire/server";
import { beforeAll, describe, expect, it } from "vitest";
import { bearer, expectSoon, type Key, newKey, newRun, revoke, write } from "./access.js";
import { ask, type Headers } from "./asking.js";
import { runPath, text } from "./calls.js";
import { parseMetrics, total } from "./prometheus-text.js";
import { dechunked, type RawConnection, rawConnection, requestText, upgradeLines } from "./raw-http.js";
import { openReading, type Reading } from "./readers.js";
import { forwardClock, type UnderTest, underTest } from "./under-test.js";

const clock = forwardClock();
const keyed = underTest(startGateway, { auth: "keys", connectionsPerTenantMax: 50 }, clock);
let jwtSecret = "a secret of more than thirty-two bytes";
const signed = underTest(
  startGateway,
  () => ({ auth: "jwt", jwtSecret, jwtIssuer: "issuer", jwtAudience: "runwire" }),
  clock,
);
let alice: Key;
let operator: Key;

beforeAll(async () => {
  [alice, operator] = (await Promise.all([
    newKey(createKey, keyed, "alice"),
    newKey(createKey, keyed, "operator"),
  ])) as [Key, Key];
});

function token(lifeMs: number): string {
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");
  const claims = {
    iss: "issuer",
    aud: "runwire",
    tenant: "alice",
    scope: "read write admin",
    exp: Math.floor((clock.now() + lifeMs) / 1000),
  };
  const head = `${part({ alg: "HS256" })}.${part(claims)}`;
  return `${head}.${createHmac("sha256", jwtSecret).update(head).digest("base64url")}`;
}

interface Opened {
  readonly readings: { readonly [way: string]: Reading };
  readonly session: RawConnection;
}

/** One of everything that stays open. */
async function openAll(
  { url }: UnderTest,
  run_id: string,
  headers: { Authorization: string },
): Promise<Opened> {
  const one = `${runPath(run_id, "stream")}?dialect=runwire&detail=full`;
  const many = `/v1/agent/stream?runs=${run_id}&dialect=runwire&detail=full`;
  const readings = {
    sse: await openReading("sse", url, one, headers),
    ndjson: await openReading("ndjson", url, one, headers),
    websocket: await openReading("websocket", url, one, headers),
    "several over sse": await openReading("sse", url, many, headers),
    "several over ndjson": await openReading("ndjson", url, many, headers),
    "several over websocket": await openReading("websocket", url, many, headers),
    "the run list": await openReading("sse", url, "/v1/agent/runs/stream", headers),
    "the run list over ndjson": await openReading("ndjson", url, "/v1/agent/runs/stream", headers),
  };
  await Promise.all(Object.values(readings).map((reading) => reading.until(({ heard }) => heard.length > 0)));
  const session = await rawConnection(url);
  session.write(
    requestText(url, "POST", runPath(run_id, "events"), [
      `Authorization: ${headers.Authorization}`,
      "Content-Type: application/x-ndjson",
      "Transfer-Encoding: chunked",
    ]),
  );
  session.write(chunkOf(`${JSON.stringify(text("one"))}\n`));
  await session.until((answer) => answer.includes('"last_pos"'));
  return { readings, session };
}

const chunkOf = (line: string): string => `${Buffer.byteLength(line).toString(16)}\r\n${line}\r\n`;

const ended = { error: { code: "KAI-AUTH-TOKEN-0003", retry: false } };

/** Each was told why in the way of its transport, ended cleanly, and heard nothing of what came later. */
async function expectEnded({ readings, session }: Opened, later: string): Promise<void> {
  for (const [way, reading] of Object.entries(readings)) {
    const { clean, code } = await reading.ended;
    const last = reading.heard.at(-1);
    expect([way, clean, code]).toEqual([way, true, way.includes("websocket") ? 4401 : null]);
    if (!way.includes("websocket")) {
      expect([way, JSON.parse(last?.data ?? "")]).toMatchObject([way, ended]);
      expect([way, last?.event]).toEqual([way, way.includes("ndjson") ? undefined : "closing"]);
      const told = reading.heard.filter(({ data }) => data.includes("KAI-AUTH-TOKEN-0003"));
      expect([way, told.length]).toEqual([way, 1]);
    }
    expect([way, reading.text.includes(later)]).toEqual([way, false]);
    expect([way, reading.heard.some(({ data }) => data.includes(later))]).toEqual([way, false]);
  }
  await session.ended;
  const lines = dechunked(session.text).trimEnd().split("\n");
  expect(JSON.parse(lines.at(-1) ?? "")).toMatchObject(ended);
}

async function stay(opened: Opened, heard: string): Promise<void> {
  for (const [way, reading] of Object.entries(opened.readings)) {
    if (!way.includes("list"))
      await reading.until((one) => one.heard.some(({ data }) => data.includes(heard)));
    reading.stop();
  }
  opened.session.write(chunkOf(`${JSON.stringify(text("two"))}\n`));
  await opened.session.until((answer) => answer.match(/"last_pos"/g)?.length === 2);
  opened.session.socket.destroy();
}

describe("what was opened with a credential", () => {
  it("ends when the key is revoked, and says why; what others opened goes on [RW-AUTH-6]", async () => {
    const run_id = await newRun(keyed.url, alice.headers);
    const gone = await newKey(createKey, keyed, "alice");
    const theirs = await openAll(keyed, run_id, gone.headers);
    const staying = await openAll(keyed, run_id, alice.headers);
    const beganMs = performance.now();
    await revoke(revokeKey, keyed, gone);
    await Promise.all(Object.values(theirs.readings).map((reading) => reading.ended));
    expect(performance.now() - beganMs).toBeLessThan(30_000);
    await write(keyed.url, alice.headers, run_id, text("said later"));
    await expectEnded(theirs, "said later");
    await stay(staying, "said later");
  });

  it("ends when the key expires [RW-AUTH-6]", async () => {
    const run_id = await newRun(keyed.url, alice.headers);
    const brief = await newKey(createKey, keyed, "alice", { lifeMs: 60_000, nowMs: clock.now() });
    const theirs = await openAll(keyed, run_id, brief.headers);
    const staying = await openAll(keyed, run_id, alice.headers);
    clock.pass(60_000);
    await Promise.all(Object.values(theirs.readings).map((reading) => reading.ended));
    await write(keyed.url, alice.headers, run_id, text("said later"));
    await expectEnded(theirs, "said later");
    await stay(staying, "said later");
  });

  it("ends when the token expires, with a little tolerance for clocks [RW-AUTH-6]", async () => {
    const long = bearer(token(3600_000));
    const run_id = await newRun(signed.url, long);
    const theirs = await openAll(signed, run_id, bearer(token(60_000)));
    const staying = await openAll(signed, run_id, long);
    clock.pass(66_000);
    await Promise.all(Object.values(theirs.readings).map((reading) => reading.ended));
    await write(signed.url, long, run_id, text("said later"));
    await expectEnded(theirs, "said later");
    await stay(staying, "said later");
  });
});

describe("a secret that is replaced", () => {
  it("ends the sessions and tickets of the tokens that it signed [RW-SESSION-3] [RW-TICKET-3]", async () => {
    const headers = bearer(token(3600_000));
    const run_id = await newRun(signed.url, headers);
    const made = (path: string, body: object) => ask(signed.url, { method: "POST", path, headers, body });
    const [cookie = ""] = (await made("/v1/session", {})).headers["set-cookie"] ?? [];
    const { ticket } = (await made("/v1/stream-tickets", { run_id })).body;
    const statuses = async (): Promise<readonly number[]> => [
      (await ask(signed.url, { path: `${runPath(run_id, "stream")}?ticket=${ticket}` })).status,
      (await ask(signed.url, { path: "/v1/session", headers: { Cookie: cookie.split(";")[0] ?? "" } }))
        .status,
    ];
    await signed.restart();
    expect(await statuses()).toEqual([200, 200]);
    jwtSecret = "another secret of more than thirty-two bytes";
    await signed.restart();
    expect(await statuses()).toEqual([401, 401]);
    expect((await ask(signed.url, { path: "/v1/session", headers })).status).toBe(401);
    const fresh = bearer(token(3600_000));
    expect((await ask(signed.url, { path: "/v1/session", headers: fresh })).status).toBe(200);
  });
});

describe("a reader that has stopped reading", () => {
  /** Its socket is full before its credential is over. */
  async function stalled(headers: Headers): Promise<RawConnection> {
    const run_id = await newRun(keyed.url, alice.headers);
    const raw = await rawConnection(keyed.url);
    const path = `${runPath(run_id, "stream")}?dialect=runwire&detail=full`;
    raw.write(requestText(keyed.url, "GET", path, [`Authorization: ${headers.Authorization}`]));
    await raw.until((answer) => answer.includes('"running"'));
    raw.socket.pause();
    for (let i = 0; i < 16; i++) {
      const drafts = Array.from({ length: 16 }, () => text("x".repeat(60_000)));
      await write(keyed.url, alice.headers, run_id, ...drafts);
    }
    return raw;
  }

  const level = async (name: string): Promise<number> => {
    const { text: said } = await ask(keyed.url, { path: "/metrics", headers: operator.headers });
    return total(parseMetrics(said), name);
  };

  /** The streams of a key that ends are ended at a look, so one such end is one look. */
  async function look(): Promise<void> {
    const run_id = await newRun(keyed.url, alice.headers);
    const brief = await newKey(createKey, keyed, "alice", { lifeMs: 10_000, nowMs: clock.now() });
    const reading = await openReading("sse", keyed.url, runPath(run_id, "stream"), brief.headers);
    clock.pass(10_000);
    await reading.ended;
  }

  it("is told the end once, and its connection carries nothing after it [RW-AUTH-6]", async () => {
    const brief = await newKey(createKey, keyed, "alice", { lifeMs: 60_000, nowMs: clock.now() });
    const raw = await stalled(brief.headers);
    clock.pass(60_000);
    for (let i = 0; i < 2; i++) await look();
    raw.socket.resume();
    await Promise.race([raw.ended, raw.until((answer) => answer.includes("0\r\n\r\n"))]);
    expect(raw.text.match(/event: closing/g) ?? []).toHaveLength(1);
    expect(raw.text.slice(raw.text.lastIndexOf("event: closing"))).toMatch(/\r\n0\r\n\r\n$/);
    raw.socket.destroy();
  });

  it("is let go when it does not come for the end [RW-AUTH-6]", async () => {
    const brief = await newKey(createKey, keyed, "alice", { lifeMs: 60_000, nowMs: clock.now() });
    const before = await level("runwire_connections");
    const raw = await stalled(brief.headers);
    await expectSoon(
      () => level("runwire_connections"),
      (count) => count > before,
    );
    clock.pass(60_000);
    await expectSoon(
      () => level("runwire_connections"),
      (count) => count <= before,
    );
    raw.socket.destroy();
  });
});

describe("a client that goes away before it is answered", () => {
  it("leaves nothing behind: no reader, and no place that its tenant has lost", async () => {
    const run_id = await newRun(keyed.url, alice.headers);
    const made = await ask(keyed.url, {
      method: "POST",
      path: "/v1/stream-tickets",
      headers: alice.headers,
      body: { run_id, ttl_s: 86_400 },
    });
    const ticket = made.body.ticket as string;
    const path = `${runPath(run_id, "stream")}?ticket=${ticket}`;
    for (let i = 0; i < 200; i++) {
      const raw = await rawConnection(keyed.url);
      raw.socket.end(requestText(keyed.url, "GET", path, i % 2 === 0 ? [] : upgradeLines));
      raw.socket.destroy();
    }
    await expectSoon(
      async () =>
        total(
          parseMetrics((await ask(keyed.url, { path: "/metrics", headers: operator.headers })).text),
          "runwire_readers",
        ),
      (count) => count === 0,
    );
    // More than its tenant may have open at once have come and gone.
    for (const one of await Promise.all(
      Array.from({ length: 20 }, () => ask(keyed.url, { path: "/v1/dialects", headers: alice.headers })),
    )) {
      expect(one.status).toBe(200);
    }
  });
});
