// What the log tells of requests and streams, what it never tells, and the id by which an answer is found in it.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { DatabaseSync } from "@photostructure/sqlite";
import type { Facts } from "@runwire/protocol";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  append,
  call,
  codeOf,
  createRun,
  lifecycle,
  messageOf,
  runPath,
  say,
  text,
  tryAppend,
} from "./calls.js";
import { parseMetrics, total } from "./prometheus-text.js";
import { rawAnswer, rawConnection, requestText } from "./raw-http.js";
import { openReading, type Reading, readAll, streamPath, wireNames } from "./readers.js";
import { type ServerProcess, startServer } from "./server-process.js";

const folder = mkdtempSync(join(tmpdir(), "runwire-logs-"));
const runwire = [
  process.execPath,
  fileURLToPath(new URL("../../../cli/bin/runwire.js", import.meta.url)),
  "serve",
];
let server: ServerProcess;
let url: string;

beforeAll(async () => {
  server = await startServer(runwire, join(folder, "data"), ["--log", "debug", "--durability", "os"]);
  url = server.url;
});

afterAll(async () => {
  await server.kill("SIGKILL");
  rmSync(folder, { recursive: true });
});

const linesOf = ({ stderr }: ServerProcess): readonly Facts[] =>
  stderr
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Facts);

/** The line about a request, once it is written. */
async function lineAbout(request_id: string | null | undefined): Promise<Facts> {
  const find = (): Facts | undefined =>
    linesOf(server).find((line) => line.what === "request" && line.request_id === request_id);
  await expect.poll(find).toBeDefined();
  return find() as Facts;
}

const fresh = /^req_[0-9A-Z]{26}$/;

