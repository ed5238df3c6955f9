// What attackers send to a running server, and that it stays the same for everybody else. Foreign hosts and pages are
// in http.test.ts, other people's blobs and paths out of their folder in blobs.test.ts.

import { join } from "node:path";
import type { Event } from "@runwire/protocol";
import { startGateway } from "@runwire/server";
import { afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type Bystander, bystander } from "./bystander.js";
import {
  allEvents,
  append,
  call,
  codeOf,
  control,
  createRun,
  lifecycle,
  messageOf,
  type Reply,
  runPath,
  say,
  text,
  tryAppend,
} from "./calls.js";
import { isSoak } from "./chance.js";
import { dechunked, rawAnswer, rawConnection, requestText, upgradeLines } from "./raw-http.js";
import { readAll, streamPath } from "./readers.js";
import { underTest } from "./under-test.js";

let host: string;
let other: Bystander;

const server = underTest(startGateway);

beforeAll(async () => {
  host = new URL(server.url).host;
});

beforeEach(async () => {
  other = await bystander(server.url);
});

afterEach(async () => {
  expect(await other.leave()).toBeGreaterThan(0);
  expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
});

const lines = { "Content-Type": "application/x-ndjson" };

async function send(path: string, body: Uint8Array, type = "application/json"): Promise<Reply> {
  const response = await fetch(server.url + path, {
    method: "POST",
    body,
    headers: { "Content-Type": type },
  });
  const answer = await response.text();
  return {
    status: response.status,
    headers: response.headers,
    text: answer,
    body: JSON.parse(answer) as Reply["body"],
  };
}

/** Bytes as one chunk of a session; the answer, up to its error line. */
async function sessionAnswer(run_id: string, body: Uint8Array): Promise<string> {
  const raw = await rawConnection(server.url);
  const head = ["Transfer-Encoding: chunked", "Content-Type: application/x-ndjson"];
  raw.write(requestText(server.url, "POST", runPath(run_id, "events"), head));
  raw.write(`${body.length.toString(16)}\r\n`);
  raw.write(body);
  raw.write("\r\n0\r\n\r\n");
  await raw.until((answer) => answer.endsWith("\r\n0\r\n\r\n"));
  raw.socket.destroy();
  return raw.text;
}

/** Nothing but what every run begins with. */
const expectEmpty = async (run_id: string): Promise<void> =>
  expect(await allEvents(server.url, run_id)).toHaveLength(2);

describe("who sends too much", () => {
  it("is told so, and nothing of it is stored [RW-LIMIT-1]", async () => {
    const run_id = await createRun(server.url);
    const mebibyte = 1024 * 1024;
    const event = await tryAppend(server.url, run_id, [say("custom", { value: "x".repeat(10 * mebibyte) })]);
    const batch = await call(server.url, "POST", runPath(run_id, "events"), " ".repeat(17 * mebibyte));
    const many = await tryAppend(server.url, run_id, Array(10_001).fill(text("x")));
    const line = await call(
      server.url,
      "POST",
      runPath(run_id, "events"),
      `{${" ".repeat(9 * mebibyte)}}\n`,
      lines,
    );
    const body = await control(server.url, run_id, "steer", { text: "x".repeat(5 * mebibyte) });
    for (const reply of [event, batch, many, line, body])
      expect([reply.status, codeOf(reply)]).toEqual([413, "KAI-REQUEST-SIZE-0001"]);
    await expectEmpty(run_id);
  });
});

