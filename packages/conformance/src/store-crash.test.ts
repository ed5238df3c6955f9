// Crashes: a writer that is killed in the middle, and files that lost their end or a bit. What was answered is
// there, without a gap, in every mirror; what was not is there wholly or not at all.

import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { DatabaseSync } from "@photostructure/sqlite";
import * as server from "@runwire/server";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Ack } from "./crash-writer.js";
import { chance } from "./gateway/chance.js";
import { failing, faultsIn, strace, straced } from "./strace.js";
import { openSqlite } from "./suites/store/server-module.js";
import { expectSoundTree, views } from "./suites/store/soundness.js";
import { freshIds, isSoak, lawMsMax, newRun, onTrial } from "./suites/store/trial.js";
import type { Key, StoreUnderTest } from "./suites/store/under-test.js";

const writer = fileURLToPath(new URL("./crash-writer.js", import.meta.url));
const serverPath = import.meta.resolve("@runwire/server");
const tenant = "acme";
/** How often a folder is written to: each time all of it is read again. */
const folderRounds = 5;
const folderFaults = 10;
const luck = chance("store-crash");
const faults = isSoak ? Array.from({ length: 200 }, (_, i) => i + 1) : [1, luck.whole(2, 12)];
const faultsMsMax = 300_000;

describe("after kill -9", { timeout: isSoak ? 3 * 3_600_000 : lawMsMax }, () => {
  it("every answered event is there once, without a gap, in every mirror [RW-LOG-5]", async () => {
    const rounds = isSoak ? 1000 : 10;
    for (let round = 0; round < rounds; round += folderRounds) {
      const folder = mkdtempSync(join(tmpdir(), "runwire-crash-"));
      const acks: Ack[] = [];
      for (let again = 0; again < folderRounds; again++) {
        // Few hot events, so that some of them die in the middle of compaction.
        acks.push(...(await writeAndDie(folder, again % 2 === 0 ? 500 : 100_000)));
        expect(integrityOf(folder)).toBe("ok");
        await expectAnswered(folder, acks);
      }
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

describe("a disk that fails once", { timeout: lawMsMax }, () => {
  for (const call of ["pwrite64", "fsync", "pread64", "ftruncate"])
    it(`loses nothing that was answered, whichever ${call} it is [RW-LOG-5]`, async ({ skip }) => {
      if (strace.whyNot !== undefined) skip(strace.whyNot);
      const endsMs = performance.now() + faultsMsMax;
      let acks: Ack[] = [];
      let folder = "";
      let fired = 0;
      const startAfresh = (): void => {
        if (folder !== "") rmSync(folder, { recursive: true, force: true });
        folder = mkdtempSync(join(tmpdir(), "runwire-faulty-"));
        acks = [];
      };
      // A soak goes on until no thread makes so many calls.
      for (const [i, n] of faults.entries()) {
        if (performance.now() > endsMs) break;
        if (i % folderFaults === 0) {
          startAfresh();
          acks.push(...writeUnder(folder, ["-e", "trace=none"]));
          expect(acks.length).toBe(30);
        }
        acks.push(...writeUnder(folder, failing(call, n)));
        expect([n, integrityOf(folder)]).toEqual([n, "ok"]);
        await expectAnswered(folder, acks);
        if (faultsIn(join(folder, "trace")) === 0) break;
        fired += 1;
      }
      rmSync(folder, { recursive: true, force: true });
      expect(fired).toBeGreaterThan(0);
    });
});

describe("a write-ahead log", { timeout: lawMsMax }, () => {
  it("that lost its end or a bit gives back an exact prefix, or is refused in one line [RW-LOG-5]", () =>
    onTrial(openSqlite(server), async (trial) => {
      const keys: Key[] = [];
      for (let tree = 0; tree < 3; tree++) keys.push(await newRun(trial));
      for (let turn = 0; turn < 12; turn++) {
        for (const key of keys) {
          await trial.ingest.append(
            key,
            freshIds([
              { type: "text.delta", payload: { text: `${turn} ` } },
              { type: "child.spawn", payload: { child_id: "run_1" } },
              { type: "text.delta", payload: { text: "said by the child" }, child_id: "run_1" },
              { type: "custom", payload: { turn } },
            ]),
          );
          trial.clock.pass(60);
        }
      }
      const whole = await Promise.all(keys.map((key) => expectSoundTree(trial.store, key)));
      const wal = readFileSync(join(trial.folder, "runwire.db-wal"));
      const anywhere = fc.noBias(fc.nat(wal.length - 1));
      const prefixes = new Set<number>();
      await fc.assert(
        fc.asyncProperty(anywhere, fc.option(fc.nat(7), { nil: null, freq: 1 }), async (offset, bit) => {
          const folder = mkdtempSync(join(tmpdir(), "runwire-torn-"));
          try {
            copyFileSync(join(trial.folder, "runwire.db"), join(folder, "runwire.db"));
            writeFileSync(join(folder, "runwire.db-wal"), torn(wal, offset, bit));
            const store = openedOrRefused(folder);
            if (store === undefined) return;
            let events = 0;
            for (const [i, key] of keys.entries()) {
              if ((await store.head(key)) === undefined) continue;
              for (const [run_id, log] of await expectSoundTree(store, key)) {
                for (const view of views) {
                  expect(log[view]).toEqual(whole[i]?.get(run_id)?.[view].slice(0, log[view].length));
                  events += log[view].length;
                }
              }
            }
            prefixes.add(events);
            await store.close();
          } finally {
            rmSync(folder, { recursive: true, force: true });
          }
        }),
        { numRuns: isSoak ? 200 : 20, seed: luck.seed },
      );
      expect(prefixes.size).toBeGreaterThan(3);
    }));
});

/** Runs a writer until it has answered some batches, and kills it. */
async function writeAndDie(folder: string, hotEvents: number): Promise<readonly Ack[]> {
  const load = ["8", "1000", String(hotEvents), String(luck.whole(0, 2 ** 30))];
  const child = spawn(process.execPath, [writer, serverPath, folder, ...load], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const exited = once(child, "exit");
  const acks: Ack[] = [];
  const enough = luck.whole(1, 80);
  for await (const line of createInterface({ input: child.stdout })) {
    acks.push(JSON.parse(line) as Ack);
    if (acks.length === enough) child.kill("SIGKILL");
  }
  const [, signal] = await exited;
  expect(signal).toBe("SIGKILL");
  return acks;
}

/** A writer with this fault, which it may not survive; what it answered. */
function writeUnder(folder: string, fault: readonly string[]): readonly Ack[] {
  // Few hot events, so that there is compaction.
  const writing = [
    process.execPath,
    writer,
    serverPath,
    folder,
    "2",
    "15",
    "100",
    String(luck.whole(0, 2 ** 30)),
  ];
  const [program = "", ...args] = straced(join(folder, "trace"), fault, writing);
  const { stdout, signal } = spawnSync(program, args, { encoding: "utf8", timeout: 60_000 });
  expect([fault, signal]).toEqual([fault, null]);
  return stdout
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Ack);
}

async function expectAnswered(folder: string, acks: readonly Ack[]): Promise<void> {
  const { store } = openSqlite(server)(folder, server.systemClock);
  const { heads } = await store.listRuns(tenant, { limit: 10 });
  const logs = new Map<string, readonly { readonly payload: object }[]>();
  for (const { run } of heads) {
    const tree = await expectSoundTree(store, run);
    for (const [run_id, { full }] of tree) logs.set(run_id, full);
  }
  for (const { run_id, first_pos, last_pos, producer, batch } of acks) {
    const stored = logs.get(run_id)?.slice(first_pos - 1, last_pos) ?? [];
    const expected = Array.from({ length: last_pos - first_pos + 1 }, (_, i) => [producer, batch, i]);
    const found = stored.map(({ payload }) => {
      const { producer: by, batch: of, i } = payload as { [member: string]: unknown };
      return [by, of, i];
    });
    expect(found).toEqual(expected);
  }
  await store.close();
}

function integrityOf(folder: string): unknown {
  const db = new DatabaseSync(join(folder, "runwire.db"));
  try {
    return (db.prepare("PRAGMA integrity_check").get() as { integrity_check: unknown }).integrity_check;
  } finally {
    db.close();
  }
}

function torn(wal: Buffer, offset: number, bit: number | null): Buffer {
  if (bit === null) return wal.subarray(0, offset);
  const flipped = Buffer.from(wal);
  flipped[offset] = (flipped[offset] ?? 0) ^ (1 << bit);
  return flipped;
}

function openedOrRefused(folder: string): StoreUnderTest | undefined {
  try {
    return openSqlite(server)(folder, server.systemClock).store;
  } catch (error) {
    expect((error as Error).message).toMatch(/^[^\n]{10,300}$/);
    return undefined;
  }
}
