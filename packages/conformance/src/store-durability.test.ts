// What "answered" rests on: the disk is waited for, one server owns a folder, what is erased is gone from the
// file, and a file that cannot be read is refused in one line.

import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  copyFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { DatabaseSync } from "@photostructure/sqlite";
import { type Draft, limits } from "@runwire/protocol";
import * as server from "@runwire/server";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openDatabase } from "../../server/dist/stores/sqlite/open.js";
import { strace } from "./strace.js";
import { runsFeed } from "./suites/store/log.js";
import { openSqlite } from "./suites/store/server-module.js";
import { wholeLog } from "./suites/store/soundness.js";
import { treeOf } from "./suites/store/tree.js";
import { asked, codeOf, freshIds, newRun, onTrial, tenant } from "./suites/store/trial.js";
import type { Open } from "./suites/store/under-test.js";

const writer = fileURLToPath(new URL("./crash-writer.js", import.meta.url));
const serverPath = import.meta.resolve("@runwire/server");

describe("a data folder", () => {
  let folder = "";
  const path = () => join(folder, "runwire.db");
  const open = () => openSqlite(server)(folder, server.systemClock).store;

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "runwire-durability-"));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it("is written with synchronous=FULL, also when it is opened for the second time", () => {
    for (let opens = 0; opens < 2; opens++) {
      const db = openDatabase(path(), "fsync");
      expect(db.prepare("PRAGMA synchronous").get()).toEqual({ synchronous: 2 });
      expect(db.prepare("PRAGMA journal_mode").get()).toEqual({ journal_mode: "wal" });
      db.close();
    }
  });

  it("is flushed to disk at least once for every answered commit", ({ skip }) => {
    if (strace.whyNot !== undefined) skip(strace.whyNot);
    for (let opens = 0; opens < 2; opens++) {
      const trace = join(folder, "trace");
      // One producer that waits for each answer: every batch is a commit of its own.
      const traced = spawnSync(
        "strace",
        [
          ...["-f", "-qq", "-e", "trace=fsync,fdatasync", "-o", trace],
          ...[process.execPath, writer, serverPath, folder, "1", "40", "1000"],
        ],
        { encoding: "utf8" },
      );
      expect(traced.stderr).toBe("");
      const commits = traced.stdout.trim().split("\n").length;
      expect(commits).toBe(40);
      const flushes = readFileSync(trace, "utf8").match(/\bf(?:data)?sync\(/g)?.length ?? 0;
      expect(flushes).toBeGreaterThanOrEqual(commits);
    }
  });

  it("has one owner: a second server is refused in one line, and a dead one's lock is free", async () => {
    const child = spawn(process.execPath, [writer, serverPath, folder, "1", "100000", "1000"], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    await once(child.stdout, "data");
    const refusal = /^[^\n]*runwire\.db is in use by another server; stop it, or choose another data folder$/;
    expect(open).toThrow(refusal);
    child.kill("SIGKILL");
    await once(child, "exit");
    const store = open();
    expect(open).toThrow(refusal);
    await store.close();
    await open().close();
  });

  it("that this server cannot read is refused in one line, and stays as it is", async () => {
    const db = new DatabaseSync(path());
    const { value: format } = db.prepare("SELECT value FROM meta WHERE name = 'format'").get() as {
      value: string;
    };
    db.exec("UPDATE meta SET value = '999' WHERE name = 'format'");
    expect(open).toThrow(/^[^\n]*has format 999, and this server reads format \d+;[^\n]*$/);
    db.prepare("UPDATE meta SET value = ? WHERE name = 'format'").run(format);
    db.close();
    // The refusal has freed the lock. A clean close leaves everything in one file.
    await open().close();
    expect(statSync(`${path()}-wal`, { throwIfNoEntry: false })?.size ?? 0).toBe(0);
    const garbage = Buffer.alloc(8192, "not a database ");
    writeFileSync(path(), garbage);
    expect(open).toThrow(/^[^\n]{10,200}$/);
    expect(readFileSync(path())).toEqual(garbage);
  });
});