describe("who sends what is no JSON", () => {
  const good = `${JSON.stringify(text("x"))}\n`;
  const noUtf8 = Buffer.concat([Buffer.from('{"text":"'), Buffer.from([0xc3, 0x28]), Buffer.from('"}\n')]);
  const overlong = Buffer.from([0x22, 0xc0, 0xaf, 0x22]);
  const surrogate = Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22]);

  it.each([
    ["a byte that is no UTF-8", noUtf8],
    ["an overlong byte sequence", overlong],
    ["a surrogate in bytes", surrogate],
  ])("in any body gets %s refused", async (_, bad) => {
    const run_id = await createRun(server.url);
    for (const [path, type] of [
      ["/v1/agent/runs", "application/json"],
      [runPath(run_id, "steer"), "application/json"],
      [runPath(run_id, "events"), "application/json"],
      [runPath(run_id, "events"), "application/x-ndjson"],
    ] as const) {
      const refused = await send(path, Buffer.concat([Buffer.from(good), bad]), type);
      expect([path, refused.status, codeOf(refused)]).toEqual([path, 400, "KAI-REQUEST-BODY-0001"]);
      expect(messageOf(refused)).toContain("UTF-8");
    }
    await expectEmpty(run_id);
    const answer = await sessionAnswer(run_id, Buffer.concat([Buffer.from(good), bad]));
    expect(answer).toContain('{"last_pos":3}');
    expect(answer).toMatch(/"KAI-REQUEST-BODY-0001","message":"[^"]*line 2: it is not valid UTF-8/);
  });

  it.each([
    "{",
    '{"type":}',
    "nonsense",
    '{"a":1}{"b":2}',
    "'x'",
    "{'a':1}",
    "NaN",
    "01",
    '"\u0001"',
    "[1,]",
  ])("in any body gets %j refused with its line", async (bad) => {
    const run_id = await createRun(server.url);
    for (const path of ["/v1/agent/runs", runPath(run_id, "steer"), runPath(run_id, "events")]) {
      const refused = await call(server.url, "POST", path, bad);
      expect([path, refused.status, codeOf(refused)]).toEqual([path, 400, "KAI-REQUEST-BODY-0001"]);
      // An error holds no payload.
      expect(refused.text).not.toContain("nonsense");
    }
    const refused = await call(
      server.url,
      "POST",
      runPath(run_id, "events"),
      `${good}${bad}\n${good}`,
      lines,
    );
    expect([refused.status, codeOf(refused)]).toEqual([422, "KAI-STREAM-PROTO-0001"]);
    expect(messageOf(refused)).toContain("line 2");
    await expectEmpty(run_id);
    const answer = await sessionAnswer(run_id, Buffer.from(`${good}${bad}\n${good}`));
    expect(answer).toMatch(/"KAI-STREAM-PROTO-0001","message":"[^"]*line 2/);
    expect(await allEvents(server.url, run_id)).toHaveLength(3);
  });
});

