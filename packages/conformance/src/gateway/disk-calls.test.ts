// Files that cannot be opened, named, linked or removed, and folders that cannot be made, under a server that spills,
// keeps checkpoints, forks and erases. Each request is answered as it should be or with an error of the table, what was
// answered holds after a restart, and the server lives on.

import { randomBytes } from "node:crypto";
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { DatabaseSync } from "@photostructure/sqlite";
import {
  type Draft,
  type Event,
  endsRun,
  errorTable,
  type Facts,
  is,
  isErrorCode,
  limits,
} from "@runwire/protocol";
import * as server from "@runwire/server";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { failFromNow, failing, faultsIn, strace, straced } from "../strace.js";
import { openSqlite } from "../suites/store/server-module.js";
import { expectSoundTree } from "../suites/store/soundness.js";
import { allEvents, call, codeOf, type Reply, runPath, say } from "./calls.js";
import { chance, isSoak } from "./chance.js";
import { type ChatProvider, chatProvider } from "./chat-provider.js";
import { readAll, streamPath } from "./readers.js";
import { script } from "./scripted.js";
import { type ServerProcess, startServer } from "./server-process.js";

const luck = chance("disk calls");
const callsMax = isSoak ? 50 : 2;
const errors = ["EIO", "EMFILE", "ENOSPC", "EACCES"];
/** As one machine or the other calls them. */
const kinds = {
  opened: "openat",
  renamed: "?rename,?renameat,?renameat2",
  removed: "?unlink,?unlinkat,?rmdir",
  made: "?mkdir,?mkdirat",
  linked: "?link,?linkat",
};

const runwire = fileURLToPath(new URL("../../../cli/bin/runwire.js", import.meta.url));
let provider: ChatProvider;
let folder: string;
let data: string;
let trace: string;
let running: ServerProcess;

const serve = (): readonly string[] => [
  ...["/usr/bin/env", `RUNWIRE_OPENAI_BASE_URL=${provider.url}`, "RUNWIRE_MODEL=local/scripted"],
  ...[process.execPath, runwire, "serve"],
];

beforeAll(async () => {
  provider = await chatProvider();
});
afterAll(() => provider.close());
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "runwire-calls-"));
  data = join(folder, "data");
  trace = join(folder, "trace");
});
afterEach(async () => {
  if (strace.whyNot === undefined) {
    running.kill("SIGKILL");
    await running.exited;
  }
  rmSync(folder, { recursive: true });
});

async function restart(): Promise<void> {
  running.kill("SIGKILL");
  await running.exited;
  running = await startServer(serve(), data);
}

/** What was answered, and must hold. */
interface Known {
  /** What was to be erased, and may have been. */
  readonly doubtful: Set<string>;
  readonly written: Map<string, Draft[]>;
  readonly erased: Set<string>;
  readonly runs: Set<string>;
}

function nothingKnown(): Known {
  return { written: new Map(), erased: new Set(), runs: new Set(), doubtful: new Set() };
}

/** An answer that is right, or else an error that the disk may be the reason of. */
async function asked(method: string, path: string, body?: unknown): Promise<Reply | undefined> {
  const reply = await call(running.url, method, path, body);
  if (reply.status < 300) return reply;
  const code = codeOf(reply);
  expect([method, path, reply.status, isErrorCode(code)]).toEqual([method, path, reply.status, true]);
  if (isErrorCode(code)) expect([code, reply.status]).toEqual([code, errorTable[code].status]);
  expect([method, path, code, reply.text]).toEqual([
    ...[method, path],
    expect.stringMatching(/^KAI-SERVER-STORE-000[12]$/),
    reply.text,
  ]);
  return undefined;
}

