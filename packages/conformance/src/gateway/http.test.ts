// HTTP's own corners: who may ask, unknown paths and methods, old and hasty clients.

import { dialects } from "@runwire/protocol";
import { startGateway } from "@runwire/server";
import { beforeAll, describe, expect, it } from "vitest";
import { allEvents, append, call, codeOf, createRun, lifecycle, runPath, say, text } from "./calls.js";
import { rawAnswer, rawConnection, requestText, upgradeLines } from "./raw-http.js";
import { streamPath } from "./readers.js";
import { record } from "./story.js";
import { underTest } from "./under-test.js";

let host: string;
let run_id: string;

const server = underTest(startGateway);

beforeAll(async () => {
  host = new URL(server.url).host;
  run_id = await record(server.url, [text("one"), text("two"), lifecycle("done")]);
});

describe("an open server", () => {
  it("answers nobody who calls it by a foreign name, or from a foreign page", async () => {
    const port = new URL(server.url).port;
    const refused = [
      ["Host: evil.example"],
      [`Host: evil.example:${port}`],
      [`Host: 127.0.0.1.evil.example:${port}`],
      [`Host: ${host}`, `Host: ${host}`],
      [`Host: ${host}`, "Host: evil.example"],
      [`Host: ${host}`, "Origin: http://evil.example"],
      [`Host: ${host}`, "Origin: null"],
      [`Host: ${host}`, "Origin: http://127.0.0.1:1"],
      // An image, a script or a form of another page.
      [`Host: ${host}`, "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors"],
      [`Host: ${host}`, "Sec-Fetch-Site: same-site", "Sec-Fetch-Mode: no-cors"],
    ];
    for (const lines of refused) {
      for (const [method, path] of [
        ["GET", "/livez"],
        ["GET", streamPath({ run_id })],
        ["POST", "/v1/agent/runs"],
      ]) {
        const answer = await rawAnswer(
          server.url,
          `${method} ${path} HTTP/1.1\r\n${[...lines, "Connection: close"].join("\r\n")}\r\n\r\n`,
        );
        expect([lines, answer.slice(0, 12)]).toEqual([lines, "HTTP/1.1 403"]);
        expect(answer).toContain("KAI-REQUEST-HOST-0001");
      }
      const socket = await rawAnswer(
        server.url,
        `GET ${streamPath({ run_id })} HTTP/1.1\r\n${[...lines, ...upgradeLines].join("\r\n")}\r\n\r\n`,
      );
      expect([lines, socket.slice(0, 12)]).toEqual([lines, "HTTP/1.1 403"]);
    }
    for (const name of ["localhost", "LOCALHOST", "127.0.0.1", "[::1]"]) {
      const answer = await rawAnswer(
        server.url,
        `GET /livez HTTP/1.1\r\nHost: ${name}:${port}\r\nOrigin: http://${name}:${port}\r\nConnection: close\r\n\r\n`,
      );
      expect([name, answer.slice(0, 12)]).toEqual([name, "HTTP/1.1 200"]);
    }
  });

  it("says 404 to an unknown path or run and 405, with what is allowed, to another method", async () => {
    for (const path of ["/", "/v1", "/v1/agent/runs/", "/v1/agent/runs//stream", "/v2/agent/runs"]) {
      expect([path, (await call(server.url, "GET", path)).status]).toEqual([path, 404]);
    }
    for (const rest of ["stream", "events", "replay.jsonl", "snapshot", "steps", "children"]) {
      for (const unknown of ["run_unknown", "run_%00", "..%2f..", "a b"]) {
        expect([rest, (await call(server.url, "GET", runPath(unknown, rest))).status]).toEqual([rest, 404]);
      }
      const put = await call(server.url, "PUT", runPath(run_id, rest), {});
      expect([put.status, codeOf(put)]).toEqual([405, "KAI-REQUEST-METHOD-0001"]);
      const pages = /events|children/.test(rest) ? "GET, HEAD, POST" : "GET, HEAD";
      expect([rest, put.headers.get("allow")]).toEqual([rest, /stream|replay/.test(rest) ? "GET" : pages]);
    }
    expect((await call(server.url, "POST", "/livez", {})).headers.get("allow")).toBe("GET, HEAD");
    expect((await call(server.url, "DELETE", "/v1/agent/runs/run_unknown")).status).toBe(404);
    for (const action of ["pause", "resume", "abort", "approve_plan", "heartbeat", "events"]) {
      const body = action === "events" ? [text("x")] : {};
      expect([action, (await call(server.url, "POST", runPath("run_unknown", action), body)).status]).toEqual(
        [action, 404],
      );
    }
  });

  it("says what it speaks and that it is ready", async () => {
    expect((await call(server.url, "GET", "/livez")).body).toEqual({ status: "ok" });
    expect((await call(server.url, "GET", "/healthz")).body).toEqual({ status: "ok" });
    expect((await call(server.url, "GET", "/readyz")).body).toMatchObject({
      status: "ready",
      durability: "os",
    });
    const { body } = await call(server.url, "GET", "/v1/dialects");
    const names = (body.dialects as readonly { name: string }[]).map(({ name }) => name);
    expect(names.slice(0, 2)).toEqual(["koder", "runwire"]);
    expect(names).toEqual([...dialects.keys()]);
    const transports = (body.transports as readonly { name: string }[]).map(({ name }) => name);
    expect(transports).toEqual(["sse", "ndjson", "websocket", "stdio", "nats"]);
  });
});