describe("who sends JSON to choke on", () => {
  it("gets a list that is too long refused as a whole, not item by item", async () => {
    const run_id = await createRun(server.url);
    const list = `[${"0,".repeat(10_000)}0]`;
    for (const [path, body, names] of [
      ["/v1/agent/runs", `{"producer":"external","messages":${list}}`, "messages"],
      ["/v1/agent/runs", `{"producer":"external","prompt":"x","tools":${list}}`, "tools"],
      [runPath(run_id, "children"), `{"prompt":"x","tools_allowed":${list}}`, "tools_allowed"],
      [runPath(run_id, "approve_plan"), `{"steps":[{"title":"x","est_tools":${list}}]}`, "steps.0.est_tools"],
    ] as const) {
      const reply = await call(server.url, "POST", path, body);
      expect([reply.status, codeOf(reply)]).toEqual([422, "KAI-REQUEST-BODY-0002"]);
      expect(messageOf(reply)).toContain(`\`${names}\` may have at most 10000 items`);
    }
  });

  const nested = (depth: number): string => `${"[".repeat(depth)}${"]".repeat(depth)}`;
  const wide = `{${Array.from({ length: 10_001 }, (_, i) => `"k${i}":0`).join()}}`;

  it.each([
    ["100 levels", `{"a":${nested(100)}}`, "nested deeper than 64"],
    ["a hundred thousand levels", `{"a":${nested(100_000)}}`, "nested deeper than 64"],
    ["10,001 keys", wide, "more than 10000 keys"],
    ["a number that overflows", '{"a":[1e400]}', "a number that overflows"],
    ["one that overflows below", '{"a":{"b":-1e999}}', "a number that overflows"],
  ])("gets %s refused, with the event or the line", async (_, payload, names) => {
    const run_id = await createRun(server.url);
    const draft = `{"type":"custom","payload":${payload}}`;
    const batch = await call(
      server.url,
      "POST",
      runPath(run_id, "events"),
      `[${JSON.stringify(text("x"))},${draft}]`,
    );
    const ndjson = `${JSON.stringify(text("x"))}\n${draft}\n`;
    const byLine = await call(server.url, "POST", runPath(run_id, "events"), ndjson, lines);
    for (const [reply, where] of [
      [batch, "event 2"],
      [byLine, "line 2"],
    ] as const) {
      expect([reply.status, codeOf(reply)]).toEqual([422, "KAI-STREAM-PROTO-0001"]);
      expect(messageOf(reply)).toContain(`${where}: `);
      expect(messageOf(reply)).toContain(names);
    }
    const koder = await call(
      server.url,
      "POST",
      runPath(run_id, "events?dialect=koder"),
      `[{"type":"tool.start","payload":{"call_id":"c","tool":"t","args":${payload}}}]`,
    );
    expect([koder.status, codeOf(koder)]).toEqual([422, "KAI-STREAM-PROTO-0001"]);
    const body = await call(
      server.url,
      "POST",
      "/v1/agent/runs",
      `{"producer":"external","metadata":${payload}}`,
    );
    expect([body.status, codeOf(body)]).toEqual([422, "KAI-REQUEST-BODY-0002"]);
    await expectEmpty(run_id);
    expect(await sessionAnswer(run_id, Buffer.from(ndjson))).toMatch(/"message":"[^"]*line 2: /);
  });

  it("gets other numbers back as JSON.parse reads them", async () => {
    const run_id = await createRun(server.url);
    const numbers =
      "[-0,0.1,1e308,-1e308,5e-324,1e-400,12345678901234567890,9007199254740993,1E2,0.30000000000000004]";
    await call(
      server.url,
      "POST",
      runPath(run_id, "events"),
      `[{"type":"custom","payload":{"value":${numbers}}}]`,
    );
    const [, , event] = await allEvents(server.url, run_id);
    const { value } = (event as Event).payload as { value: readonly number[] };
    // Equal as numbers are: -0 is 0.
    expect(value.map((n) => n + 0)).toEqual((JSON.parse(numbers) as number[]).map((n) => n + 0));
  });

  it("pollutes nothing, wherever the member stands", async () => {
    const run_id = await createRun(server.url);
    for (const member of [
      '"__proto__":{"polluted":1}',
      '"constructor":{"prototype":{"polluted":1}}',
      '"a":{"b":[{"__proto__":{"polluted":1}}]}',
      '"a":[{"constructor":{"prototype":{"polluted":1}}}]',
    ]) {
      for (const [path, body] of [
        ["/v1/agent/runs", `{"producer":"external","metadata":{${member}}}`],
        [runPath(run_id, "steer"), `{"text":"x",${member}}`],
        [runPath(run_id, "approvals/appr_1"), `{"decision":"once","input":{${member}}}`],
        [runPath(run_id, "children"), `{"prompt":"x",${member}}`],
        ["/v1/stream-tickets", `{"run_id":"${run_id}",${member}}`],
      ] as const) {
        const refused = await call(server.url, "POST", path, body);
        expect([path, member, refused.status]).toEqual([path, member, 422]);
      }
      const draft = `{"type":"custom","payload":{${member}},${member}}`;
      expect((await call(server.url, "POST", runPath(run_id, "events"), `[${draft}]`)).status).toBe(200);
      expect((await call(server.url, "GET", runPath(run_id, "events?dialect=runwire"))).text).toContain(
        `{${member}}`,
      );
    }
    expect((await call(server.url, "GET", "/v1/agent/runs?__proto__=x")).status).toBe(400);
    expect((await call(server.url, "GET", "/v1/agent/runs?constructor=x")).status).toBe(400);
  });
});