describe("files that are taken away from a running server", () => {
  const takers: readonly [string, (path: string) => void][] = [
    ["removed", (path) => rmSync(path)],
    ["replaced", (path) => copyFileSync(path, `${path}.new`) ?? renameSync(`${path}.new`, path)],
  ];
  for (const file of ["runwire.db", "runwire.db-wal"]) {
    for (const [how, take] of takers) {
      it(`take no more events, and that is told: ${file} is ${how}`, () =>
        onTrial(openSqlite(server), async ({ folder, ingest, store }) => {
          const key = await newRun({ ingest });
          const append = () => ingest.append(key, [{ type: "custom", payload: {} }]);
          await append();
          take(join(folder, file));
          // The first may be stored where the files now are; what comes after it is not.
          for (const isInDoubt of [true, false]) {
            const refusal: unknown = await append().catch((error: unknown) => error);
            expect(refusal).toMatchObject({ code: "KAI-SERVER-STORE-0001" });
            expect(refusal instanceof server.InDoubt).toBe(isInDoubt);
          }
          expect((store as server.Store).levels()).toMatchObject({ writing: "broken" });
          expect(await wholeLog(store, key, "full")).toHaveLength(3);
        }));

      it(`keep nothing that a retry would find, and that nobody could later: ${file} is ${how}`, () =>
        onTrial(openSqlite(server), async ({ folder, ingest }) => {
          await newRun({ ingest });
          take(join(folder, file));
          const under = { key: "K", digest: "D" };
          for (const _ of ["first", "again"])
            await expect(ingest.create("acme", asked(), under)).rejects.toMatchObject({
              code: "KAI-SERVER-STORE-0001",
            });
        }));
    }
  }
});

describe("a disk that fails where nobody waits for an answer", () => {
  it("takes no more events: the log beside the database cannot be moved into it", () =>
    onTrial(openSqlite(server), async ({ folder, ingest, store }) => {
      const key = await newRun({ ingest });
      const filling = { type: "custom", payload: { text: "x".repeat(16 * 1024) } } as const;
      const wal = join(folder, "runwire.db-wal");
      const shortened = async () => {
        await ingest.append(key, Array(400).fill(filling)).catch(() => {});
        // What is read back is less than what was written, unless it has just been moved.
        truncateSync(wal, 5 * 1024 * 1024);
        return (store as server.Store).levels().writing;
      };
      await expect.poll(shortened, { timeout: 15_000, interval: 1200 }).toBe("broken");
      expect(await codeOf(ingest.append(key, [filling]))).toBe("KAI-SERVER-STORE-0001");
    }));
});

describe("a program that reads the database for long", () => {
  it("keeps no append waiting, and the log beside the database shrinks when it has read", () =>
    onTrial(openSqlite(server), async ({ folder, ingest, store }) => {
      const [key, erased] = [await newRun({ ingest }), await newRun({ ingest })];
      const wal = join(folder, "runwire.db-wal");
      const other = new DatabaseSync(join(folder, "runwire.db"));
      let eraseMs = 0;
      let slowestMs = 0;
      try {
        other.exec("BEGIN");
        other.prepare("SELECT count(*) FROM runs").get();
        // What is erased does wait for it.
        const eraseBeganMs = performance.now();
        expect(await codeOf(store.eraseTree(erased))).toBe("KAI-SERVER-STORE-0001");
        eraseMs = performance.now() - eraseBeganMs;
        await ingest.append(key, [{ type: "custom", payload: {} }]);
        const filling = { type: "custom", payload: { text: "x".repeat(48 * 1024) } } as const;
        for (let i = 0; i < 20; i++) await ingest.append(key, Array(100).fill(filling));
        expect(statSync(wal).size).toBeGreaterThan(70 * 1024 * 1024);
        // In each of these seconds somebody sees that it is too long.
        for (const untilMs = performance.now() + 4000; performance.now() < untilMs; ) {
          const beganMs = performance.now();
          await ingest.append(key, [{ type: "custom", payload: {} }]);
          slowestMs = Math.max(slowestMs, performance.now() - beganMs);
        }
      } finally {
        other.close();
      }
      expect(slowestMs).toBeLessThan(0.75 * eraseMs);
      const walBytes = async () => {
        // It is whoever writes next that begins it anew.
        await ingest.append(key, [{ type: "custom", payload: {} }]);
        return (store as server.Store).levels().walBytes;
      };
      await expect.poll(walBytes, { timeout: 15_000 }).toBeLessThanOrEqual(64 * 1024 * 1024);
    }));
});

