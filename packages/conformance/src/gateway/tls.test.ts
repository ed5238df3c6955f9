// TLS, and with it HTTP/2: the same server on another wire, with many streams on one connection.

import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import type { ServerResponse } from "node:http";
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
} from "node:http2";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text as textOf } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { connect as secureConnect } from "node:tls";
import { createKey, startGateway } from "@runwire/server";
import { beforeAll, describe, expect, it, vi } from "vitest";
import { WebSocket } from "ws";
import { listener } from "../../../server/dist/http/listener.js";
import { readTls } from "../../../server/dist/http/tls.js";
import { tool } from "../tools.js";
import { expectSoon, type Key, newKey, newRun, write } from "./access.js";
import { ask } from "./asking.js";
import { lifecycle, runPath, say, text } from "./calls.js";
import { parseMetrics, total } from "./prometheus-text.js";
import { underTest } from "./under-test.js";

const openssl = tool("openssl");

/** A certificate of its own for each server. */
function tlsIn(folder: string): { readonly tlsCert: string; readonly tlsKey: string } {
  const files = { tlsCert: join(folder, "cert.pem"), tlsKey: join(folder, "key.pem") };
  const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"];
  const made = ["-keyout", files.tlsKey, "-out", files.tlsCert, "-days", "1", "-nodes"];
  if (!existsSync(files.tlsCert)) {
    const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"];
    execFileSync(openssl.program, ["req", "-x509", ...curve, ...made, ...subject], { stdio: "ignore" });
  }
  return files;
}

