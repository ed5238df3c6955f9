// A disk that fills up while a server runs on it: what does not fit is refused, what is there is read, and once there
// is space again it goes on by itself.

import {
  closeSync,
  existsSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Facts, limits } from "@runwire/protocol";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { tool } from "../tools.js";
import { allEvents, append, call, codeOf, createRun, runPath, say, tryAppend } from "./calls.js";
import { openReading, readAll, streamPath } from "./readers.js";
import { type ServerProcess, startServer } from "./server-process.js";

const folder = mkdtempSync(join(tmpdir(), "runwire-disk-"));
const runwire = fileURLToPath(new URL("../../../cli/bin/runwire.js", import.meta.url));
/** The server alone sees this disk, and it goes with the server. */
const onSmallDisk = (command: readonly string[]): readonly string[] => [
  ...["unshare", "-rm", "sh", "-c", 'mount -t tmpfs -o size=24m none "$0" && exec "$@"', folder],
  ...command,
];

const { whyNot } = tool("unshare");

let server: ServerProcess;
let url: string;
/** The small disk, as the server sees it. */
let disk: string;

beforeAll(async () => {
  if (whyNot !== undefined) return;
  server = await startServer(onSmallDisk([process.execPath, runwire, "serve"]), folder);
  url = server.url;
  disk = join(`/proc/${server.pid}/root`, folder);
});

afterAll(async () => {
  if (whyNot === undefined) {
    await server.kill("SIGTERM");
  }
  rmSync(folder, { recursive: true });
});

function fillUp(): void {
  const file = openSync(join(disk, "ballast"), "a");
  const block = Buffer.alloc(4096);
  try {
    while (writeSync(file, block) > 0);
  } catch (error) {
    expect((error as NodeJS.ErrnoException).code).toBe("ENOSPC");
  } finally {
    closeSync(file);
  }
}

const blobFiles = (): readonly string[] =>
  existsSync(join(disk, "blobs"))
    ? readdirSync(join(disk, "blobs"), { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map(({ name }) => `blob_${name}`)
    : [];

const numbered = (n: number) => say("custom", { n, filling: "x".repeat(30_000) });
const largeOutput = (n: number) =>
  say("tool.end", { call_id: `call_${n}`, ok: true, output: `${n} `.repeat(limits.memberBytesMax) });

describe("a disk that is full", () => {
  it("refuses what does not fit and serves what is there, and goes on when there is space again", async ({
    skip,
  }) => {
    if (whyNot !== undefined) skip(whyNot);
    const run_id = await createRun(url);
    const path = streamPath({ run_id, dialect: "runwire", detail: "full" });
    const reading = await openReading("sse", url, path);
    await append(url, run_id, largeOutput(0));
    const blobs = blobFiles();
    expect(blobs).toHaveLength(1);
    const stored: number[] = [];

    for (let round = 1; round <= 3; round++) {
      fillUp();
      let n = round * 10_000;
      // What has its space already may still go through.
      for (; ; n++) {
        const reply = await tryAppend(url, run_id, [numbered(n), numbered(n)]);
        if (reply.status === 507) {
          expect(codeOf(reply)).toBe("KAI-SERVER-STORE-0002");
          expect(reply.headers.get("retry-after")).not.toBeNull();
          break;
        }
        expect(reply.status).toBe(200);
        stored.push(n, n);
        fillUp();
      }
      // It says so, and nobody who reads is sent away.
      expect(await call(url, "GET", "/readyz")).toMatchObject({
        status: 200,
        body: { status: "degraded", store: "full", disk: "low" },
      });
      for (const refused of [
        await tryAppend(url, run_id, [largeOutput(round)]),
        await call(url, "POST", "/v1/agent/runs", { producer: "external" }),
        await call(url, "POST", runPath(run_id, "steer"), { text: "x".repeat(30_000) }),
      ])
        expect([refused.status, codeOf(refused)]).toEqual([507, "KAI-SERVER-STORE-0002"]);
      expect(blobFiles()).toEqual(blobs);
      const events = await allEvents(url, run_id);
      expect(numbersOf(events)).toEqual(stored);
      await reading.until((heard) => heard.events.length === events.length);
      const late = await openReading("websocket", url, path);
      await late.until((heard) => heard.events.length === events.length);
      late.stop();
      expect((await call(url, "GET", `/v1/blobs/${blobs[0]}`)).status).toBe(200);
      expect((await call(url, "GET", runPath(run_id, "snapshot"))).status).toBe(200);

      rmSync(join(disk, "ballast"));
      await append(url, run_id, numbered(-round));
      stored.push(-round);
      expect((await call(url, "GET", "/readyz")).body).toMatchObject({ store: "ok" });
    }

    await append(url, run_id, largeOutput(9), say("run.lifecycle", { state: "aborted" }));
    const events = await allEvents(url, run_id);
    expect(numbersOf(events)).toEqual(stored);
    expect(events.map(({ pos }) => pos)).toEqual(events.map((_, i) => i + 1));
    await reading.ended;
    expect(reading.events).toEqual(events);
    expect((await readAll("ndjson", url, path)).events).toEqual(events);
    const referred = events.flatMap(({ payload }) => (payload as Facts).blob_ref ?? []);
    expect([...blobFiles()].sort()).toEqual([...new Set(referred)].sort());
    expect((await call(url, "GET", "/v1/agent/runs")).body.runs).toHaveLength(1);
  });

  it("does not keep a server that was killed from starting again, to serve what is there", async ({
    skip,
  }) => {
    if (whyNot !== undefined) skip(whyNot);
    const small = mkdtempSync(join(tmpdir(), "runwire-disk-"));
    // The first to be served is killed, the disk fills up, and the second takes its place.
    const twice =
      'mount -t tmpfs -o size=4m none "$0" && { "$@"; cat /dev/zero >"$0/ballast"; exec "$@"; } 2>&1';
    const served = ["unshare", "-rm", "sh", "-c", twice, small, process.execPath, runwire, "serve"];
    const both = await startServer(served, small);
    try {
      const run_id = await createRun(both.url);
      await append(both.url, run_id, numbered(1));
      const second = both.line(/^runwire listening on (http:[^\s,]+)/);
      process.kill(Number(readFileSync(`/proc/${both.pid}/task/${both.pid}/children`, "utf8")), "SIGKILL");
      const [, again = ""] = await second;
      expect(numbersOf(await allEvents(again, run_id))).toEqual([1]);
      expect((await call(again, "GET", "/readyz")).body).toMatchObject({ status: "degraded", disk: "low" });
      expect((await tryAppend(again, run_id, [largeOutput(1)])).status).toBe(507);
    } finally {
      await both.kill("SIGTERM");
      rmSync(small, { recursive: true });
    }
  });
});

function numbersOf(events: readonly { readonly payload: unknown }[]): readonly number[] {
  return events.flatMap(({ payload }) => (payload as { n?: number }).n ?? []);
}
