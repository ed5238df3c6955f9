// A disk gives back other bytes than it got, in any table: whoever asks is told what was stored, or that it is damaged, and
// never anything else. A row that is not found, because its key or an index is what was damaged, is another matter.

import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync, type DatabaseSyncInstance } from "@photostructure/sqlite";
import * as server from "@runwire/server";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { append, call, control, createRun, lifecycle, runPath, say, text } from "./gateway/calls.js";
import { caseCount, heldClock, lawMsMax } from "./suites/store/trial.js";

/** All that can be read, and what it was. */
type Answers = ReadonlyMap<string, string>;

type Value = string | number | null | Uint8Array;
interface Row {
  readonly [column: string]: Value;
}

const damaged = "KAI-SERVER-STORE-0003";
const tenant = "default";
const clock = heldClock();
const grantHash = "a".repeat(64);
const whole = mkdtempSync(join(tmpdir(), "runwire-whole-"));
const nameIn = (folder: string): string => join(folder, "runwire.db");
let runs: readonly string[] = [];
let ref = "";
let before: Answers = new Map();

beforeAll(async () => {
  await serving(whole, fill);
  before = await answersOf(whole);
  // Nothing of it is in memory, and each answer says something.
  expect(sql(whole, (db) => db.prepare("SELECT count(*) AS count FROM hot").get())).toEqual({ count: 0 });
  for (const [path, told] of before)
    expect([path, told]).toEqual([path, expect.stringMatching(/^(200|store) ./)]);
  expect(await answersOf(whole)).toEqual(before);
});
afterAll(() => rmSync(whole, { recursive: true, force: true }));

/** Where rows are, and what a reader sees of none of them. */
const keys: { readonly [table: string]: readonly string[] } = {
  runs: ["tenant", "run_id"],
  heads: ["tenant", "log"],
  segments: ["segment"],
  feed: ["tenant", "log", "pos"],
  snapshots: ["tenant", "log", "view", "pos"],
  sessions: ["tenant", "session_id"],
  tenants: ["tenant"],
  grants: ["hash"],
  allowed: ["tenant", "session_id", "tool"],
  blob_refs: ["tenant", "ref", "root_id"],
  meta: ["name"],
};

describe("one bit", { timeout: lawMsMax }, () => {
  for (const [table, key] of Object.entries(keys)) {
    it(`of a row of ${table} changes no answer: it is what it was, or the row is damaged`, async () => {
      const columns = sql(whole, (db) => db.prepare(`PRAGMA table_info(${table})`).all()) as {
        name: string;
      }[];
      for (const { name: column } of columns) {
        if (key.includes(column)) continue;
        await fc.assert(
          fc.asyncProperty(fc.noBias(fc.nat()), fc.noBias(fc.nat()), async (pick, bit) => {
            await onCopy(async (copy) => {
              const what = withoutIndexes(copy, (db) => damageRow(db, table, key, column, pick, bit));
              await expectTold(copy, (path, told) =>
                expect([what, path, told]).toEqual([what, path, before.get(path)]),
              );
            });
          }),
          { ...caseCount(2), endOnFailure: true },
        );
      }
    });
  }

  it("anywhere in the file tells nobody what was not said: rows may be lost to it, and none is another", () =>
    fc.assert(
      fc.asyncProperty(fc.noBias(fc.nat()), fc.nat(7), async (pick, bit) => {
        await onCopy(async (copy) => {
          const at = flipByte(nameIn(copy), pick, bit);
          await expectTold(copy, (path, told) => {
            if (!told.startsWith("200") && !told.startsWith("store")) {
              expect([at, path, told]).toEqual([at, path, expect.stringMatching(/^(404|410) /)]);
              return;
            }
            const said = new Set(stringsIn(before.get(path) ?? ""));
            expect([at, path, stringsIn(told).filter((text) => !said.has(text))]).toEqual([at, path, []]);
          });
        });
      }),
      { ...caseCount(30), endOnFailure: true },
    ));
});