/** Characters that end lines, strings or patience somewhere. */
const breakers = [
  "\r",
  "\n",
  "\r\n\r\n",
  "\0",
  "\u0085",
  "\u2028",
  "\u2029",
  "\uFEFF",
  "\uD800",
  "\uDFFF",
  "\u001b[2J",
  "\r\rdata: {}\r\r",
  "\n\nid: 99\nevent: closing\ndata: {}\n\n",
  "\nretry: 1\n",
];

interface Block {
  readonly id?: string;
  readonly data: string;
}

/** The letter of the standard, and nothing that is not sent here: any other field is an injection. */
function strictBlocks(body: string): readonly Block[] {
  const blocks: Block[] = [];
  let id: string | undefined;
  let data: string[] = [];
  for (const line of body.split(/\r\n|\r|\n/)) {
    if (line === "") {
      if (data.length > 0) blocks.push({ ...(id === undefined ? {} : { id }), data: data.join("\n") });
      id = undefined;
      data = [];
    } else if (line.startsWith("id: ")) id = line.slice(4);
    else if (line.startsWith("data: ")) data.push(line.slice(6));
    else if (!line.startsWith(":")) throw new Error(`an unknown line: ${JSON.stringify(line)}`);
  }
  return blocks;
}

describe("who puts line breaks where they break something", () => {
  it("gets every text back as it was, in one event each, however strictly the stream is read [RW-SSE-2]", async () => {
    const run_id = await createRun(server.url, {
      prompt: breakers.join("x"),
      model: breakers.join("y"),
      tools: breakers,
      metadata: Object.fromEntries(breakers.map((bad, i) => [`${bad}${i}`, bad])),
    });
    const drafts = breakers.flatMap((bad, i) => [
      say("tool.start", { call_id: `call_${i}`, tool: `t${bad}`, args: { [bad]: bad } }),
      say("tool.end", { call_id: `call_${i}`, ok: false, output: bad, error: { code: bad, message: bad } }),
      say("title", { title: `t${bad}` }),
      say("custom", { name: bad, value: { [bad]: [bad] } }),
      say("text.delta", { text: bad }),
      say("reasoning.delta", { text: bad }),
    ]);
    await append(server.url, run_id, ...drafts);
    await append(server.url, run_id, say("run.lifecycle", { state: "aborted", reason: breakers.join("z") }));
    const path = streamPath({ run_id, dialect: "runwire", detail: "full" });
    const stored = await allEvents(server.url, run_id);
    const own = stored.filter((e) => ["tool.start", "tool.end", "title", "custom"].includes(e.type));
    expect(own.map(({ type, payload }) => ({ type, payload }))).toEqual(
      drafts.filter(({ type }) => !type.endsWith(".delta")).map(({ type, payload }) => ({ type, payload })),
    );
    for (const type of ["text.delta", "reasoning.delta"]) {
      const said = stored.filter((e) => e.type === type).map((e) => (e.payload as { text: string }).text);
      expect(said.join("")).toBe(breakers.join(""));
    }
    const strict = strictBlocks(
      dechunked(await rawAnswer(server.url, requestText(server.url, "GET", path, ["Connection: close"]))),
    );
    expect(strict.map(({ data }) => JSON.parse(data) as Event)).toEqual(stored);
    expect(strict.map(({ id }) => Number(id))).toEqual(stored.map(({ pos }) => pos));
    for (const wire of ["sse", "ndjson", "websocket"] as const)
      expect((await readAll(wire, server.url, path)).events).toEqual(stored);
    const run = await call(server.url, "GET", `/v1/agent/runs/${run_id}`);
    expect(run.body.reason).toBe(breakers.join("z"));
    expect(run.body.metadata).toEqual(Object.fromEntries(breakers.map((bad, i) => [`${bad}${i}`, bad])));
  });

  it.each(breakers)("gets no id and no type with %j", async (bad) => {
    const run_id = await createRun(server.url);
    for (const id of [bad, `a${bad}`, `${bad}a`, `a${bad}b`]) {
      const refused = [
        await tryAppend(server.url, run_id, [say("tool.start", { call_id: id, tool: "t", args: {} })]),
        await tryAppend(server.url, run_id, [say("approval.requested", { approval_id: id })]),
        await tryAppend(server.url, run_id, [say("child.spawn", { child_id: `run_${id}`, prompt: "x" })]),
        await tryAppend(server.url, run_id, [{ ...text("x"), child_id: id }]),
        await tryAppend(server.url, run_id, [{ ...text("x"), scope: { trace_id: id } }]),
        await tryAppend(server.url, run_id, [{ ...text("x"), scope: { [id]: "x" } }]),
        await tryAppend(server.url, run_id, [say(`x.vendor.${id}`, {})]),
        await tryAppend(server.url, run_id, [say(id as "custom", {})]),
        await call(server.url, "POST", "/v1/agent/runs", { producer: "external", session_id: id }),
        await call(server.url, "POST", "/v1/agent/runs", { producer: "external", agent: id }),
        await control(server.url, run_id, "children", { prompt: "x", child_id: `run_${id}` }),
      ];
      expect(refused.map(({ status }) => status)).toEqual(refused.map(() => 422));
    }
    await expectEmpty(run_id);
  });

  it("gets nothing into the head of an answer", async () => {
    const run_id = await createRun(server.url);
    const encoded = ["%0d%0aX-Injected:%201", "%00", "%0a", "%C2%85", "%E2%80%A8", "%ED%A0%80", "%FF", "%"];
    const paths = encoded.flatMap((bad) => [
      ...["after", "last_event_id", "after_seq", "limit", "dialect", "detail", bad].map(
        (name) => `${runPath(run_id, "events")}?${name}=${bad}`,
      ),
      `/v1/agent/runs?session_id=${bad}`,
      `/v1/agent/runs?agent=${bad}`,
      `/v1/agent/runs?cursor=${bad}`,
      `/v1/agent/stream?runs=${bad}`,
      `/v1/agent/stream?ticket=${bad}`,
      `/v1/agent/runs/${bad}`,
      `/v1/agent/runs/run_${bad}/stream`,
      `${runPath(run_id, "producers")}/${bad}`,
      `/${bad}`,
    ]);
    for (const path of paths) {
      const answer = await rawAnswer(server.url, requestText(server.url, "GET", path, ["Connection: close"]));
      const [head = ""] = answer.split("\r\n\r\n");
      expect([path, head.slice(0, 12)]).toEqual([
        path,
        expect.stringMatching(/^HTTP\/1\.1 (200|400|401|404)$/),
      ]);
      expect([path, head]).not.toEqual([path, expect.stringMatching(/injected/i)]);
    }
  });

  it("gets odd headers refused, or taken for what they are", async () => {
    const run_id = await createRun(server.url);
    const body = JSON.stringify([text("x")]);
    for (const bad of [
      "\x85",
      "\xff",
      "a b",
      "",
      "\t",
      "é",
      "x".repeat(300),
      "\x7f",
      "a\x01b",
      "a\0b",
      "a\rb",
    ]) {
      const ask = (method: string, path: string, header: string, content = "") =>
        rawAnswer(
          server.url,
          Buffer.from(
            requestText(
              server.url,
              method,
              path,
              [`${header}: ${bad}`, "Producer-Seq: 1", "Connection: close"],
              content,
            ),
            "latin1",
          ),
        );
      const producer = await ask("POST", runPath(run_id, "events"), "Producer-Id", body);
      expect([bad, producer.slice(0, 12)]).toEqual([bad, "HTTP/1.1 400"]);
      const key = await ask("POST", "/v1/agent/runs", "Idempotency-Key", '{"producer":"external"}');
      expect([bad, key.slice(0, 12)]).toEqual([bad, expect.stringMatching(/400$/)]);
      const ended = await createRun(server.url);
      await append(server.url, ended, lifecycle("aborted"));
      const cursor = await ask("GET", streamPath({ run_id: ended }), "Last-Event-ID");
      // Unusable is from the start, unless it is no HTTP at all.
      if (!cursor.startsWith("HTTP/1.1 400"))
        expect(strictBlocks(dechunked(cursor)).map(({ id }) => id)).toEqual(["1", "2"]);
    }
    await expectEmpty(run_id);
  });
});