describe("a hot row", () => {
  it("with a flipped bit in any column is refused at the start, in one line that names the file", () =>
    onTrial(openSqlite(server), async (trial) => {
      const key = await newRun(trial);
      const producer = { id: "p", epoch: 1, seq: 1 };
      const said: Draft = { type: "text.delta", payload: { text: "zażółć 🜂" }, scope: { turn_id: "turn_1" } };
      await trial.ingest.append(key, [said, said, { type: "custom", payload: {} }], producer);
      const before = await wholeLog(trial.store, key, "default");
      await trial.reopen();
      expect(await wholeLog(trial.store, key, "default")).toEqual(before);
      await fc.assert(
        fc.asyncProperty(fc.nat(), fc.nat(), fc.nat(), async (pickRow, pickColumn, pick) => {
          const copy = mkdtempSync(join(tmpdir(), "runwire-hot-"));
          try {
            for (const name of ["runwire.db", "runwire.db-wal"]) {
              const file = join(trial.folder, name);
              if (existsSync(file)) copyFileSync(file, join(copy, name));
            }
            damageHot(join(copy, "runwire.db"), pickRow, pickColumn, pick);
            expect(() => openSqlite(server)(copy, trial.clock)).toThrow(
              /^stored data is damaged: [^\n]*runwire\.db: hot row \d+ \(its checksum differs\)$/,
            );
          } finally {
            rmSync(copy, { recursive: true, force: true });
          }
        }),
        { numRuns: 40 },
      );
    }));
});

/** Changes one character of one column that is set. */
function damageHot(path: string, pickRow: number, pickColumn: number, pick: number): void {
  const db = new DatabaseSync(path);
  try {
    const rows = db.prepare("SELECT * FROM hot").all() as { [column: string]: string | number | null }[];
    const row = rows[pickRow % rows.length] ?? {};
    const columns = Object.keys(row).filter((column) => column !== "row" && row[column] !== null);
    const column = columns[pickColumn % columns.length] ?? "";
    const value = row[column] ?? "";
    const text = [...String(value)];
    text[pick % text.length] = text[pick % text.length] === "1" ? "2" : "1";
    const damaged = typeof value === "number" ? value + 1 + (pick % 100) : text.join("");
    db.prepare(`UPDATE hot SET ${column} = ? WHERE row = ?`).run(damaged, row.row ?? 0);
  } finally {
    db.close();
  }
}

