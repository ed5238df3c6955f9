// Random requests on every transport, to a server in a process of its own: it neither ends nor complains, it calls
// nothing of this its own fault, and a bystander notices nothing.

import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import { arbitraryDraftOf, namedTypes } from "../arbitraries.js";
import { arbitraryJson, arbitraryText } from "../arbitrary-json.js";
import { rssBytesOf } from "../proc.js";
import { type Bystander, bystander } from "./bystander.js";
import { call, createRun, lifecycle, runPath, tryAppend } from "./calls.js";
import { chance, isSoak } from "./chance.js";
import { rawConnection, requestText, upgradeLines } from "./raw-http.js";
import { streamPath } from "./readers.js";
import { ownProcess } from "./server-process.js";

const luck = chance("fuzz");
const count = isSoak ? 100_000 : 600;
const atOnce = 20;
const freshEvery = 25;
const timeout = isSoak ? 3_600_000 : 60_000;
/** Node collects no garbage before it must. With this much room it must, and a server that leaks comes to its end. */
const heapMegabytesMax = 320;
/** What a server that has answered all this may keep. */
const keptBytesMax = 400 * 1024 * 1024;

const runwire = fileURLToPath(new URL("../../../cli/bin/runwire.js", import.meta.url));
const heap = `--max-old-space-size=${heapMegabytesMax}`;
const server = ownProcess([process.execPath, heap, runwire, "serve", "--durability", "os", "--log", "warn"]);
let url: string;
let other: Bystander;
let runs: string[];

beforeAll(async () => {
  url = server.url;
  other = await bystander(url);
  runs = await Promise.all(Array.from({ length: 5 }, () => createRun(url)));
  await tryAppend(url, runs[0] as string, [lifecycle("done")]);
});

/** So many, some at once; each says what it was answered. */
async function fuzz(one: (i: number) => Promise<string>): Promise<void> {
  const before = rssBytesOf(server.pid);
  const statuses = new Set<string>();
  let next = 0;
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      while (next < count) {
        next += 1;
        // Random requests end runs, too.
        if (next % freshEvery === 0) runs[luck.whole(0, runs.length - 1)] = await createRun(url);
        const answer = await one(next);
        for (const [, status = ""] of answer.matchAll(/HTTP\/1\.1 (\d{3})/g)) statuses.add(status);
        const wrong = /HTTP\/1\.1 5\d\d|"code":"KAI-SERVER-/.exec(answer);
        if (wrong !== null) throw new Error(`${next}: ${answer.slice(0, 2000)}`);
      }
    }),
  );
  // Some of it was understood, or it was all for nothing.
  expect([...statuses].some((status) => /^(101|20\d)$/.test(status))).toBe(true);
  expect(statuses.size).toBeGreaterThan(1);
  expect(await Promise.race([server.exited, "running"])).toBe("running");
  expect(server.stderr).toBe("");
  expect((await call(url, "GET", "/readyz")).status).toBe(200);
  if (isSoak) expect(rssBytesOf(server.pid) - before).toBeLessThan(keptBytesMax);
}

/** Made once from the seed, taken at random: making them costs more than sending them. */
const sample = <T>(from: fc.Arbitrary<T>, size = 500): readonly T[] =>
  fc.sample(from, { seed: luck.seed, numRuns: size });
const values = sample(arbitraryJson);
const texts = [
  ...sample(arbitraryText),
  ...[
    "",
    "0",
    "-1",
    "1e9",
    "999999999999999",
    "__proto__",
    "full",
    "koder",
    "runwire",
    "null",
    "%00",
    "../..",
  ],
];
const drafts = sample(fc.constantFrom(...namedTypes).chain(arbitraryDraftOf));
const bytes = sample(fc.uint8Array({ maxLength: 200 }));

const anId = (): string =>
  luck.pick([...runs, "run_unknown", "feed:default:runs", encodeURIComponent(text())]);
const likely = (percent: number): boolean => luck.whole(1, 100) <= percent;