describe("who knows the names of things inside", () => {
  it("finds no run where the server keeps a list [RW-FEED-1]", async () => {
    await createRun(server.url);
    const feed = "feed:default:runs";
    for (const [method, path, body] of [
      ["GET", `/v1/agent/runs/${feed}`, undefined],
      ["DELETE", `/v1/agent/runs/${feed}`, undefined],
      ["GET", runPath(feed, "events"), undefined],
      ["GET", runPath(feed, "stream"), undefined],
      ["GET", runPath(feed, "snapshot"), undefined],
      ["POST", runPath(feed, "events"), [text("x")]],
      ["POST", runPath(feed, "abort"), {}],
      ["POST", runPath(feed, "children"), { prompt: "x" }],
      ["GET", `/v1/agent/stream?runs=${feed}:0`, undefined],
    ] as const) {
      const reply = await call(server.url, method, path, body);
      expect([method, path, reply.status, codeOf(reply)]).toEqual([
        method,
        path,
        404,
        "KAI-RUN-MISSING-0001",
      ]);
    }
  });

  it.each([
    "/v1/blobs/..%2f..%2fetc%2fpasswd",
    "/v1/blobs/../../etc/passwd",
    "/v1/blobs/%2e%2e/%2e%2e/keys.json",
    "/v1/blobs/blob_%00",
    "/v1//agent/runs",
    "//v1/agent/runs",
    "/./v1/agent/runs",
    "/v1/agent/./runs",
    "/v1/agent/../agent/runs",
    "/v1/agent/runs/",
    "/v1%2fagent%2fruns",
    "/v1/agent/runs%00",
    "/v1/agent/runs;x=1",
    "/v1/agent/runs#x",
    "\\v1\\agent\\runs",
    "/V1/agent/runs",
    "http://evil.example/v1/agent/runs",
    "*",
  ])("finds no other way in than the route: %s", async (path) => {
    const answer = await rawAnswer(server.url, requestText(server.url, "GET", path, ["Connection: close"]));
    expect(answer).toMatch(/^HTTP\/1\.1 (400|404) /);
    expect(answer).not.toContain('"runs":');
  });
});

