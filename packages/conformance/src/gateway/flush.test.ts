// An answer means that the event is on disk: no answer overtakes the flush it rests on, and after a flush that failed
// nobody knows what is on disk, so there is no answer any more until a restart has read it back.

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Draft } from "@runwire/protocol";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { failing, faultsIn, strace, straced } from "../strace.js";
import { allEvents, append, call, codeOf, control, createRun, say, tryAppend } from "./calls.js";
import { chance, isSoak } from "./chance.js";
import { openReading, streamPath } from "./readers.js";
import { startServer } from "./server-process.js";

const luck = chance("flush");
const runwire = fileURLToPath(new URL("../../../cli/bin/runwire.js", import.meta.url));
const serve = [process.execPath, runwire, "serve"];
/** The first of them meet a start, which flushes as well. */
const faultsMax = isSoak ? 40 : 6;
const producersMax = 4;

let folder: string;
let data: string;
let trace: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "runwire-flush-"));
  data = join(folder, "data");
  trace = join(folder, "trace");
});

afterEach(() => rmSync(folder, { recursive: true }));

/** A batch that is stored as a whole or not at all. */
const batchOf = (n: number): readonly Draft[] => [
  say("custom", { n, part: 1 }),
  say("custom", { n, part: 2 }),
];

/** The batches of a log, each of which is there with both its parts, one after the other. */
async function batchesIn(url: string, run_id: string): Promise<readonly number[]> {
  const parts = (await allEvents(url, run_id)).flatMap(({ type, payload }) => {
    const { n = 0, part = 0 } = payload as { n?: number; part?: number };
    return type === "custom" ? [{ n, part }] : [];
  });
  const batches = parts.flatMap(({ n, part }) => (part === 1 ? [n] : []));
  expect(parts).toEqual(batches.flatMap((n) => [1, 2].map((part) => ({ n, part }))));
  return batches;
}

const inOrder = (batches: readonly number[]): readonly number[] => [...batches].sort((a, b) => a - b);

async function expectBroken(url: string, run_id: string): Promise<void> {
  for (let again = 0; again < 3; again++) {
    for (const refused of [
      await tryAppend(url, run_id, batchOf(0)),
      await call(url, "POST", "/v1/agent/runs", { producer: "external" }),
      await control(url, run_id, "pause"),
    ])
      expect([refused.status, codeOf(refused)]).toEqual([503, "KAI-SERVER-STORE-0001"]);
  }
  expect(await call(url, "GET", "/readyz")).toMatchObject({
    status: 503,
    body: { status: "broken", store: "broken" },
  });
}

describe("a flush that fails", { timeout: 60_000 + faultsMax * 10_000 }, () => {
  it("is not tried again: nothing is answered until a restart, and what was answered is there [RW-LOG-5]", async ({
    skip,
  }) => {
    if (strace.whyNot !== undefined) skip(strace.whyNot);
    const first = await startServer(serve, data);
    const run_id = await createRun(first.url);
    await first.kill("SIGTERM");
    let stored: readonly number[] = [];
    let batches = 0;
    let brokenCount = 0;

    for (let n = 1; n <= faultsMax; n++) {
      const answered: number[] = [];
      const inDoubt: number[] = [];
      /** Each batch is in one commit, and of as many commits one fails. */
      const produce = async (url: string): Promise<void> => {
        for (let i = 0; i < n; i++) {
          batches += 1;
          const batch = batches;
          const reply = await tryAppend(url, run_id, batchOf(batch));
          if (reply.status === 200) {
            answered.push(batch);
            continue;
          }
          expect([reply.status, codeOf(reply)]).toEqual([503, "KAI-SERVER-STORE-0001"]);
          inDoubt.push(batch);
          return;
        }
      };
      const command = straced(trace, failing("fsync", n, join(data, "runwire.db-wal")), serve);
      const started = await startServer(command, data).catch((error: Error) => error.message);
      if (typeof started === "string")
        expect(started).toMatch(/^[^\n]*runwire\.db cannot be used: disk I\/O error; [^\n]+\n$/);
      else {
        const { url } = started;
        const reading = await openReading(
          "sse",
          url,
          streamPath({ run_id, dialect: "runwire", detail: "full" }),
        );
        await Promise.all(Array.from({ length: luck.whole(1, producersMax) }, () => produce(url)));
        expect(inDoubt).not.toEqual([]);
        await expectBroken(url, run_id);
        // Who reads is told what was answered, and nothing that a crash could take back.
        const shown = await batchesIn(url, run_id);
        expect(inOrder(shown)).toEqual(inOrder([...stored, ...answered]));
        await reading.until(
          ({ events }) => events.filter(({ type }) => type === "custom").length === shown.length * 2,
        );
        reading.stop();
        await started.kill(luck.pick(["SIGKILL", "SIGTERM"]));
        brokenCount += 1;
      }
      expect([n, faultsIn(trace)]).toEqual([n, 1]);

      const restarted = await startServer(serve, data);
      const found = await batchesIn(restarted.url, run_id);
      const known = [...stored, ...answered];
      expect(found).toEqual(expect.arrayContaining(known));
      expect([...known, ...inDoubt]).toEqual(expect.arrayContaining([...found]));
      batches += 1;
      await append(restarted.url, run_id, ...batchOf(batches));
      stored = [...found, batches];
      expect((await call(restarted.url, "GET", "/readyz")).body).toMatchObject({ store: "ok" });
      await restarted.kill(luck.pick(["SIGKILL", "SIGTERM"]));
    }
    // The first faults met a start.
    expect(brokenCount).toBeGreaterThan(faultsMax / 3);
  });

  it("is told where nobody waits for it: the log is moved into the database, whose flush fails", async ({
    skip,
  }) => {
    if (strace.whyNot !== undefined) skip(strace.whyNot);
    const first = await startServer(serve, data);
    const run_id = await createRun(first.url);
    await first.kill("SIGTERM");
    const command = straced(trace, failing("fsync", 1, join(data, "runwire.db")), serve);
    const broken = await startServer(command, data);
    let sent = 0;
    // Enough that it is worth moving, which is looked at each second.
    const filled = async (): Promise<unknown> => {
      const { status } = await tryAppend(
        broken.url,
        run_id,
        Array(30).fill(say("custom", { n: "x".repeat(30_000) })),
      );
      if (status === 200) sent += 30;
      return (await call(broken.url, "GET", "/readyz")).body.store;
    };
    await expect.poll(filled, { timeout: 30_000 }).toBe("broken");
    await expectBroken(broken.url, run_id);
    await broken.kill("SIGTERM");
    expect(faultsIn(trace)).toBeGreaterThan(0);
    const restarted = await startServer(serve, data);
    const events = await allEvents(restarted.url, run_id);
    expect(events.filter(({ type }) => type === "custom").length).toBeGreaterThanOrEqual(sent);
    await append(restarted.url, run_id, ...batchOf(1));
    await restarted.kill("SIGTERM");
  });
});