describe("a run whose creation is on its way to the disk", () => {
  it("is shown by nothing until all of it is there, and then by everything", async () => {
    const folder = mkdtempSync(join(tmpdir(), "runwire-arriving-"));
    let committed = () => {};
    let release = () => {};
    let answer = Promise.resolve();
    const store = server.sqliteStore({
      path: join(folder, "runwire.db"),
      durability: "os",
      clock: server.systemClock,
      openWriter(path, durability) {
        const writer = server.writerHere(path, durability);
        const write: typeof writer.write = async (list) => {
          await writer.write(list);
          committed();
          await answer;
        };
        return { ...writer, write };
      },
    });
    const ingest = server.ingest(store, server.transcripts(store), {});
    const session_id = "talk";
    const turn = async (): Promise<string> =>
      (await ingest.create(tenant, { ...asked(), session_id } as never)).run_id;
    const shown = async (key: { tenant: string; run_id: string }) => ({
      runs: (await store.listRuns(tenant, { limit: 2 })).heads.map(({ run }) => run.run_id),
      session: await store.session(tenant, session_id, 2),
      sessions: (await store.listSessions(tenant, { limit: 2 })).sessions.map(({ turns }) => turns.length),
      tree: (await treeOf(store, key)).map(({ run_id }) => run_id),
      head: await store.head(key),
      events: (await wholeLog(store, key, "default")).length,
      told: (await store.read(runsFeed(tenant), "default", 0, 1 << 20)).events.length,
    });
    try {
      const first = await turn();
      answer = new Promise((resolve) => {
        release = resolve;
      });
      const inFile = new Promise<void>((resolve) => {
        committed = resolve;
      });
      const arriving = turn();
      await inFile;
      const [second = ""] = rowsIn(folder, "SELECT run_id FROM runs WHERE run_id != ?", first);
      expect(await shown({ tenant, run_id: second })).toMatchObject({
        runs: [first],
        session: { turns: [{ run: { run_id: first } }], turns_total: 1 },
        sessions: [1],
        tree: [],
        head: undefined,
        events: 0,
        told: 2,
      });
      release();
      expect(await arriving).toBe(second);
      expect(await shown({ tenant, run_id: second })).toMatchObject({
        runs: [second, first],
        session: { turns: [{ run: { run_id: first } }, { run: { run_id: second } }], turns_total: 2 },
        sessions: [1],
        tree: [second],
        head: { run: { run_id: second } },
        events: 2,
        told: 4,
      });
    } finally {
      release();
      ingest.close();
      await store.close();
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

describe("an erased tree", () => {
  for (const hotEventsMax of [100_000, 10]) {
    it(`leaves tombstones and nothing else in any table, with ${hotEventsMax} hot events`, () =>
      onTrial(openSqlite(server, { hotEventsMax }), async (trial) => {
        const secret = "swordfish";
        const key = await newRun(trial);
        const kept = await newRun(trial);
        const said = (child_id: string | null): Draft => ({
          type: "text.delta",
          payload: { text: secret },
          child_id,
        });
        await trial.ingest.append(
          key,
          freshIds([
            { type: "title", payload: { title: secret } },
            { type: "child.spawn", payload: { child_id: "run_1", prompt: secret } },
            said("run_1"),
            said("run_1"),
            said(null),
            ...Array.from({ length: 40 }, (): Draft => ({ type: "custom", payload: { secret } })),
            said(null),
          ]),
        );
        await trial.store.keepSnapshot(key, "default", 5, JSON.stringify({ secret }));
        const runs = (await treeOf(trial.store, key)).map(({ run_id }) => run_id);
        expect(rowsWith(trial.folder, [secret]).length).toBeGreaterThan(2);
        await trial.store.eraseTree(key);
        expect(rowsWith(trial.folder, [secret])).toEqual([]);
        // Nor in free pages or the write-ahead log, where no query would find it.
        const files = readdirSync(trial.folder).filter((file) =>
          readFileSync(join(trial.folder, file)).includes(secret),
        );
        expect(files).toEqual([]);
        // Entries of the run list keep their numbers and the id of the run, without what it said.
        const left = rowsWith(trial.folder, runs);
        expect([...new Set(left.map(({ table }) => table))].sort()).toEqual(["feed", "tombstones"]);
        for (const { table, text } of left) {
          if (table === "feed") expect(text).toContain("x.runwire.erased");
        }
        await trial.ingest.append(kept, [{ type: "custom", payload: {} }]);
        trial.clock.pass(limits.tickMs);
        await trial.ingest.sweep();
        expect(rowsWith(trial.folder, [secret])).toEqual([]);
      }));
  }
});

describe("a tree that is erased while another program reads the file", () => {
  it("is gone for everybody, is not said to be until it is gone from the disk too, and that is seen to", () =>
    onTrial(openSqlite(server), async (trial) => {
      const secret = "pineapple";
      const key = await newRun(trial);
      await trial.ingest.append(key, [{ type: "custom", payload: { secret } }]);
      const inFiles = () =>
        readdirSync(trial.folder).filter((file) => readFileSync(join(trial.folder, file)).includes(secret));
      expect(inFiles()).not.toEqual([]);
      const other = new DatabaseSync(join(trial.folder, "runwire.db"));
      other.exec("BEGIN");
      other.prepare("SELECT count(*) FROM runs").get();
      expect(await codeOf(trial.store.eraseTree(key))).toBe("KAI-SERVER-STORE-0001");
      expect(await trial.store.head(key)).toBeUndefined();
      expect(await trial.store.isErased(key)).toBe(true);
      // Nothing else has suffered.
      await trial.ingest.append(await newRun(trial), [{ type: "custom", payload: {} }]);
      other.exec("COMMIT");
      trial.clock.pass(60_000);
      await trial.store.prune();
      expect(inFiles()).toEqual([]);
      other.close();
    }));
});

describe("a tree that is erased while its blobs cannot be removed", () => {
  it("is erased by everybody else all the same", async () => {
    const folder = mkdtempSync(join(tmpdir(), "runwire-erased-"));
    const path = join(folder, "runwire.db");
    const store = server.sqliteStore({ path, durability: "os", clock: server.systemClock });
    const ingest = server.ingest(store, server.transcripts(store));
    const erased: string[] = [];
    store.onUnreferred(() => Promise.reject(new Error("no")));
    store.onErased(async (roots) => void erased.push(...roots.map((root) => root.run_id)));
    const { run_id } = await ingest.create(tenant, asked() as never);
    const blob = { ref: `blob_${"0".repeat(64)}`, media_type: "text/plain", bytes: 1 };
    await store.append({ tenant, run_id }, (commit) =>
      commit.write(run_id, { type: "custom", payload: {} }, [blob]),
    );
    await expect(store.eraseTree({ tenant, run_id })).rejects.toThrow("no");
    expect(erased).toEqual([run_id]);
    ingest.close();
    await store.close();
    rmSync(folder, { recursive: true });
  });
});

describe("what many runs had not said when a server died", () => {
  it("is said by one sweep, in a few commits", async () => {
    let commits = 0;
    const open: Open = (folder, clock, given) => {
      const path = join(folder, "runwire.db");
      const observe = {
        committed: () => {
          commits += 1;
        },
        commitFailed() {},
        compactionFailed() {},
        readFailed() {},
      };
      const store = server.sqliteStore({ path, durability: "os", clock, observe });
      return { store, ingest: server.ingest(store, server.transcripts(store), given as never) } as never;
    };
    await onTrial(open, async (trial) => {
      const keys = await Promise.all(Array.from({ length: 100 }, () => newRun(trial)));
      for (const text of ["a", "b"])
        await Promise.all(
          keys.map((key) => trial.ingest.append(key, [{ type: "text.delta", payload: { text } }])),
        );
      await trial.reopen();
      trial.clock.pass(limits.tickMs);
      commits = 0;
      await trial.ingest.sweep();
      expect(commits).toBeLessThan(10);
      for (const key of keys) expect((await trial.store.head(key))?.groups).toEqual([]);
    });
  });
});

describe("a feed of which the oldest entries are no longer kept", () => {
  it("gives nothing to whoever would miss some of them, and the rest to everybody else", () =>
    onTrial(openSqlite(server), async (trial) => {
      const feed = { tenant, run_id: `feed:${tenant}:runs` };
      const entriesAfter = async (pos: number) =>
        (await trial.store.read(feed, "default", pos, 1024 * 1024)).events.map((e) => e.pos);
      await newRun(trial);
      await newRun(trial);
      expect(await entriesAfter(0)).toEqual([1, 2, 3, 4]);
      trial.clock.pass(limits.feedAgeMs + 1);
      await newRun(trial);
      await trial.store.prune();
      for (const pos of [0, 1, 3]) expect(await entriesAfter(pos)).toEqual([]);
      expect(await entriesAfter(4)).toEqual([5, 6]);
      expect(await entriesAfter(6)).toEqual([]);
    }));

  it("has no holes, wherever the clock stood when entries came", () =>
    onTrial(openSqlite(server), async (trial) => {
      const feed = { tenant, run_id: `feed:${tenant}:runs` };
      await newRun(trial);
      trial.clock.jump(10 * limits.feedAgeMs);
      await newRun(trial);
      trial.clock.jump(-10 * limits.feedAgeMs);
      await newRun(trial);
      trial.clock.pass(limits.feedAgeMs + 1);
      await newRun(trial);
      await trial.store.prune();
      const { events } = await trial.store.read(feed, "default", 2, 1024 * 1024);
      expect(events.map((e) => e.pos)).toEqual([3, 4, 5, 6, 7, 8]);
    }));
});

describe("a store that is closed", () => {
  it("refuses what comes too late, and leaves nobody waiting", async () => {
    const folder = mkdtempSync(join(tmpdir(), "runwire-closed-"));
    const opened = openSqlite(server)(folder, server.systemClock);
    const { store } = opened;
    const key = await newRun(opened);
    opened.ingest.close();
    await store.close();
    const late = [store.append(key, () => {}), store.eraseTree(key), store.dropFullViews([key])];
    for (const refused of late) expect(await codeOf(refused)).toBe("KAI-STREAM-LEAVING-0001");
    rmSync(folder, { recursive: true });
  });
});

/** Rows of any table that hold one of these words. */
function rowsWith(folder: string, words: readonly string[]): { table: string; text: string }[] {
  const db = new DatabaseSync(join(folder, "runwire.db"), { timeout: 10_000 });
  try {
    const tables = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all() as {
      name: string;
    }[];
    return tables.flatMap(({ name }) =>
      (db.prepare(`SELECT * FROM ${name}`).all() as object[])
        .map((row) => ({ table: name, text: Object.values(row).map(textOf).join("\n") }))
        .filter(({ text }) => words.some((word) => text.includes(word))),
    );
  } finally {
    db.close();
  }
}

function rowsIn(folder: string, query: string, ...values: string[]): string[] {
  const db = new DatabaseSync(join(folder, "runwire.db"), { timeout: 10_000 });
  try {
    return db
      .prepare(query)
      .all(...values)
      .flatMap((row) => Object.values(row as object).map(String));
  } finally {
    db.close();
  }
}

function textOf(value: unknown): string {
  return value instanceof Uint8Array ? Buffer.from(value).toString("latin1") : String(value);
}