/** One of everything that touches files. */
async function work(known: Known): Promise<void> {
  const written = await asked("POST", "/v1/agent/runs", { producer: "external", lease_ms: 86_400_000 });
  if (written !== undefined) {
    const run_id = written.body.run_id as string;
    known.runs.add(run_id);
    known.written.set(run_id, []);
    for (const bytes of [100, limits.memberBytesMax + 1]) {
      const output = randomBytes(bytes).toString("base64");
      const draft = say("tool.end", { call_id: `c${bytes}`, ok: true, output });
      if ((await asked("POST", runPath(run_id, "events"), [draft])) !== undefined)
        known.written.get(run_id)?.push(draft);
    }
  }
  const write = (name: string) => ({ calls: [{ tool: "file.write", input: { path: name, content: name } }] });
  const prompt = script(write("a.txt"), write("b.txt"), { text: "done" });
  const begun = await asked("POST", "/v1/agent/runs", { prompt });
  if (begun === undefined) return;
  const run_id = begun.body.run_id as string;
  known.runs.add(run_id);
  await readAll("sse", running.url, streamPath({ run_id }));
  const kept = (await checkpointsOf(run_id))
    .filter(({ kept }) => kept)
    .map(({ checkpoint_id }) => checkpoint_id);
  for (const checkpoint_id of kept.slice(0, 1)) {
    const forked = await asked("POST", runPath(run_id, "fork"), { checkpoint_id });
    if (forked === undefined) continue;
    const fork = forked.body.run_id as string;
    known.runs.add(fork);
    await readAll("sse", running.url, streamPath({ run_id: fork }));
  }
}

async function checkpointsOf(run_id: string): Promise<readonly Facts[]> {
  const reply = await asked("GET", runPath(run_id, "checkpoints"));
  return (reply?.body.checkpoints ?? []) as readonly Facts[];
}

/** Erases what an earlier round has written. */
async function erase(known: Known, runs: readonly string[]): Promise<void> {
  for (const run_id of runs) {
    known.runs.delete(run_id);
    known.written.delete(run_id);
    if ((await asked("DELETE", `/v1/agent/runs/${run_id}`)) === undefined) {
      known.doubtful.add(run_id);
      continue;
    }
    known.erased.add(run_id);
    expect(foldersOf(run_id).filter((path) => existsSync(path))).toEqual([]);
  }
}

const foldersOf = (run_id: string): readonly string[] =>
  ["workspaces", "checkpoints"].map((name) => join(data, name, "default", run_id));

async function expectHeld({ written, erased, runs, doubtful }: Known): Promise<void> {
  const { url } = running;
  for (const run_id of doubtful) {
    expect([204, 410]).toContain((await call(url, "DELETE", `/v1/agent/runs/${run_id}`)).status);
    expect((await call(url, "GET", `/v1/agent/runs/${run_id}`)).status).toBe(410);
  }
  for (const run_id of erased) {
    expect((await call(url, "GET", `/v1/agent/runs/${run_id}`)).status).toBe(410);
    expect(foldersOf(run_id).filter((path) => existsSync(path))).toEqual([]);
  }
  for (const [run_id, drafts] of written) {
    const events = (await allEvents(url, run_id)).filter(({ type }) => type === "tool.end");
    const outputs = await Promise.all(events.map((event) => outputOf(event)));
    // What was refused may be there all the same, where it was in doubt.
    expect(outputs).toEqual(expect.arrayContaining(drafts.map(({ payload }) => (payload as Facts).output)));
  }
  for (const run_id of runs) {
    if (written.has(run_id)) continue;
    await readAll("sse", url, streamPath({ run_id }));
    const events = await allEvents(url, run_id);
    expect(endsRun(events.at(-1) as Event)).toBe(true);
    const named = events.flatMap((e) => (is(e, "step.boundary") ? (e.payload.checkpoint_id ?? []) : []));
    const kept = (await checkpointsOf(run_id)).flatMap((one) => (one.kept === true ? one.checkpoint_id : []));
    expect(kept).toEqual(named);
  }
}

/** What faults have left is removed beside the first requests of a start. */
async function expectTidy({ runs }: Known): Promise<void> {
  const events = (await Promise.all([...runs].map((run_id) => allEvents(running.url, run_id)))).flat();
  const refs = JSON.stringify(events).match(/blob_[0-9a-f]{64}/g);
  await expect.poll(blobFiles, { timeout: 10_000 }).toEqual([...new Set(refs)].toSorted());
}

async function outputOf({ payload }: Event): Promise<unknown> {
  const { output, blob_ref } = payload as Facts;
  if (blob_ref === undefined) return output;
  const blob = await call(running.url, "GET", `/v1/blobs/${blob_ref}`);
  expect(blob.status).toBe(200);
  return blob.text;
}

function blobFiles(): readonly string[] {
  const path = join(data, "blobs");
  if (!existsSync(path)) return [];
  const entries = readdirSync(path, { recursive: true, withFileTypes: true });
  return entries.flatMap((entry) => (entry.isFile() ? `blob_${entry.name}` : [])).sort();
}