describe("a run", () => {
  it("whose kept transcript is damaged is folded anew, from the one before where there is one", () =>
    onCopy(async (copy) => {
      const key = { tenant, run_id: runs[0] as string };
      const keptBefore = (pos: number) =>
        serving(copy, async (_, store) => (await store.snapshotBefore(key, "default", pos))?.pos);
      sql(copy, (db) => db.exec("DELETE FROM snapshots"));
      await serving(copy, async (_, store) => {
        for (const pos of [2, 4]) {
          const transcript = await server.transcripts(store).at(key, "default", pos);
          await store.keepSnapshot(key, "default", pos, JSON.stringify(transcript));
        }
      });
      expect(await keptBefore(9)).toBe(4);
      const damage = (pos: number): void =>
        sql(copy, (db) => {
          db.prepare(
            "UPDATE snapshots SET transcript = replace(transcript, 'run_', 'rum_') WHERE pos = ?",
          ).run(pos);
        });
      damage(4);
      expect(await keptBefore(9)).toBe(2);
      expect(await answersOf(copy)).toEqual(before);
      damage(2);
      expect(await keptBefore(9)).toBeUndefined();
      expect(await answersOf(copy)).toEqual(before);
    }));

  it("that has ended and whose head is lost is damaged, and not as it was when it began", () =>
    onCopy(async (copy) => {
      const [run_id] = runs as [string];
      sql(copy, (db) => db.prepare("DELETE FROM heads WHERE log = ?").run(run_id));
      const answers = await answersOf(copy);
      for (const path of [
        `/v1/agent/runs/${run_id}`,
        runPath(run_id, "snapshot"),
        "/v1/agent/runs?state=done",
      ])
        expect([path, answers.get(path)]).toEqual([path, expect.stringContaining(damaged)]);
    }));

  it("whose end cannot be told is not let go because of its age", () =>
    onCopy(async (copy) => {
      sql(copy, (db) => db.exec("UPDATE runs SET ended_ms = ended_ms - 1e12 WHERE state = 'error'"));
      const old = { ageMsMin: 1e9, limit: 10, full: false } as const;
      const found = await serving(copy, (_, store) => store.endedTrees(tenant, { ...old, state: "error" }));
      expect(found.trees).toEqual([]);
    }));
});

describe("a file of the format before, without these checksums", () => {
  it("answers as it did, and its rows have them from then on", () =>
    onCopy(async (copy) => {
      sql(copy, (db) => {
        for (const table of Object.keys(keys)) db.exec(`ALTER TABLE ${table} DROP COLUMN row_crc`);
        db.exec("DROP TABLE sessions; UPDATE meta SET value = '4' WHERE name = 'format'");
      });
      expect(await answersOf(copy)).toEqual(before);
      for (const table of Object.keys(keys)) {
        const without = sql(copy, (db) => db.prepare(`SELECT * FROM ${table} WHERE row_crc IS NULL`).all());
        expect([table, without]).toEqual([table, []]);
      }
      expect(await answersOf(copy)).toEqual(before);
    }));
});

/** What is answered is judged where it is neither what it was nor the refusal. */
async function expectTold(folder: string, judge: (path: string, told: string) => void): Promise<void> {
  let answers: Answers;
  try {
    answers = await answersOf(folder);
  } catch (error) {
    expect((error as Error).message).toMatch(/^[^\n]{10,400}$/);
    return;
  }
  for (const [path, told] of answers)
    if (told !== before.get(path) && !told.includes(damaged)) judge(path, told);
}