describe("who bends HTTP", () => {
  const post = "POST /v1/agent/runs HTTP/1.1\r\n";
  const chunked = "Transfer-Encoding: chunked\r\n";
  const bent = (): readonly (readonly [string, string, RegExp])[] => [
    ["lines that end with LF alone", `GET /livez HTTP/1.1\nHost: ${host}\n\n`, /400/],
    ["a folded header", `GET /livez HTTP/1.1\r\nHost: ${host}\r\nX: a\r\n b\r\n\r\n`, /400/],
    ["two lengths", `${post}Host: ${host}\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}x`, /400/],
    ["a length and chunks", `${post}Host: ${host}\r\nContent-Length: 4\r\n${chunked}\r\n0\r\n\r\n`, /400/],
    ["chunks and a length", `${post}Host: ${host}\r\n${chunked}Content-Length: 4\r\n\r\n0\r\n\r\n`, /400/],
    [
      "chunks that are not last",
      `${post}Host: ${host}\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n`,
      /400/,
    ],
    ["a coding of its own", `${post}Host: ${host}\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n`, /400/],
    [
      "a space before the colon",
      `${post}Host: ${host}\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n`,
      /400/,
    ],
    ["a length below zero", `${post}Host: ${host}\r\nContent-Length: -1\r\n\r\n`, /400/],
    ["a length that is no number", `${post}Host: ${host}\r\nContent-Length: 0x2\r\n\r\n{}`, /400/],
    ["a chunk below zero", `${post}Host: ${host}\r\n${chunked}\r\n-2\r\n{}\r\n0\r\n\r\n`, /400/],
    [
      "a chunk beyond all numbers",
      `${post}Host: ${host}\r\n${chunked}\r\nffffffffffffffff1\r\n{}\r\n`,
      /400/,
    ],
    ["a chunk without an end", `${post}Host: ${host}\r\n${chunked}\r\n2\r\n{}XX0\r\n\r\n`, /400/],
    [
      "endless words about a chunk",
      `${post}Host: ${host}\r\n${chunked}\r\n2;${"x".repeat(20_000)}\r\n{}\r\n`,
      /400|413/,
    ],
    ["a name with a NUL", `GET /livez HTTP/1.1\r\nHost: ${host}\r\nX\0: a\r\n\r\n`, /400/],
    ["a value with a NUL", `GET /livez HTTP/1.1\r\nHost: ${host}\r\nX: a\0b\r\n\r\n`, /400/],
    ["a Host with a user", `GET /livez HTTP/1.1\r\nHost: a@${host}\r\nConnection: close\r\n\r\n`, /403/],
    ["a Host with a path", `GET /livez HTTP/1.1\r\nHost: ${host}/x\r\nConnection: close\r\n\r\n`, /403/],
    [
      "a Host with a port beyond all ports",
      "GET /livez HTTP/1.1\r\nHost: 127.0.0.1:999999\r\nConnection: close\r\n\r\n",
      /403/,
    ],
    ["no Host", "GET /livez HTTP/1.1\r\nConnection: close\r\n\r\n", /403/],
    [
      "the address of another server",
      `GET http://elsewhere.example/livez HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`,
      /404/,
    ],
    ["a version of the future", `GET /livez HTTP/3.0\r\nHost: ${host}\r\n\r\n`, /400/],
    ["HTTP/2 in the clear", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", /400/],
    ["TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", /400/],
    ["TRACE", `TRACE /livez HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`, /405/],
    [
      "CONNECT",
      "CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: 127.0.0.1:22\r\nConnection: close\r\n\r\n",
      /404|405/,
    ],
    ["a method of its own", `SMUGGLE /livez HTTP/1.1\r\nHost: ${host}\r\n\r\n`, /400/],
    ["an expectation", `${post}Host: ${host}\r\nExpect: nonsense\r\nConnection: close\r\n\r\n`, /422/],
  ];

  it("is refused, and nothing that it smuggled is taken for a request", async () => {
    const smuggled = requestText(
      server.url,
      "POST",
      "/v1/agent/runs",
      ["Content-Type: application/json"],
      '{"producer":"external","agent":"smuggled"}',
    );
    for (const [what, bytes, status] of bent()) {
      const raw = await rawConnection(server.url);
      raw.write(Buffer.from(bytes + smuggled, "latin1"));
      await raw.ended;
      const statuses = [...raw.text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, found]) => found);
      expect([what, statuses]).toEqual([what, [expect.stringMatching(status)]]);
      expect([what, raw.text]).toEqual([what, expect.stringContaining('{"error":{"code":"KAI-')]);
    }
    expect((await call(server.url, "GET", "/v1/agent/runs?agent=smuggled")).body.runs).toEqual([]);
  });

  it("gets the requests before its garbage answered by their own answers, and the connection ends", async () => {
    const raw = await rawConnection(server.url);
    raw.write(
      `${requestText(server.url, "GET", "/livez")}${requestText(server.url, "GET", "/livez")}\x00\x01garbage\r\n\r\n`,
    );
    await raw.ended;
    expect([...raw.text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, found]) => found)).toEqual(["200", "200"]);
  });

  it("is asked for what the method says, whatever else says otherwise", async () => {
    const run_id = await createRun(server.url);
    for (const name of ["X-HTTP-Method-Override", "X-Method-Override", "X-HTTP-Method"]) {
      await call(server.url, "GET", `/v1/agent/runs/${run_id}?`, undefined, { [name]: "DELETE" });
      const posted = await call(server.url, "POST", `/v1/agent/runs/${run_id}`, {}, { [name]: "DELETE" });
      expect(posted.status).toBe(405);
    }
    expect((await call(server.url, "GET", `/v1/agent/runs/${run_id}?_method=DELETE`)).status).toBe(400);
    expect((await call(server.url, "GET", `/v1/agent/runs/${run_id}`)).status).toBe(200);
  });

  it("holds no connection open that was refused", async () => {
    const openCount = async (): Promise<number> =>
      Number(/^runwire_connections (\d+)$/m.exec((await call(server.url, "GET", "/metrics")).text)?.[1]);
    const before = await openCount();
    const refused = ["garbage\r\n\r\n", requestText(server.url, "GET", "/livez", upgradeLines)];
    const raws = await Promise.all(Array.from({ length: 40 }, () => rawConnection(server.url)));
    for (const [i, raw] of raws.entries()) {
      // The attacker's side of it stays open.
      raw.socket.allowHalfOpen = true;
      raw.write(refused[i % 2] as string);
    }
    for (const raw of raws) await raw.until((answer) => answer.includes('"error"'));
    await expect.poll(openCount, { timeout: 5000 }).toBeLessThanOrEqual(before + 2);
    for (const raw of raws) raw.socket.destroy();
  });
});

