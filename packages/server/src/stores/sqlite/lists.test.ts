import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { firstHead, type Head } from "../../log/head.js";
import { runMap } from "../../run-map.js";
import { catalogue } from "./catalogue.js";
import type { GroupCommit } from "./group-commit.js";
import { lists } from "./lists.js";
import { openDatabase } from "./open.js";
import { openReader, type Reader } from "./reader.js";
import { schema, type Write } from "./schema.js";
import { transaction } from "./transaction.js";

const tenant = "acme";
const turns = 2000;
const name = (n: number): string => `run_${String(n).padStart(6, "0")}`;

function recordOf(run_id: string, parent_id: string | null): Head["run"] {
  return {
    tenant,
    run_id,
    parent_id,
    root_id: parent_id ?? run_id,
    depth: parent_id === null ? 0 : 1,
    created_at: "2026-01-01T00:00:00.000Z",
    session_id: "cron",
    agent: null,
    planning_gate: "off",
    external: true,
    lease_ms: 1000,
    metadata: {},
    idempotency: null,
    forked_from: null,
  };
}

/** A run that has ended, as the file has it. */
function ended(run_id: string, of: { readonly parent_id?: string; readonly title?: string } = {}): Write[] {
  const { parent_id = null, title = null } = of;
  const run = recordOf(run_id, parent_id);
  const head: Head = { ...firstHead(run), state: "done", title };
  return [
    ["addRun", tenant, run_id, run.root_id, parent_id, "cron", null, null, JSON.stringify(run)],
    ...(parent_id === null ? [["addTurn", tenant, "cron", run_id] as const] : []),
    ["keepHead", tenant, run_id, 1, JSON.stringify(head)],
    ["endRun", "done", 1, tenant, run_id],
  ];
}

describe("a list of a tenant that has thousands of runs", () => {
  const folder = mkdtempSync(join(tmpdir(), "runwire-lists-"));
  const path = join(folder, "runwire.db");
  const db = openDatabase(path, "os");
  const asked = new Set<string>();
  const heads = runMap<Head>();
  const arriving: string[] = [];
  let calls = 0;
  let rows = 0;
  let file: Reader;
  let listed: ReturnType<typeof lists>;

  beforeAll(() => {
    db.exec(schema);
    const first = Array.from({ length: turns }, (_, i) => ended(name(i)));
    const below = Array.from({ length: turns }, (_, i) =>
      ended(`run_c${i}`, { parent_id: name(0), title: "c" }),
    );
    transaction(db)([...first, ...below].flat());
    file = openReader(path);
    const counted: Reader = {
      ...file,
      prepare(sql) {
        const query = file.prepare(sql);
        const tell = <T>(found: T, count: number): T => {
          asked.add(sql);
          calls += 1;
          rows += count;
          return found;
        };
        return {
          get: (...values) => tell(query.get(...values), 1),
          all: (...values) => {
            const found = query.all(...values);
            return tell(found, found.length);
          },
          *iterate(...values) {
            for (const row of query.iterate(...values)) yield tell(row, 1);
          },
        };
      },
    };
    listed = lists({
      runs: catalogue(counted),
      heads,
      commits: {
        isArriving: (_tenant: string, run_id: string) => arriving.includes(run_id),
        turnsArriving: () => arriving,
      } as unknown as GroupCommit,
    });
  });

  afterAll(() => {
    file.close();
    db.close();
    rmSync(folder, { recursive: true, force: true });
  });

  /** What it comes to, and how many rows of the file that took. */
  async function reading<T>(what: () => Promise<T>): Promise<readonly [T, number]> {
    const before = rows;
    const found = await what();
    return [found, rows - before];
  }

  it("reads of a session without a title no more than it shows", async () => {
    const [session, read] = await reading(() => listed.session(tenant, "cron", 2));
    expect(session).toMatchObject({ title: null, turns_total: turns });
    expect(session?.turns.map(({ run }) => run.run_id)).toEqual([name(turns - 2), name(turns - 1)]);
    expect(read).toBeLessThan(10);
  });

  it("counts no turn that is being written, whether or not the file knows it already", async () => {
    arriving.push(name(turns), name(turns - 1));
    const session = await listed.session(tenant, "cron", 1);
    arriving.length = 0;
    expect(session).toMatchObject({ turns_total: turns - 1, turns: [{ run: { run_id: name(turns - 2) } }] });
  });

  it("finds a session's first title, wherever that is", async () => {
    const write = transaction(db);
    write(ended(name(turns), { title: "late" }));
    write(ended(name(turns + 1), { title: "later" }));
    const [{ sessions, next }, read] = await reading(() => listed.listSessions(tenant, { limit: 50 }));
    expect(sessions).toMatchObject([{ session_id: "cron", title: "late", turns_total: turns + 2 }]);
    expect([sessions[0]?.turns[0]?.run.run_id, next]).toEqual([name(turns + 1), null]);
    expect(read).toBeLessThan(10);
    // A title in the file that may not be stored after all.
    heads.set(tenant, name(turns), firstHead(recordOf(name(turns), null)));
    expect(await listed.session(tenant, "cron", 1)).toMatchObject({ title: null, titledBy: null });
    heads.delete(tenant, name(turns));
    for (const run_id of [name(turns), name(turns + 1)])
      write([
        ["dropTurn", tenant, run_id],
        ["dropEmptySession", tenant],
        ["dropRun", tenant, run_id],
        ["dropHead", tenant, run_id],
      ]);
    expect(await listed.session(tenant, "cron", 1)).toMatchObject({ title: null, turns_total: turns });
  });

  it("reads of a run's children no more than it shows", async () => {
    const [page, read] = await reading(() => listed.children({ tenant, run_id: name(0) }, { limit: 5 }));
    expect(page).toEqual({
      children: ["run_c0", "run_c1", "run_c10", "run_c100", "run_c1000"],
      next: "run_c1000",
    });
    expect(read).toBeLessThan(10);
  });

  it("lets others come while it looks for a state among those that live, and asks for many at once", async () => {
    const live = "globex";
    const write = transaction(db);
    for (let i = 0; i < turns; i++) {
      const run = { ...recordOf(name(i), null), tenant: live };
      // The oldest is the only one that is paused.
      heads.set(live, run.run_id, { ...firstHead(run), state: i === 0 ? "paused" : "running" });
      write([["addRun", live, run.run_id, run.root_id, null, "cron", null, null, JSON.stringify(run)]]);
    }
    for (const session of [{}, { session_id: "cron" }]) {
      const before = calls;
      let turnsOfLoop = 0;
      const count = (): void => {
        turnsOfLoop += 1;
        others = setImmediate(count);
      };
      let others = setImmediate(count);
      const page = await listed.listRuns(live, { state: "paused", limit: 1, ...session });
      clearImmediate(others);
      expect(page.heads.map(({ run }) => run.run_id)).toEqual([name(0)]);
      expect(turnsOfLoop).toBeGreaterThan(1);
      expect(calls - before).toBeLessThan(10);
    }
  });

  it("sorts nothing, and walks through no table", () => {
    const plans = [...asked].flatMap((sql) => db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all());
    const steps = plans.map((step) => (step as { detail: string }).detail);
    expect(steps.length).toBeGreaterThan(4);
    // What is walked through beside it is what the statement was given.
    const good = /^SEARCH|^SCALAR SUBQUERY|^SCAN json_each/;
    expect(steps.filter((step) => !good.test(step))).toEqual([]);
  });
});