/** What the file holds, looked at by nobody else. */
async function expectSound({ runs }: Known): Promise<void> {
  running.kill("SIGTERM");
  expect([await running.exited, running.stderr]).toEqual([{ code: 0, signal: null }, ""]);
  const db = new DatabaseSync(join(data, "runwire.db"));
  expect(db.prepare("PRAGMA integrity_check").get()).toEqual({ integrity_check: "ok" });
  db.close();
  const { store, ingest } = openSqlite(server)(data, server.systemClock);
  for (const run_id of runs)
    await expectSoundTree(store, { tenant: "default", run_id }, { steadyClock: false });
  ingest.close();
  await store.close();
}

/** One line of JSON each, and none of them of a bug. */
function expectClear(stderr: string): void {
  for (const line of stderr.split("\n").filter((text) => text !== "")) {
    expect(JSON.parse(line)).toMatchObject({ level: expect.stringMatching(/^(warn|error)$/) });
    expect(line).not.toContain('"bug"');
  }
}

describe("a server whose files fail once", { timeout: isSoak ? 1_200_000 : 60_000 }, () => {
  it("keeps what it answered, whichever it cannot open, name, link, make or remove", async ({ skip }) => {
    if (strace.whyNot !== undefined) skip(strace.whyNot);
    running = await startServer(serve(), data);
    const known = nothingKnown();
    await work(known);

    /** One fault under all the work, and how often it fired. */
    async function round(kind: keyof typeof kinds, n: number, error: string): Promise<number> {
      const old = [...known.runs];
      const stop = await failFromNow(running.pid, trace, failing(kinds[kind], n, undefined, error));
      await work(known);
      await erase(known, old);
      await stop();
      expect((await call(running.url, "GET", "/livez")).status, `${kind} ${n} ${error}`).toBe(200);
      expectClear(running.stderr);
      if ((await call(running.url, "GET", "/readyz")).status === 503) await restart();
      await expectHeld(known);
      return faultsIn(trace);
    }

    for (const kind of Object.keys(kinds) as readonly (keyof typeof kinds)[]) {
      let fired = 0;
      // A soak goes on until no thread makes so many calls.
      for (let n = 1, before = -1; before < fired && n <= callsMax; n++) {
        before = fired;
        for (const error of isSoak ? errors : [luck.pick(errors)]) fired += await round(kind, n, error);
      }
      process.stdout.write(`disk calls: ${fired} were not ${kind}\n`);
      expect(fired).toBeGreaterThan(0);
    }
    await restart();
    await expectHeld(known);
    await expectTidy(known);
    await expectSound(known);
  });
});

describe("a server that starts while a file of its own fails", { timeout: isSoak ? 600_000 : 60_000 }, () => {
  const files = [
    "",
    "runwire.db",
    "runwire.db-wal",
    "runwire.db-shm",
    "runwire.db.lock",
    "blobs",
    "workspaces",
  ];
  const all = [...files, "checkpoints", join("checkpoints", ".new")].flatMap((file) =>
    (["opened", "made", "removed"] as const).flatMap((kind) => [1, 2, 3].map((n) => ({ file, kind, n }))),
  );

  it("serves, or says why not in one line, and loses nothing", async ({ skip }) => {
    if (strace.whyNot !== undefined) skip(strace.whyNot);
    running = await startServer(serve(), data);
    const known = nothingKnown();
    await work(known);
    running.kill("SIGKILL");
    await running.exited;
    let fired = 0;
    // The log beside the database is there at every start, and opened at each.
    const some = [{ file: "runwire.db-wal", kind: "opened", n: 1 } as const, luck.pick(all)];
    for (const { file, kind, n } of isSoak ? all : some) {
      const fault = failing(kinds[kind], n, join(data, file), luck.pick(errors));
      const started = await startServer(straced(trace, fault, serve()), data).catch(
        ({ message }: Error) => message,
      );
      if (typeof started === "string")
        expect([file, kind, n, started]).toEqual([file, kind, n, expect.stringMatching(/^[^\n]{20,}\n$/)]);
      else {
        expect((await call(started.url, "GET", "/livez")).status).toBe(200);
        expectClear(started.stderr);
        started.kill("SIGKILL");
        await started.exited;
      }
      fired += faultsIn(trace);
    }
    expect(fired).toBeGreaterThan(0);
    running = await startServer(serve(), data);
    await expectHeld(known);
    await expectTidy(known);
    await expectSound(known);
  });
});