/** Lone surrogates have no place in an address. */
function text(): string {
  return Buffer.from(luck.pick(texts)).toString();
}

function mutated(given: Uint8Array): Buffer {
  let out = Buffer.from(given);
  for (let times = luck.whole(1, 4); times > 0; times--) {
    const at = luck.whole(0, out.length);
    const insert = likely(50)
      ? luck.pick(bytes)
      : Buffer.from(luck.pick(["\r\n", "\n", "\0", ":", " ", "\r\n\r\n"]));
    out = Buffer.concat([out.subarray(0, at), insert, out.subarray(at + luck.whole(0, 20))]);
  }
  return out;
}

/** What comes back until it holds that, or by the end of the connection, of which our half ends at once. */
async function firstAnswer(sent: Uint8Array, until = /\r\n\r\n/): Promise<string> {
  const raw = await rawConnection(url);
  raw.write(sent);
  raw.socket.end();
  await Promise.race([raw.ended, raw.until((answer) => until.test(answer))]).catch(() => {});
  raw.socket.destroy();
  return raw.text;
}

/** The same for a WebSocket, whose connection must last until it is one. */
async function socketAnswer(sent: Uint8Array): Promise<string> {
  const raw = await rawConnection(url);
  raw.write(sent);
  await Promise.race([raw.ended, raw.until((answer) => answer.includes("\r\n\r\n"))]);
  raw.socket.end();
  await raw.ended;
  return raw.text;
}

interface Operation {
  readonly parameters?: readonly { readonly name: string; readonly in: string }[];
}