describe("who is slow on purpose", () => {
  it("holds up nobody, with however many connections", async () => {
    const run_id = await createRun(server.url);
    const raws = await Promise.all(Array.from({ length: 300 }, () => rawConnection(server.url)));
    for (const [i, raw] of raws.entries()) {
      if (i % 3 === 0) raw.write(`GET /livez HTTP/1.1\r\nHost: ${host}\r\nX: `);
      else if (i % 3 === 1)
        raw.write(
          `POST ${runPath(run_id, "events")} HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 999\r\n\r\n[`,
        );
      else {
        raw.write(requestText(server.url, "GET", streamPath({ run_id })));
        raw.socket.pause();
      }
    }
    for (let i = 0; i < 50; i++) await append(server.url, run_id, text(`${i}`));
    for (const raw of raws) raw.write("x");
    expect((await call(server.url, "GET", "/livez")).status).toBe(200);
    for (const raw of raws) raw.socket.destroy();
  });

  // They have 20 s for the headers and 30 s for the body.
  it("is answered 408 and hung up on", { timeout: 120_000 }, async ({ skip }) => {
    skip(!isSoak, "half a minute: in a soak alone");
    const run_id = await createRun(server.url);
    const headers = await rawConnection(server.url);
    headers.write(`GET /livez HTTP/1.1\r\nHost: ${host}\r\nX: `);
    const body = await rawConnection(server.url);
    body.write(`POST ${runPath(run_id, "steer")} HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 999\r\n\r\n{`);
    await Promise.all([headers.ended, body.ended]);
    for (const raw of [headers, body])
      expect(raw.text).toMatch(/^HTTP\/1\.1 408 [\s\S]*KAI-REQUEST-TIME-0001/);
  });
});

describe("an open server", () => {
  it("does not start where others could reach it", async () => {
    for (const open of ["0.0.0.0", "::", "192.168.0.1", "example.com"]) {
      const starting = startGateway({ port: 0, host: open, dataFolder: join(server.folder, "other") });
      await expect(starting).rejects.toThrow("an open server stays on loopback");
    }
  });
});