async function onCopy(does: (folder: string) => Promise<void>): Promise<void> {
  const copy = mkdtempSync(join(tmpdir(), "runwire-damaged-"));
  try {
    cpSync(whole, copy, { recursive: true });
    await does(copy);
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}

async function serving<T>(
  dataFolder: string,
  does: (url: string, store: server.Store) => Promise<T>,
): Promise<T> {
  let store: server.Store | undefined;
  const gateway = await server.startGateway(
    { dataFolder, durability: "os", port: 0, log: "error" },
    clock,
    undefined,
    (options) => {
      store = server.sqliteStore({ ...options, hotEventsMax: 0 });
      return store;
    },
  );
  try {
    return await does(gateway.url, store as server.Store);
  } finally {
    await gateway.close();
  }
}

/** Of every table some rows, of runs that have ended and one that lives. */
async function fill(url: string, store: server.Store): Promise<void> {
  const turn = { session_id: "chat_1", agent: "writer" };
  const first = await createRun(url, { ...turn, metadata: { of: "first" } });
  await append(url, first, say("title", { title: "About bits" }), text("one"), text("two"));
  const { body } = await call(url, "POST", runPath(first, "children"), { prompt: "help" });
  const child = body.run_id as string;
  await append(url, first, text("three", child), lifecycle("done", child));
  await append(
    url,
    first,
    say("tool.start", { call_id: "call_1", tool: "shell", input: {} }),
    say("approval.requested", { approval_id: "appr_1", call_id: "call_1", tool: "shell" }),
  );
  expect((await control(url, first, "approvals/appr_1", { decision: "session" })).status).toBe(200);
  const output = "large ".repeat(50_000);
  await append(url, first, say("tool.end", { call_id: "call_1", ok: true, output }), lifecycle("done"));
  const second = await createRun(url, turn);
  for (let n = 0; n < 4; n++) await append(url, second, text(`${n} `.repeat(10_000)), say("custom", { n }));
  await append(url, second, lifecycle("error"));
  const live = await createRun(url);
  await append(url, live, text("lives"), say("approval.requested", { approval_id: "appr_2", call_id: "c" }));
  runs = [first, child, second, live];
  const page = (await call(url, "GET", runPath(first, "events?detail=full"))).text;
  ref = /"blob_ref":"(\w+)"/.exec(page)?.[1] ?? "";
  for (const run_id of [first, second]) {
    const key = { tenant, run_id };
    const { pos = 0 } = (await store.head(key))?.views.default ?? {};
    const transcript = await server.transcripts(store).at(key, "default", pos);
    await store.keepSnapshot(key, "default", pos, JSON.stringify(transcript));
  }
  await call(url, "PUT", "/v1/retention", { done_days: 30, aborted_days: 30, error_days: 30, full_days: 30 });
  await store.grants.put({
    ...{ hash: grantHash, kind: "session", tenant, scopes: ["read"], credential: "key_1" },
    ...{ resource: null, madeMs: clock.now(), usedMs: null, endsMs: clock.now() + 60_000, csrf: "word" },
  });
  await store.grants.use(grantHash, clock.now());
  for (let steps = 0; steps < 20; steps++) await store.append({ tenant, run_id: first }, () => {});
}

async function answersOf(folder: string): Promise<Answers> {
  return serving(folder, async (url, store) => {
    const answers = new Map<string, string>();
    const paths = runs.flatMap((run_id) => [
      `/v1/agent/runs/${run_id}`,
      ...["children", "snapshot", "steps", "trace", "replay.jsonl", "events?detail=full&dialect=runwire"].map(
        (rest) => runPath(run_id, rest),
      ),
      ...["events?after=2&dialect=koder"].map((rest) => runPath(run_id, rest)),
    ]);
    const lists = [
      "runs",
      "runs?state=done",
      "runs?state=running",
      "runs?agent=writer",
      "runs?session_id=chat_1",
    ];
    const others = ["sessions", "sessions/chat_1", "approvals?session_id=chat_1", "inbox"];
    paths.push(
      ...[...lists, ...others].map((rest) => `/v1/agent/${rest}`),
      "/v1/retention",
      `/v1/blobs/${ref}`,
    );
    for (const path of paths) {
      const { status, text: told } = await call(url, "GET", path);
      answers.set(path, `${status} ${told}`);
    }
    const ask = async (name: string, asking: Promise<unknown>): Promise<void> => {
      const told = await asking.then(
        (answer) => `store ${JSON.stringify(answer)}`,
        (error: unknown) => `${(error as { code?: string }).code} ${error}`,
      );
      answers.set(name, told);
    };
    for (const topic of ["runs", "inbox"])
      await ask(
        `feed ${topic}`,
        store.read({ tenant, run_id: `feed:${tenant}:${topic}` }, "default", 0, 1 << 20),
      );
    await ask("grant", store.grants.get(grantHash));
    await ask("ended", store.endedMs({ tenant, run_id: runs[0] as string }));
    return answers;
  });
}

/** Indexes stay as they are, as they do where the disk forgets a bit. */
function withoutIndexes<T>(folder: string, change: (db: DatabaseSyncInstance) => T): T {
  const schemaRows = (db: DatabaseSyncInstance, does: () => void): void => {
    db.enableDefensive(false);
    db.exec("PRAGMA writable_schema=ON; BEGIN");
    does();
    db.exec("COMMIT");
  };
  const indexes: Row[] = [];
  sql(folder, (db) =>
    schemaRows(db, () => {
      const some = "FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL";
      indexes.push(...(db.prepare(`SELECT * ${some}`).all() as Row[]));
      db.exec(`DELETE ${some}`);
    }),
  );
  const changed = sql(folder, change);
  sql(folder, (db) =>
    schemaRows(db, () => {
      for (const index of indexes) {
        const add = db.prepare("INSERT INTO sqlite_schema VALUES (?,?,?,?,?)");
        add.run(...["type", "name", "tbl_name", "rootpage", "sql"].map((column) => index[column] as Value));
      }
    }),
  );
  return changed;
}

/** Flips a bit of a column of a row; one that is empty is so no more. */
function damageRow(
  db: DatabaseSyncInstance,
  table: string,
  key: readonly string[],
  column: string,
  pick: number,
  bit: number,
): string {
  const rows = db.prepare(`SELECT ${key.join(", ")}, ${column} AS value FROM ${table}`).all() as Row[];
  const row = rows[pick % rows.length] as Row;
  const { value } = row as { value: Value };
  const [wanted, bound] =
    typeof value === "string"
      ? ["CAST(? AS TEXT)", flipped(Buffer.from(value), bit)]
      : ["?", other(value, bit)];
  const where = key.map((name) => `${name} = ?`).join(" AND ");
  db.prepare(`UPDATE ${table} SET ${column} = ${wanted} WHERE ${where}`).run(
    bound,
    ...key.map((name) => row[name] as Value),
  );
  return `${table}.${column}: ${JSON.stringify(value).slice(0, 200)}, bit ${bit}`;
}

function other(value: Exclude<Value, string>, bit: number): Value {
  if (value === null) return "x";
  if (typeof value === "number")
    return Number.isInteger(value) ? value ^ (1 << (bit % 20)) : value + 1 + (bit % 1000);
  return flipped(value, bit);
}

function flipped(bytes: Uint8Array, bit: number): Uint8Array {
  if (bytes.length === 0) return Buffer.from("x");
  const changed = Uint8Array.from(bytes);
  const at = Math.floor(bit / 8) % changed.length;
  changed[at] = (changed[at] ?? 0) ^ (1 << (bit % 8));
  return changed;
}

function sql<T>(folder: string, ask: (db: DatabaseSyncInstance) => T): T {
  const db = new DatabaseSync(nameIn(folder), { timeout: 10_000 });
  try {
    return ask(db);
  } finally {
    db.close();
  }
}

function flipByte(path: string, pick: number, bit: number): number {
  const bytes = readFileSync(path);
  const at = pick % bytes.length;
  bytes[at] = (bytes[at] ?? 0) ^ (1 << bit);
  writeFileSync(path, bytes);
  return at;
}

function stringsIn(told: string): readonly string[] {
  return told.match(/"(?:[^"\\]|\\.)*"/g) ?? [];
}