describe("a client of HTTP/1.0", () => {
  it("reads streams and pages without chunks, to the end of the connection [RW-SSE-7]", async () => {
    const page = await rawAnswer(
      server.url,
      `GET ${runPath(run_id, "events")} HTTP/1.0\r\nHost: ${host}\r\n\r\n`,
    );
    expect(page).toMatch(/^HTTP\/1\.1 200 /);
    for (const path of [streamPath({ run_id }), `/v1/agent/stream?runs=${run_id}`]) {
      const answer = await rawAnswer(server.url, `GET ${path} HTTP/1.0\r\nHost: ${host}\r\n\r\n`);
      const [head = "", ...blocks] = answer.split(/\r?\n\r?\n/);
      expect(head.toLowerCase()).not.toContain("transfer-encoding");
      expect(
        blocks
          .filter((block) => block.includes("data: {"))
          .map((block) => block.replace(/^id: .*\n/, "").slice(0, 7)),
      ).toEqual(["data: {", "data: {", "data: {"]);
      expect(answer).not.toMatch(/^[0-9a-f]+\r$/m);
    }
    const replay = await rawAnswer(
      server.url,
      `GET ${runPath(run_id, "replay.jsonl")} HTTP/1.0\r\nHost: ${host}\r\n\r\n`,
    );
    const body = replay.slice(replay.indexOf("\r\n\r\n") + 4);
    expect(
      body
        .trimEnd()
        .split("\n")
        .map((line) => (JSON.parse(line) as { seq: number }).seq),
    ).toEqual([1, 2, 3]);
  });
});

describe("a proxy that keeps its connections", () => {
  it("for a minute never meets one that this server is closing", async () => {
    const raw = await rawConnection(server.url);
    raw.write(requestText(server.url, "GET", "/healthz", []));
    await raw.until((answer) => answer.includes("\r\n\r\n"));
    expect(Number(/^keep-alive: timeout=(\d+)/im.exec(raw.text)?.[1])).toBeGreaterThan(60);
    raw.socket.destroy();
  });
});