describe("an answer", () => {
  it("comes after the flush of what it says is stored, however many ask at once [RW-LOG-5]", async ({
    skip,
  }) => {
    if (strace.whyNot !== undefined) skip(strace.whyNot);
    const calls = ["-e", "trace=fsync,fdatasync,read,readv,recvfrom,recvmsg,write,writev,sendto,sendmsg"];
    const server = await startServer(straced(trace, calls, serve), data);
    const { url } = server;
    const runs = await Promise.all(Array.from({ length: 8 }, () => createRun(url)));
    for (const at of [runs.slice(0, 1), runs]) {
      const produce = async (run_id: string): Promise<void> => {
        for (let n = 0; n < 10; n++) await append(url, run_id, ...batchOf(n));
        for (const action of ["pause", "resume"])
          expect((await control(url, run_id, action)).status).toBe(202);
      };
      await Promise.all(at.map(produce));
    }
    await server.kill("SIGTERM");
    const answers = answersIn(readFileSync(trace, "utf8").split("\n"), "runwire.db-wal");
    expect(answers).toHaveLength(runs.length + (1 + runs.length) * 12);
    expect(answers.filter(({ isFlushed }) => !isFlushed)).toEqual([]);
  });
});

/**
 * The answers to what changes something, as strace saw the server give them. A call that is finished later is written
 * twice, where it begins and where it ends:
 *
 *   11 fsync(36</data/runwire.db-wal> <unfinished ...>
 *   11 <... fsync resumed>)              = 0
 */
function answersIn(lines: readonly string[], file: string): readonly { at: number; isFlushed: boolean }[] {
  const begun = new Map<string, { readonly on: string; readonly at: number }>();
  const askedAt = new Map<string, number>();
  let flushedFrom = -1;
  const answers: { at: number; isFlushed: boolean }[] = [];
  for (const [at, line] of lines.entries()) {
    const [, thread = "", on] = /^(\d+) +\w+\(\d+<(.*?)>/.exec(line) ?? /^(\d+)/.exec(line) ?? [];
    if (on !== undefined) begun.set(thread, { on, at });
    const called = begun.get(thread);
    if (called === undefined) continue;
    if (line.includes('"HTTP/1.1 20')) {
      const asked = askedAt.get(called.on);
      if (asked !== undefined) answers.push({ at, isFlushed: flushedFrom > asked });
      askedAt.delete(called.on);
    }
    if (line.endsWith("<unfinished ...>")) continue;
    if (line.includes('"POST /v1/')) askedAt.set(called.on, at);
    // One that began later than another may still end first.
    if (/\bf(?:data)?sync\b.* = 0$/.test(line) && called.on.endsWith(`/${file}`))
      flushedFrom = Math.max(flushedFrom, called.at);
  }
  return answers;
}