describe("a server", () => {
  it("survives random bytes", { timeout }, async () => {
    const requests = [
      requestText(url, "GET", "/livez"),
      requestText(url, "GET", streamPath({ run_id: runs[0] as string })),
      requestText(url, "POST", runPath(runs[1] as string, "events"), [], JSON.stringify([drafts[0]])),
      // Somebody else's runs: those of the agent would go on, and use up memory, long after the answer.
      `${requestText(url, "POST", "/v1/agent/runs", ["Transfer-Encoding: chunked"])}17\r\n{"producer":"external"}\r\n0\r\n\r\n`,
      requestText(url, "GET", streamPath({ run_id: runs[1] as string }), [
        "Connection: Upgrade",
        "Upgrade: websocket",
      ]),
    ].map((request) => Buffer.from(request));
    const request = (): Uint8Array => (likely(5) ? luck.pick(requests) : mutated(luck.pick(requests)));
    await fuzz(() => firstAnswer(likely(20) ? luck.pick(bytes) : request()));
  });

  it("survives random requests to its routes", { timeout }, async () => {
    const { body } = await call(url, "GET", "/openapi.json");
    const routes = Object.entries(body.paths as { [path: string]: { [method: string]: Operation } }).flatMap(
      ([path, operations]) =>
        Object.entries(operations).map(([method, { parameters = [] }]) => ({ path, method, parameters })),
    );
    expect(routes.length).toBeGreaterThan(20);
    await fuzz(async () => {
      const { path, method, parameters } = luck.pick(routes);
      const query = new URLSearchParams();
      const headers = new Headers();
      for (const { name, in: place } of parameters) {
        if (place === "query" && likely(30)) query.append(name, text());
        if (place === "header" && likely(30)) headers.set(name, encodeURIComponent(text()).slice(0, 100));
      }
      if (likely(5)) query.append(text(), text());
      if (likely(10)) headers.set("Accept", "application/x-ndjson");
      if (likely(10)) headers.set("Range", `bytes=${luck.whole(-5, 99)}-${luck.whole(-5, 99)}`);
      const address = path.replaceAll(/\{\w+\}/g, () => (likely(90) ? anId() : encodeURIComponent(text())));
      const hasBody = method !== "get";
      if (hasBody)
        headers.set("Content-Type", luck.pick(["application/json", "application/x-ndjson", "text/plain"]));
      const leaving = new AbortController();
      const response = await fetch(`${url}${address}${query.size === 0 ? "" : `?${query}`}`, {
        method: method.toUpperCase(),
        headers,
        signal: leaving.signal,
        ...(hasBody && likely(90) ? { body: randomBody() } : {}),
      });
      const isStream = response.headers.get("content-length") === null;
      const answer = isStream ? "" : await response.text();
      leaving.abort();
      return `${method} ${address}?${query} HTTP/1.1 ${response.status} ${answer}`;
    });
  });

  function randomBody(): string {
    const members = [
      "prompt",
      "producer",
      "metadata",
      "run_id",
      "runs",
      "text",
      "decision",
      "input",
      "answer",
      "reason",
    ];
    const known: { [member: string]: unknown } = {
      producer: "external",
      decision: "once",
      text: "x",
      run_id: anId(),
    };
    switch (luck.whole(0, 4)) {
      case 0:
        return JSON.stringify(luck.pick(values));
      case 1:
        return JSON.stringify(Array.from({ length: luck.whole(0, 5) }, () => luck.pick(drafts)));
      case 2:
        return Array.from({ length: luck.whole(0, 5) }, () => JSON.stringify(luck.pick(drafts))).join("\n");
      case 3:
        return luck.pick(texts);
      default:
        return JSON.stringify(
          Object.fromEntries(
            members
              .filter(() => likely(30))
              .map((name) => [name, likely(60) ? (known[name] ?? "x") : luck.pick(values)]),
          ),
        );
    }
  }

  it("survives random lines of sessions", { timeout }, async () => {
    const head = ["Transfer-Encoding: chunked", "Content-Type: application/x-ndjson"];
    await fuzz(() => {
      const lines = Array.from({ length: luck.whole(0, 6) }, () => {
        const line = Buffer.from(`${JSON.stringify(likely(80) ? luck.pick(drafts) : luck.pick(values))}\n`);
        return likely(10) ? mutated(line) : line;
      });
      const chunks = lines.map((line) =>
        Buffer.concat([Buffer.from(`${line.length.toString(16)}\r\n`), line, Buffer.from("\r\n")]),
      );
      const claim = likely(30)
        ? [`Producer-Id: p${luck.whole(1, 3)}`, `Producer-Seq: ${luck.whole(1, 20)}`]
        : [];
      const dialect = luck.pick(["runwire", "koder"]);
      const request = requestText(url, "POST", `${runPath(anId(), "events")}?dialect=${dialect}`, [
        ...head,
        ...claim,
      ]);
      return firstAnswer(
        Buffer.concat([Buffer.from(request), ...chunks, Buffer.from("0\r\n\r\n")]),
        /\r\n0\r\n\r\n$/,
      );
    });
  });

  it("survives random frames on WebSockets", { timeout }, async () => {
    await fuzz(() => {
      const run_id = anId();
      const path = luck.pick([streamPath({ run_id }), `/v1/agent/stream?runs=${run_id}`, "/v1/agent/stream"]);
      const frames = Array.from({ length: luck.whole(1, 6) }, () => {
        const message = {
          type: luck.pick(["subscribe", "unsubscribe", "x"]),
          run_id: anId(),
          after: luck.pick(values),
        };
        const content = Buffer.from(
          JSON.stringify(likely(70) ? message : luck.pick(values)).slice(0, 125),
        ).subarray(0, 125);
        const first = likely(80) ? 0x81 : luck.whole(0, 255);
        const made = Buffer.concat([Buffer.from([first, 0x80 | content.length, 0, 0, 0, 0]), content]);
        return likely(10) ? mutated(made) : made;
      });
      return socketAnswer(
        Buffer.concat([Buffer.from(requestText(url, "GET", path, upgradeLines)), ...frames]),
      );
    });
  });

  it("has let a bystander write and read in peace all the while", async () => {
    expect(await other.leave()).toBeGreaterThan(0);
  });
});