describe("an answer", () => {
  it("carries the id of its request, whatever the answer is [RW-ERR-5]", async () => {
    const run_id = await createRun(url);
    const idOf = (headers: Headers | Reading["headers"]): unknown =>
      headers instanceof Headers ? headers.get("runwire-request-id") : headers["runwire-request-id"];
    const ids: unknown[] = [];
    for (const [method, path, status] of [
      ["GET", "/livez", 200],
      ["POST", "/v1/agent/runs", 400],
      ["GET", "/nowhere", 404],
      ["PUT", "/livez", 405],
      ["GET", "/v1/agent/runs/run_nobody/stream", 404],
    ] as const) {
      const reply = await call(url, method, path, method === "POST" ? "{" : undefined);
      expect(reply.status).toBe(status);
      ids.push(idOf(reply.headers));
    }
    for (const wire of wireNames) {
      const reading = await openReading(wire, url, streamPath({ run_id }));
      expect([101, 200]).toContain(reading.status);
      ids.push(idOf(reading.headers));
      reading.stop();
    }
    ids.push(idOf((await readAll("websocket", url, streamPath({ run_id: "run_nobody" }))).headers));
    await append(url, run_id, lifecycle("error"));
    const finished = await readAll("sse", url, streamPath({ run_id, after: 2 }));
    expect(finished.status).toBe(204);
    ids.push(idOf(finished.headers));
    const unreadable = await rawAnswer(url, "nonsense\r\n\r\n");
    ids.push(/\r\nRunwire-Request-Id: (\S+)\r\n/.exec(unreadable)?.[1]);

    for (const id of ids) expect(id).toMatch(fresh);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it("carries the id that was given, where it is one [RW-ERR-5]", async () => {
    for (const given of ["a", "Trace-1_2.3", "x".repeat(64)]) {
      const { headers } = await call(url, "GET", "/livez", undefined, { "X-Request-Id": given });
      expect(headers.get("runwire-request-id")).toBe(given);
    }
    for (const given of ["", "a b", "x".repeat(65), "a/b", "{}", "a,b"]) {
      const { headers } = await call(url, "GET", "/livez", undefined, { "X-Request-Id": given });
      expect(headers.get("runwire-request-id")).toMatch(fresh);
    }
    const twice = ["X-Request-Id: a", "X-Request-Id: b", "Connection: close"];
    expect(await rawAnswer(url, requestText(url, "GET", "/livez", twice))).toMatch(
      /\r\nRunwire-Request-Id: req_/,
    );
  });

  it("that is a 500, or tells a WebSocket of a bug, ends with the id under which the log has the rest [RW-ERR-5]", async () => {
    const data = join(folder, "broken");
    const broken = await startServer(runwire, data, ["--durability", "os"]);
    try {
      const db = new DatabaseSync(join(data, "runwire.db"));
      db.exec("DROP TABLE tombstones");
      db.close();
      const path = "/v1/agent/runs/run_nobody";
      const reply = await call(broken.url, "GET", path, undefined, { "X-Request-Id": "find-me" });
      expect([reply.status, codeOf(reply)]).toEqual([500, "KAI-SERVER-BUG-0001"]);
      expect(messageOf(reply)).toMatch(/find-me$/);

      const named = { "X-Request-Id": "find-me-too" };
      const reading = await openReading("websocket", broken.url, "/v1/agent/stream", named);
      reading.send({ type: "subscribe", run_id: "run_nobody" });
      await reading.until(({ heard }) => heard.length === 1);
      reading.stop();
      const { error } = JSON.parse(reading.heard[0]?.data ?? "") as { error: Facts };
      expect(error).toMatchObject({
        code: "KAI-SERVER-BUG-0001",
        message: expect.stringMatching(/find-me-too$/) as string,
      });

      await expect.poll(() => linesOf(broken).length).toBe(2);
      for (const [i, line] of linesOf(broken).entries()) {
        const request_id = ["find-me", "find-me-too"][i];
        expect(line).toMatchObject({ level: "error", what: "bug", request_id });
        expect(line.stack).toContain("no such table");
      }
    } finally {
      await broken.kill("SIGKILL");
    }
  });
});

describe("the log", () => {
  it("has a line for the start, for leaving and for the end", async () => {
    const short = await startServer(runwire, join(folder, "short"), ["--log", "info", "--durability", "os"]);
    await createRun(short.url);
    await short.kill("SIGTERM");
    const lines = linesOf(short);
    expect(lines.map(({ what }) => what)).toEqual(["started", "request", "leaving", "stopped"]);
    expect(lines[0]).toMatchObject({ level: "info", url: short.url, durability: "os", runs: 0 });
    expect(lines[0]?.version).toMatch(/^\d+\.\d+\.\d+$/);
    expect(lines[0]?.ms).toBeGreaterThan(0);
    const again = await startServer(runwire, join(folder, "short"), ["--log", "info", "--durability", "os"]);
    await again.kill("SIGTERM");
    expect(linesOf(again)[0]).toMatchObject({ what: "started", runs: 1 });
  });

  it("calls no client that hangs up in the middle of its body a bug", async () => {
    const run_id = await createRun(url);
    const sent = `{"type":"text.delta","payload":{"text":"kept"}}\n{"type":`;
    for (const head of [
      ["Content-Type: application/json", "Content-Length: 1000"],
      ["Content-Type: application/x-ndjson", "Transfer-Encoding: chunked"],
    ]) {
      const raw = await rawConnection(url);
      const id = `hung-up-${head[0]?.length}`;
      raw.write(requestText(url, "POST", runPath(run_id, "events"), [...head, `X-Request-Id: ${id}`]));
      raw.write(`${sent.length.toString(16)}\r\n${sent}\r\n`);
      if (head[1]?.startsWith("Transfer")) await raw.until((answer) => answer.includes("last_pos"));
      raw.socket.destroy();
      expect(await lineAbout(id)).toMatchObject({ level: "info", route: "/v1/agent/runs/:id/events" });
    }
    expect(linesOf(server).filter(({ level }) => level === "error" || level === "warn")).toEqual([]);
  });

  it("has a line for each request, by the pattern of its route", async () => {
    const run_id = await createRun(url);
    const { headers, text: body } = await call(url, "GET", `/v1/agent/runs/${run_id}`);
    const line = await lineAbout(headers.get("runwire-request-id"));
    expect(line).toMatchObject({
      level: "info",
      method: "GET",
      route: "/v1/agent/runs/:id",
      status: 200,
      tenant: "default",
    });
    expect(line.ms).toBeGreaterThan(0);
    expect(line.bytes).toBeGreaterThan(body.length);
    const missing = await call(url, "GET", "/nowhere/at/all");
    expect(await lineAbout(missing.headers.get("runwire-request-id"))).toMatchObject({
      route: null,
      status: 404,
      code: "KAI-REQUEST-PATH-0001",
    });
  });

  it("has a stream's opening and closing, with how it ended and what it sent", async () => {
    const run_id = await createRun(url);
    const reading = await openReading("ndjson", url, streamPath({ run_id, dialect: "runwire" }));
    await append(url, run_id, say("tool.start", { call_id: "c", tool: "t" }), lifecycle("error"));
    await reading.ended;
    const closed = (): Facts | undefined =>
      linesOf(server).find((line) => line.what === "stream closed" && line.run_id === run_id);
    await expect.poll(closed).toBeDefined();
    expect(closed()).toMatchObject({ level: "debug", reason: "finished", dropped: 0 });
    expect(closed()?.messages).toBe(reading.events.length);
    expect(linesOf(server)).toContainEqual(
      expect.objectContaining({ level: "debug", what: "stream opened", run_id, cursor: 0 }),
    );
  });

  it("and errors and metrics never have what was planted in a request [RW-ERR-4]", async () => {
    let planted = 0;
    const plant = (): string => {
      planted += 1;
      return `hunter2-${planted}`;
    };
    const told: string[] = [];
    const ask = async (
      method: string,
      path: string,
      body?: string,
      headers?: { readonly [name: string]: string },
    ): Promise<void> => {
      const { status, text } = await call(url, method, path, body, headers);
      if (status >= 400) told.push(text);
    };
    const run_id = await createRun(url, { prompt: plant(), metadata: { note: plant() } });
    const secretive = (): { readonly [name: string]: string } => ({
      Authorization: `Bearer ${plant()}`,
      Cookie: `session=${plant()}`,
      "X-Request-Id": `no id ${plant()}`,
      "Last-Event-ID": plant(),
      "User-Agent": plant(),
      Referer: `http://127.0.0.1/${plant()}`,
    });
    // Headers and queries, on every kind of answer.
    for (const path of [
      "/livez",
      "/metrics",
      `/v1/agent/runs/${run_id}`,
      `/v1/agent/runs/${run_id}/events`,
      `/v1/agent/runs/${run_id}/snapshot`,
      "/v1/agent/runs",
      "/v1/nowhere",
      "/v1/agent/runs/run_nobody/events",
    ]) {
      await ask("GET", `${path}?ticket=${plant()}&after=${plant()}&limit=${plant()}`, undefined, secretive());
      await ask("GET", `${path}?detail=${plant()}`, undefined, secretive());
      await ask("GET", `${path}?dialect=${plant()}`, undefined, secretive());
      await ask("DELETE", `${path}?ticket=${plant()}x`, undefined, secretive());
    }
    await ask("GET", `/v1/${plant()}/${plant()}`);
    await ask("GET", `/v1/agent/runs/%FF${plant()}`);
    // Bodies: not JSON, not what is asked for, and as they should be.
    const other = await createRun(url);
    for (const body of [
      `{"text": ${plant()}`,
      `"${plant()}"`,
      `[{"type":"text.delta","payload":{"text":["${plant()}"]}}]`,
      `[{"type":"text.delta","payload":{"text":"${plant()}"}}, {"type":"text.delta"}]`,
      `[{"type":"tool.start","payload":{"call_id":"c","tool":"t","input":"${plant()}"}}]`,
      `[{"type":"run.lifecycle","payload":{"state":"${plant()}"}}]`,
      `[{"type":"run.lifecycle","payload":{"state":"paused","reason":"${plant()}"}}]`,
      `{"password":"${plant()}"}`,
    ]) {
      await ask("POST", runPath(other, "events"), body, secretive());
      await ask("POST", "/v1/agent/runs", body, secretive());
      await ask("POST", runPath(other, "approve_plan"), body, secretive());
      await ask("POST", runPath(other, "steer"), body, secretive());
      await ask("POST", runPath(other, "approvals/appr_1"), body, secretive());
    }
    await tryAppend(url, other, [text(plant())]);
    // An append session with a bad line.
    const lines = `{"type":"text.delta","payload":{"text":"${plant()}"}}\n{"type": ${plant()}}\n`;
    told.push(
      await rawAnswer(
        url,
        `${requestText(url, "POST", runPath(other, "events"), [
          "Connection: close",
          "Content-Type: application/x-ndjson",
          "Transfer-Encoding: chunked",
        ])}${lines.length.toString(16)}\r\n${lines}\r\n0\r\n\r\n`,
      ),
    );
    // Streams, on every wire, and what is said on one.
    for (const wire of wireNames) {
      const reading = await openReading(wire, url, streamPath({ run_id: other }), {
        "Last-Event-ID": plant(),
        "User-Agent": plant(),
      });
      await reading.until(({ events }) => events.length > 0);
      reading.stop();
      told.push(
        (await readAll(wire, url, `${streamPath({ run_id: other })}&ticket=${plant()}`, secretive())).text,
      );
      told.push((await readAll(wire, url, `${streamPath({ run_id: "run_nobody" })}&ticket=${plant()}`)).text);
      told.push((await readAll(wire, url, `${streamPath({ run_id: other })}&ticket=${plant()}`)).text);
      told.push((await readAll(wire, url, streamPath({ run_id: other, detail: plant() }))).text);
    }
    const several = await openReading("websocket", url, "/v1/agent/stream");
    several.send(`{"type":"subscribe", ${plant()}`);
    several.send({ type: plant(), run_id: other });
    await several.until(({ heard }) => heard.length === 2);
    told.push(...several.heard.map(({ data }) => data));
    several.stop();
    told.push(await rawAnswer(url, `${plant()} / ${plant()}\r\n${plant()}\r\n\r\n`));
    const foreign = [`Origin: http://${plant()}.example`, "Connection: close"];
    told.push(await rawAnswer(url, requestText(url, "GET", "/livez", foreign)));

    const last = await call(url, "GET", "/livez");
    await lineAbout(last.headers.get("runwire-request-id"));
    const { text: metrics } = await call(url, "GET", "/metrics");
    expect(planted).toBeGreaterThan(300);
    expect(told.length).toBeGreaterThan(50);
    expect(server.stderr.split("\n").filter((line) => line.includes("hunter2"))).toEqual([]);
    expect(metrics.split("\n").filter((line) => line.includes("hunter2"))).toEqual([]);
    expect(told.filter((body) => body.includes("hunter2"))).toEqual([]);
    expect(linesOf(server).filter(({ level }) => level === "error")).toEqual([]);
  });
});

describe("a server whose stderr is closed", () => {
  it("goes on, and counts the lines that nobody took", async () => {
    const deaf = ["bash", "-c", 'exec "$0" "$@" 2> >(exec true)', ...runwire];
    const closed = await startServer(deaf, join(folder, "deaf"), ["--log", "debug", "--durability", "os"]);
    try {
      const metrics = async () => parseMetrics((await call(closed.url, "GET", "/metrics")).text);
      await expect
        .poll(async () => total(await metrics(), "runwire_log_lines_dropped_total"))
        .toBeGreaterThan(10);
      const run_id = await createRun(closed.url);
      await append(closed.url, run_id, lifecycle("error"));
      expect((await readAll("sse", closed.url, streamPath({ run_id }))).events.length).toBe(2);
    } finally {
      expect(await closed.kill("SIGTERM")).toEqual({ code: 0, signal: null });
    }
  });
});