describe("a client that sends requests without waiting", () => {
  it("gets the answers in order, streams among them", async () => {
    const raw = await rawConnection(server.url);
    const live = await createRun(server.url);
    raw.write(
      [
        requestText(server.url, "GET", "/livez"),
        requestText(server.url, "GET", streamPath({ run_id })),
        requestText(server.url, "GET", "/readyz"),
        requestText(server.url, "GET", streamPath({ run_id: live })),
        requestText(server.url, "GET", "/healthz", ["Connection: close"]),
      ].join(""),
    );
    await raw.until((answer) => answer.includes('"running"', answer.indexOf('"ready"')));
    await append(server.url, live, text("later"), lifecycle("done"));
    await raw.ended;
    const order = [...raw.text.matchAll(/"status":"\w+"|"state":"\w+"/g)].map(([what]) => what);
    expect(order).toEqual([
      '"status":"ok"',
      '"state":"running"',
      '"state":"done"',
      '"status":"ready"',
      '"state":"running"',
      '"state":"done"',
      '"status":"ok"',
    ]);
    expect(raw.text.match(/HTTP\/1\.1 200 OK/g)).toHaveLength(5);
  });

  it("has its appends committed in order", async () => {
    const own = await createRun(server.url);
    const raw = await rawConnection(server.url);
    const posts = Array.from({ length: 30 }, (_, i) =>
      requestText(
        server.url,
        "POST",
        runPath(own, "events"),
        ["Content-Type: application/json"],
        JSON.stringify([text(`${i}`)]),
      ),
    );
    raw.write(posts.join(""));
    await raw.until((answer) => answer.match(/"last_pos"/g)?.length === 30);
    raw.socket.destroy();
    const said = (await allEvents(server.url, own)).filter((e) => e.type === "text.delta");
    expect(said.map((e) => (e.payload as { text: string }).text)).toEqual(posts.map((_, i) => `${i}`));
  });

  it("has a hundred of them kept until their turn, and no more", async () => {
    const live = await createRun(server.url);
    const first = requestText(server.url, "GET", streamPath({ run_id: live }));
    const next = requestText(server.url, "GET", "/livez");
    const [patient, hasty] = [await rawConnection(server.url), await rawConnection(server.url)];
    patient.write(first + next.repeat(100));
    hasty.write(first + next.repeat(100));
    await hasty.until((answer) => answer.includes('"running"'));
    hasty.write(next);
    await hasty.ended;
    expect(hasty.text.match(/HTTP\/1\.1 200 OK/g)).toHaveLength(1);
    await patient.until((answer) => answer.includes('"running"'));
    await append(server.url, live, lifecycle("done"));
    await patient.until((answer) => answer.match(/HTTP\/1\.1 200 OK/g)?.length === 101);
    // Those that were answered have left room for others.
    patient.write(next.repeat(100));
    await patient.until((answer) => answer.match(/HTTP\/1\.1 200 OK/g)?.length === 201);
    patient.socket.destroy();
  });

  it.each([
    ["refused", () => "/v1/agent/nowhere", "404"],
    ["taken", () => streamPath({ run_id }), "101"],
  ])("gets their answers before that to its upgrade, which is %s", async (_, path, last) => {
    const raw = await rawConnection(server.url);
    const create = requestText(
      server.url,
      "POST",
      "/v1/agent/runs",
      ["Content-Type: application/json"],
      '{"producer":"external"}',
    );
    raw.write(create + create + requestText(server.url, "GET", path(), upgradeLines));
    await raw.until((answer) => answer.match(/HTTP\/1\.1 \d{3}/g)?.length === 3);
    const statuses = [...raw.text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => status);
    expect(statuses).toEqual(["201", "201", last]);
    raw.socket.destroy();
  });

  it("gets a long answer to its end before that to its upgrade", async () => {
    const raw = await rawConnection(server.url);
    const long = await record(server.url, [text("x".repeat(300_000)), lifecycle("done")]);
    const page = requestText(server.url, "GET", runPath(long, "events?dialect=runwire"));
    raw.write(page + requestText(server.url, "GET", "/v1/agent/nowhere", upgradeLines));
    await raw.until((answer) => answer.includes("HTTP/1.1 404"));
    expect(raw.text.indexOf("HTTP/1.1 404")).toBeGreaterThan(300_000);
    raw.socket.destroy();
  });

  it("is not taken at its word where a body is announced twice", async () => {
    const smuggled = await rawAnswer(
      server.url,
      `POST ${runPath(run_id, "events")} HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    );
    expect(smuggled).toMatch(/^HTTP\/1\.1 400 /);
  });
});

describe("a client that speaks more than HTTP/1.1", () => {
  it("is answered as if it did not, whatever it offers to upgrade to", async () => {
    const body = '{"prompt":"x","producer":"external"}';
    const created = await rawAnswer(
      server.url,
      `POST /v1/agent/runs HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\n` +
        `HTTP2-Settings: AAMAAABkAAQAAP__\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    expect(created).toMatch(/^HTTP\/1\.1 201 /);
    expect(created).toContain('"run_id":"run_');
  });

  it("may write the characters of an id as an address does", async () => {
    const root = await createRun(server.url);
    const child_id = `run_kid:${root}`;
    await append(server.url, root, say("child.spawn", { child_id }));
    const encoded = await call(server.url, "GET", `/v1/agent/runs/${encodeURIComponent(child_id)}`);
    expect([encoded.status, encoded.body.run_id]).toEqual([200, child_id]);
    expect((await call(server.url, "GET", "/v1/agent/runs/%E0%A4%A")).status).toBe(404);
  });

  it("may write the whole address, as it would to a proxy", async () => {
    const answer = await rawAnswer(
      server.url,
      `GET ${server.url}/v1/agent/runs?limit=1 HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`,
    );
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
  });

  it("whose handshake is none is told what is missing, in the same form as everybody", async () => {
    const run_id = await createRun(server.url);
    const bare = `GET ${runPath(run_id, "stream")} HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n`;
    for (const more of ["", "Sec-WebSocket-Version: 13\r\n", "Sec-WebSocket-Key: x\r\n"]) {
      const answer = await rawAnswer(server.url, `${bare}${more}\r\n`);
      expect(answer).toMatch(/^HTTP\/1\.1 400 /);
      expect(answer).toContain("KAI-STREAM-FRAME-0002");
    }
  });

  it("that does not speak HTTP at all is told so in the same form as everybody", async () => {
    const answer = await rawAnswer(server.url, "HELLO\r\n\r\n");
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(answer).toContain("KAI-REQUEST-BODY-0001");
    const swollen = await rawAnswer(
      server.url,
      `GET /livez HTTP/1.1\r\nHost: ${host}\r\nX: ${"x".repeat(20_000)}\r\n\r\n`,
    );
    expect(swollen).toMatch(/^HTTP\/1\.1 431 /);
  });
});