describe.skipIf(openssl.whyNot !== undefined)("over TLS", () => {
  const server = underTest(startGateway, (folder) => ({
    auth: "keys" as const,
    requestsPerSecond: 0,
    connectionsPerTenantMax: 400,
    headerBytesMax: 8192,
    ...tlsIn(folder),
  }));
  let alice: Key;
  let operator: Key;

  beforeAll(async () => {
    [alice, operator] = (await Promise.all([
      newKey(createKey, server, "alice"),
      newKey(createKey, server, "operator"),
    ])) as [Key, Key];
  });

  async function session(url = server.url): Promise<ClientHttp2Session> {
    const opened = connect(url, { rejectUnauthorized: false });
    opened.on("error", () => {});
    await new Promise<void>((resolve, reject) => {
      opened.once("connect", () => resolve());
      opened.once("error", reject);
    });
    // A reader that stalls holds back its own stream, not the connection.
    opened.setLocalWindowSize(16 * 1024 * 1024);
    return opened;
  }

  interface Exchange {
    readonly stream: ClientHttp2Stream;
    readonly headers: IncomingHttpHeaders & { ":status"?: number };
    readonly text: () => string;
    readonly ended: Promise<{ readonly clean: boolean }>;
    until(holds: (text: string) => boolean): Promise<void>;
  }

  async function exchange(
    over: ClientHttp2Session,
    path: string,
    given: { readonly method?: string; readonly body?: unknown; readonly headers?: object } = {},
  ): Promise<Exchange> {
    const { method = "GET", body } = given;
    const stream = over.request({
      ":method": method,
      ":path": path,
      authorization: alice.headers.Authorization,
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...given.headers,
    });
    let said = "";
    let clean = true;
    let over_ = false;
    stream.setEncoding("utf8");
    stream.on("data", (part: string) => {
      said += part;
    });
    stream.on("error", () => {
      clean = false;
    });
    const ended = new Promise<{ clean: boolean }>((resolve) => {
      stream.once("close", () => {
        over_ = true;
        resolve({ clean: clean && stream.rstCode === constants.NGHTTP2_NO_ERROR });
      });
    });
    stream.end(body === undefined ? undefined : JSON.stringify(body));
    const headers = await new Promise<Exchange["headers"]>((resolve, reject) => {
      stream.once("response", resolve);
      stream.once("close", () => reject(new Error(`no answer: ${stream.rstCode}`)));
    });
    return {
      stream,
      headers,
      text: () => said,
      ended,
      until: (holds) =>
        new Promise((resolve, reject) => {
          const look = (): void => {
            // What is waited for comes last; the whole would be searched again and again.
            if (holds(said.slice(-2000))) resolve();
            else if (over_) reject(new Error(`it ended first, after ${said.length} characters`));
            else stream.once("data", () => setImmediate(look));
          };
          stream.once("close", () => setImmediate(look));
          look();
        }),
    };
  }

  /** And what it was answered so far. */
  function appendSession(over: ClientHttp2Session, run_id: string) {
    let said = "";
    const stream = over.request({
      ":method": "POST",
      ":path": runPath(run_id, "events"),
      authorization: alice.headers.Authorization,
      "content-type": "application/x-ndjson",
    });
    stream.setEncoding("utf8").on("data", (part: string) => {
      said += part;
    });
    stream.on("error", () => {});
    return { stream, said: () => said };
  }

  async function whole(...asked: Parameters<typeof exchange>): Promise<Exchange> {
    const answer = await exchange(...asked);
    await answer.ended;
    return answer;
  }

  const metrics = async () =>
    parseMetrics((await ask(server.url, { path: "/metrics", headers: operator.headers })).text);

  const streamOf = (run_id: string, query = ""): string =>
    `${runPath(run_id, "stream")}?dialect=runwire&detail=full${query}`;

  it("serves HTTP/1.1 and WebSockets, and says to come back over TLS [RW-CORS-3]", async () => {
    const run_id = await newRun(server.url, alice.headers);
    const { status, headers } = await ask(server.url, {
      path: runPath(run_id, "stream"),
      headers: alice.headers,
    });
    expect([status, headers["strict-transport-security"]]).toEqual([200, "max-age=31536000"]);
    expect((await ask(server.url, { path: "/nowhere" })).headers["strict-transport-security"]).toBeDefined();
    const socket = new WebSocket(server.url.replace("https", "wss") + runPath(run_id, "stream"), {
      rejectUnauthorized: false,
      headers: alice.headers,
    });
    const heard: string[] = [];
    socket.on("message", (data) => heard.push(String(data)));
    const closed = new Promise<number>((resolve) => socket.once("close", resolve));
    await expect.poll(() => heard.length).toBe(1);
    await write(server.url, alice.headers, run_id, lifecycle("done"));
    expect(await closed).toBe(1000);
    expect(heard).toHaveLength(2);
    const refused = await ask(server.url, { path: runPath(run_id, "stream"), upgrade: true });
    expect([refused.status, refused.headers["strict-transport-security"]]).toEqual([401, "max-age=31536000"]);
    const { hostname: host, port } = new URL(server.url);
    const raw = secureConnect({ host, port: Number(port), rejectUnauthorized: false });
    raw.write("HELLO\r\n\r\n");
    expect(await textOf(raw)).toContain("\r\nStrict-Transport-Security: max-age=31536000\r\n");
  });

  it("signs browsers in with a cookie for this host alone [RW-SESSION-1]", async () => {
    const { headers } = await ask(server.url, {
      method: "POST",
      path: "/v1/session",
      body: { key: alice.key },
    });
    expect(headers["set-cookie"]?.[0]).toMatch(/^__Host-runwire_session=.*; Secure$/);
  });

  it("serves HTTP/2: create, append, follow, resume, 204 at the end", async () => {
    const client = await session();
    const created = await whole(client, "/v1/agent/runs", {
      method: "POST",
      body: { prompt: "go", producer: "external" },
    });
    expect([created.headers[":status"], created.headers["strict-transport-security"]]).toEqual([
      201,
      "max-age=31536000",
    ]);
    const { run_id } = JSON.parse(created.text()) as { run_id: string };
    const following = await exchange(client, streamOf(run_id));
    expect(following.headers["content-type"]).toBe("text/event-stream; charset=utf-8");
    await following.until((said) => said.includes("turn.submitted"));
    const appended = await whole(client, runPath(run_id, "events"), {
      method: "POST",
      body: [text("one"), lifecycle("done")],
    });
    expect(JSON.parse(appended.text())).toMatchObject({ first_pos: 3 });
    expect(await following.ended).toEqual({ clean: true });
    const ids = [...following.text().matchAll(/^id: (\d+)$/gm)].map(([, id]) => Number(id));
    expect(ids).toEqual(ids.map((_, i) => i + 1));
    const resumed = await whole(client, streamOf(run_id), { headers: { "last-event-id": "2" } });
    expect(resumed.text()).toBe(following.text().slice(following.text().indexOf("id: 3\n")));
    expect(
      (await whole(client, streamOf(run_id), { headers: { "last-event-id": String(ids.at(-1)) } })).headers[
        ":status"
      ],
    ).toBe(204);
    const lines = await whole(client, streamOf(run_id), { headers: { accept: "application/x-ndjson" } });
    expect(lines.text().trimEnd().split("\n")).toHaveLength(ids.length);
    const refused = await whole(client, "/v1/dialects", { headers: { authorization: "Bearer x" } });
    expect(refused.headers[":status"]).toBe(401);
    client.close();
  });

  it("carries an append session over HTTP/2, and says what is wrong with a line", async () => {
    const client = await session();
    const run_id = await newRun(server.url, alice.headers);
    const { stream, said } = appendSession(client, run_id);
    const closed = new Promise((resolve) => stream.once("close", resolve));
    stream.write(`${JSON.stringify(text("one"))}\n`);
    await expect.poll(said).toContain('"last_pos":3');
    stream.write("{broken\n");
    await closed;
    expect(said()).toContain("KAI-STREAM-PROTO-0001");
    // The connection has others on it.
    expect((await whole(client, "/livez")).headers[":status"]).toBe(200);
    client.close();
  });

  it("drops the line of a session over HTTP/2 that its end has cut off, also where it is whole [RW-APPEND-4]", async () => {
    const client = await session();
    const run_id = await newRun(server.url, alice.headers);
    const { stream, said } = appendSession(client, run_id);
    stream.write(`${JSON.stringify(text("stays"))}\n`);
    await expect.poll(said).toContain('"last_pos":3');
    stream.write(JSON.stringify(text("goes")));
    // Answered after it, on the same connection: the line has come, and then the end.
    await whole(client, "/livez");
    stream.destroy();
    await whole(client, "/livez");
    await write(server.url, alice.headers, run_id, lifecycle("done"));
    const log = await ask(server.url, {
      path: `${runPath(run_id, "events")}?detail=full`,
      headers: alice.headers,
    });
    expect(log.text).toContain("stays");
    expect(log.text).not.toContain("goes");
    client.close();
  });

  it("reads a session over HTTP/2 no further while its answers are not read", async () => {
    const folder = mkdtempSync(join(tmpdir(), "runwire-tls-"));
    const gateway = await startGateway({
      ...{ dataFolder: folder, port: 0, durability: "os", log: "error" },
      ...tlsIn(folder),
    });
    const { run_id } = await gateway.createRun({ prompt: "go", producer: "external" });
    const heard = gateway.follow({ run: run_id, dialect: "runwire", detail: "full" });
    const client = connect(gateway.url, { rejectUnauthorized: false, settings: { initialWindowSize: 0 } });
    const stream = client.request({
      ":method": "POST",
      ":path": runPath(run_id, "events"),
      "content-type": "application/x-ndjson",
    });
    await heard.next();
    await heard.next();
    const bystander = connect(gateway.url, { rejectUnauthorized: false });
    const other = await gateway.createRun({ prompt: "go", producer: "external" });
    /** Whether fifty appends to another run, one after the other, are answered first. */
    async function isOutrun(coming: Promise<unknown>): Promise<boolean> {
      let hasCome = false;
      void coming.then(() => {
        hasCome = true;
      });
      for (let answered = 0; answered < 50 && !hasCome; answered++) {
        const path = runPath(other.run_id, "events");
        const { headers } = await whole(bystander, path, { method: "POST", body: [text("x")] });
        expect(headers[":status"]).toBe(200);
      }
      return !hasCome;
    }
    let isStuck = false;
    let stored: Promise<unknown> = Promise.resolve();
    // One after the other, so that each is a commit with an answer of its own.
    for (let sent = 0; sent < 3000 && !isStuck; sent++) {
      stream.write(`${JSON.stringify(say("custom", {}))}\n`);
      stored = heard.next();
      isStuck = await isOutrun(stored);
    }
    expect(isStuck).toBe(true);
    client.settings({ initialWindowSize: 65_535 });
    stream.resume();
    await stored;
    client.destroy();
    bystander.destroy();
    await heard.return();
    await gateway.close();
    rmSync(folder, { recursive: true });
  });

  it("stores nothing of a batch over HTTP/2 whose sender goes away in the middle [RW-APPEND-2]", async () => {
    const client = await session();
    const run_id = await newRun(server.url, alice.headers);
    const line = `${JSON.stringify(text("one"))}\n`;
    const stream = client.request({
      ":method": "POST",
      ":path": runPath(run_id, "events"),
      authorization: alice.headers.Authorization,
      "content-type": "application/x-ndjson",
      "content-length": String(2 * line.length),
    });
    stream.on("error", () => {});
    stream.write(line);
    // Answered after it, on the same connection: the line has come.
    await whole(client, "/livez");
    client.destroy();
    await expectSoon(metrics, (told) => total(told, "runwire_connections") <= 1);
    await write(server.url, alice.headers, run_id, lifecycle("done"));
    const log = await ask(server.url, { path: runPath(run_id, "events"), headers: alice.headers });
    expect(log.text).not.toContain("text.delta");
  });

  it("lets go of a request over HTTP/2 that was answered before the end of its body", async () => {
    const client = await session();
    const stream = client.request({
      ":method": "POST",
      ":path": "/v1/session",
      "content-type": "application/json",
      "content-length": "99999999",
    });
    stream.on("error", () => {});
    let said = "";
    stream.setEncoding("utf8").on("data", (part: string) => {
      said += part;
    });
    const isOver = new Promise((resolve) => stream.once("close", () => resolve(true)));
    stream.write("{");
    expect(await Promise.race([isOver, sleep(3000, false)])).toBe(true);
    expect(said).toContain("KAI-REQUEST-SIZE-0001");
    expect((await whole(client, "/livez")).headers[":status"]).toBe(200);
    client.destroy();
  });

  /** What asks for one. */
  async function largeBlob(): Promise<OutgoingHttpHeaders> {
    const run_id = await newRun(server.url, alice.headers);
    const output = "x".repeat(4 * 1024 * 1024);
    await write(server.url, alice.headers, run_id, say("tool.start", { call_id: "call", tool: "shell" }));
    await write(server.url, alice.headers, run_id, say("tool.end", { call_id: "call", ok: true, output }));
    const log = await ask(server.url, { path: runPath(run_id, "events"), headers: alice.headers });
    const [ref] = /blob_[0-9a-f]{64}/.exec(log.text) ?? [];
    return { ":path": `/v1/blobs/${ref}`, authorization: alice.headers.Authorization };
  }

  it("takes a download that is cancelled over HTTP/2 for no bug of its own", async () => {
    const heard: string[] = [];
    const listening = vi.spyOn(process.stderr, "write").mockImplementation((line) => {
      heard.push(String(line));
      return true;
    });
    const client = await session();
    const stalled = client.request(await largeBlob());
    stalled.on("error", () => {});
    await new Promise((resolve) => stalled.once("response", resolve));
    stalled.close(constants.NGHTTP2_CANCEL);
    const route = { route: "/v1/blobs/:ref" };
    await expectSoon(metrics, (told) => total(told, "runwire_http_requests_total", route) === 1);
    await whole(client, "/livez");
    listening.mockRestore();
    expect(heard.filter((line) => line.includes('"bug"'))).toEqual([]);
    client.close();
  });

  // Only there does the system tell of its files.
  it.skipIf(process.platform !== "linux").each([
    ["whose request over HTTP/2 is reset as soon as it comes", "GET"],
    ["of which a request over HTTP/2 wants the head alone", "HEAD"],
  ])("closes the file of a blob %s", async (_, method) => {
    const blob = { ...(await largeBlob()), ":method": method };
    const client = await session();
    await whole(client, "/livez");
    const files = async (): Promise<number> => readdirSync("/proc/self/fd").length;
    // What nobody closes, the collector may: it says so.
    const warned: string[] = [];
    const heed = ({ message }: Error): void => void warned.push(message);
    process.on("warning", heed);
    const before = await files();
    for (let round = 0; round < 5; round++) {
      const asked = Array.from({ length: 10 }, () =>
        client
          .request(blob)
          .on("error", () => {})
          .resume(),
      );
      const closed = asked.map((one) => once(one, "close"));
      // One that is reset before it is sent is not sent at all.
      await new Promise(setImmediate);
      if (method === "GET") for (const one of asked) one.close(constants.NGHTTP2_CANCEL);
      await Promise.all(closed);
    }
    await expectSoon(files, (count) => count <= before);
    process.off("warning", heed);
    expect(warned).toEqual([]);
    client.destroy();
  });

  it("does not let a stream that stalls hold up the others on its connection [RW-BACKPRESSURE-2]", async () => {
    const client = await session();
    const run_id = await newRun(server.url, alice.headers);
    const stalled = await exchange(client, streamOf(run_id, "&backpressure=lossless"));
    await stalled.until((said) => said.includes("turn.submitted"));
    stalled.stream.pause();
    const reading = await exchange(client, streamOf(run_id));
    for (let i = 0; i < 8; i++) {
      await write(
        server.url,
        alice.headers,
        run_id,
        ...Array.from({ length: 16 }, () => text("x".repeat(60_000))),
      );
    }
    await write(server.url, alice.headers, run_id, text("the last"));
    await reading.until((said) => said.includes("the last"));
    expect(stalled.text()).not.toContain("the last");
    stalled.stream.resume();
    await stalled.until((said) => said.includes("the last"));
    const events = ({ text: said }: Exchange): string => said().replaceAll(": keepalive\n\n", "");
    expect(events(stalled)).toBe(events(reading));
    client.destroy();
  });

  it("carries a hundred streams on one connection", async () => {
    const client = await session();
    const run_id = await newRun(server.url, alice.headers);
    const streams = await Promise.all(Array.from({ length: 100 }, () => exchange(client, streamOf(run_id))));
    await write(server.url, alice.headers, run_id, text("to all"), lifecycle("done"));
    for (const { ended, text: said } of streams) {
      expect(await ended).toEqual({ clean: true });
      expect(said()).toContain("to all");
    }
    client.close();
  });

  it("outlives ten thousand streams that are opened and reset at once, and so do its other clients", async () => {
    const run_id = await newRun(server.url, alice.headers);
    // A ticket is looked up in the store, which takes longer than a reset takes to come.
    const made = await ask(server.url, {
      method: "POST",
      path: "/v1/stream-tickets",
      headers: alice.headers,
      body: { run_id },
    });
    const path = streamOf(run_id, `&ticket=${made.body.ticket}`);
    const bystander = await session();
    const following = await exchange(bystander, streamOf(run_id));
    const rssBefore = process.memoryUsage().rss;
    for (let sent = 0; sent < 10_000; ) {
      const attacker = await session();
      const opened = Array.from({ length: 100 }, () =>
        attacker.request({ ":path": path }).on("error", () => {}),
      );
      // One that is reset before it is sent is not sent at all. Nor are more at once, until a server allows them.
      await new Promise(setImmediate);
      for (const one of opened) one.close(constants.NGHTTP2_CANCEL);
      sent += opened.length;
      attacker.close();
      // Each attack is upon the server while somebody else asks it something, and waits for the answer.
      expect((await ask(server.url, { path: "/v1/dialects", headers: operator.headers })).status).toBe(200);
      attacker.destroy();
    }
    // Nothing is left of them: no reader but the bystander, and no place that their tenant has lost.
    const readers = async (): Promise<number> =>
      total(
        parseMetrics((await ask(server.url, { path: "/metrics", headers: operator.headers })).text),
        "runwire_readers",
      );
    await expectSoon(readers, (count) => count === 1);
    expect((await ask(server.url, { path: "/v1/dialects", headers: alice.headers })).status).toBe(200);
    expect(process.memoryUsage().rss - rssBefore).toBeLessThan(300 * 1024 * 1024);
    await write(server.url, alice.headers, run_id, text("still here"));
    await following.until((said) => said.includes("still here"));
    bystander.destroy();
  }, 120_000);

  it("refuses headers that are too large, on either version, and goes on", async () => {
    const large = "x".repeat(10_000);
    const { status } = await ask(server.url, { path: "/livez", headers: { "X-Large": large } });
    expect(status).toBe(431);
    for (const headers of [
      { "x-large": large },
      Object.fromEntries(Array.from({ length: 400 }, (_, i) => [`x-${i}`, "y".repeat(40)])),
    ]) {
      const client = await session();
      const answered = await whole(client, "/livez", { headers }).then(
        (answer) => answer.headers[":status"],
        () => "reset",
      );
      expect([431, "reset"]).toContain(answered);
      client.destroy();
    }
    expect((await ask(server.url, { path: "/livez" })).status).toBe(200);
  });

  it("lets go of a connection of HTTP/2 on which nothing is asked, and of no other", async () => {
    const idleMs = 100;
    const quick = listener(readTls(tlsIn(server.folder)), 8192, idleMs);
    const asked = once(quick, "request");
    await once(quick.listen(0, "127.0.0.1"), "listening");
    const url = `https://127.0.0.1:${(quick.address() as AddressInfo).port}`;
    const [busy, silent] = [url, url].map((to) => connect(to, { rejectUnauthorized: false })) as [
      ClientHttp2Session,
      ClientHttp2Session,
    ];
    const answer = once(busy.request({ ":path": "/" }), "response");
    const [, res] = (await asked) as [unknown, ServerResponse];
    await once(silent, "close");
    expect(busy.closed).toBe(false);
    res.writeHead(204).end();
    expect((await answer)[0]).toMatchObject({ ":status": 204 });
    await once(busy, "close");
    quick.close();
  });

  it("ends the streams of HTTP/2 cleanly when it leaves, and waits for nobody [RW-CLOSE-2]", async () => {
    const folder = mkdtempSync(join(tmpdir(), "runwire-tls-"));
    const start = () =>
      startGateway({
        ...{ dataFolder: folder, port: 0, durability: "os", log: "error", graceMs: 600_000 },
        ...tlsIn(folder),
      });
    const leaving = await start();
    const client = await session(leaving.url);
    const { run_id } = await leaving.createRun({ prompt: "go", producer: "external" });
    const streams = await Promise.all(Array.from({ length: 20 }, () => exchange(client, streamOf(run_id))));
    await Promise.all(streams.map((one) => one.until((said) => said.includes("turn.submitted"))));
    await leaving.close();
    for (const { ended, text: said } of streams) {
      expect(await ended).toEqual({ clean: true });
      expect(said()).toMatch(/retry: \d+\n\n$/);
    }
    const next = await start();
    const again = await session(next.url);
    const resumed = await exchange(again, streamOf(run_id), { headers: { "last-event-id": "1" } });
    await resumed.until((said) => said.includes("turn.submitted"));
    again.destroy();
    await next.close();
    rmSync(folder, { recursive: true });
    // Sooner than a connection is let go of on which nothing is asked: that would hide one that was not closed.
  }, 60_000);
});
