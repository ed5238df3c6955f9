import { idSource } from "@runwire/protocol";
import { expect, it } from "vitest";
import type { Commit } from "../../log/commit.js";
import { feedHead, type Head } from "../../log/head.js";
import { runMap } from "../../run-map.js";
import { InDoubt } from "../../store.js";
import { type GroupCommitParts, groupCommit } from "./group-commit.js";
import { hotIndex } from "./hot.js";
import type { Write } from "./schema.js";
import { watch } from "./watch.js";

const tenant = "acme";
const clock = { now: () => 0, monotonic: () => 0 };

const heads = runMap<Head>();
const written: Write[] = [];
let isDamaged = false;

function commitsHere(parts: Partial<GroupCommitParts> = {}) {
  return groupCommit({
    clock,
    age: { now: () => 0, save: () => ["setMeta", "age", ""] },
    ids: idSource(() => 0),
    heads,
    hot: hotIndex(),
    watch: watch(clock, heads),
    writer: {
      condition: "ok",
      async write(list) {
        for (const row of list) written.push(row);
      },
      truncate: async () => {},
      close: async () => {},
    },
    compact: { isDue: () => false, step: () => undefined, stepOf: () => undefined },
    headOf(_tenant, log) {
      if (isDamaged) throw new Error("damaged");
      return heads.get(tenant, log);
    },
    isErased: () => false,
    createdUnder: () => undefined,
    lastRow: 0,
    moved: () => {},
    ...parts,
  });
}

it("an append that is refused for a head that cannot be read leaves nothing in its batch", async () => {
  const commits = commitsHere();
  const create = (run_id: string) => (commit: Commit) => {
    isDamaged = false;
    const { run } = feedHead(tenant, run_id);
    commit.create(run);
    commit.write(run_id, { type: "run.lifecycle", payload: { state: "running", reason: null } });
  };
  const answers = await Promise.allSettled([
    commits.append(tenant, (commit) => {
      create("run_a")(commit);
      isDamaged = true;
    }),
    commits.append(tenant, create("run_b")),
  ]);
  expect(answers.map(({ status }) => status)).toEqual(["rejected", "fulfilled"]);
  expect(JSON.stringify(written)).toContain("run_b");
  expect(JSON.stringify(written)).not.toContain("run_a");
  expect(heads.get(tenant, "run_a")).toBeUndefined();
  expect(heads.get(tenant, `feed:${tenant}:runs`)?.views.default.pos).toBe(1);
});

it("an append that ends a run whose head cannot be stored takes nothing from the others of its batch", async () => {
  written.length = 0;
  const unfit = {
    toJSON() {
      throw new RangeError("Invalid string length");
    },
  };
  const { run, ...head } = feedHead(tenant, "run_c");
  heads.set(tenant, "run_c", { ...head, state: "running", run: { ...run, metadata: unfit } });
  const commits = commitsHere();
  const answers = await Promise.allSettled([
    commits.append(tenant, (commit) => {
      commit.write("run_c", { type: "run.lifecycle", payload: { state: "aborted", reason: null } });
    }),
    commits.append(tenant, (commit) => {
      commit.create(feedHead(tenant, "run_d").run);
      commit.write("run_d", { type: "run.lifecycle", payload: { state: "aborted", reason: null } });
    }),
  ]);
  expect(answers.map(({ status }) => status)).toEqual(["rejected", "fulfilled"]);
  expect(written.filter(([name]) => name === "keepHead").map(([, , log]) => log)).toEqual(["run_d"]);
  expect(heads.get(tenant, "run_c")?.state).toBe("running");
});

it("any number of rows that belong to no log is written at once", async () => {
  written.length = 0;
  // A row for every feed of every tenant, as when feeds are pruned.
  const rows = Array.from({ length: 300_000 }, (): Write => ["pruneGrants", 0]);
  await commitsHere().also(rows);
  expect(written).toHaveLength(rows.length);
});

it("an append that may be stored with a step of compaction is not written again, and is told of the doubt", async () => {
  let writes = 0;
  const writer = {
    condition: "ok" as "ok" | "broken",
    async write() {
      writes += 1;
      writer.condition = "broken";
      throw writes === 1 ? new InDoubt("disk I/O error") : new Error("refused");
    },
    truncate: async () => {},
    close: async () => {},
  };
  const commits = commitsHere({
    writer,
    compact: {
      isDue: () => writes === 0,
      step: () => ({ writes: [], done: () => {}, failed: () => {} }),
      stepOf: () => undefined,
    },
  });
  const appending = commits.append(tenant, (commit) => {
    isDamaged = false;
    commit.create(feedHead(tenant, "run_e").run);
    commit.write("run_e", { type: "run.lifecycle", payload: { state: "running", reason: null } });
  });
  await expect(appending).rejects.toBeInstanceOf(InDoubt);
  expect(writes).toBe(1);
});

it("nothing is acknowledged, and no run shown, by what is in doubt", async () => {
  const writer = {
    condition: "ok" as "ok" | "broken",
    async write() {
      writer.condition = "broken";
      throw new InDoubt("a.db was removed or replaced");
    },
    truncate: async () => {},
    close: async () => {},
  };
  const { run } = feedHead(tenant, "run_e");
  let isInFile = false;
  const commits = commitsHere({ writer, createdUnder: () => (isInFile ? run : undefined) });
  const creating = commits.append(tenant, (commit) => {
    commit.create({ ...run, session_id: "ses_e" });
    commit.write("run_e", { type: "run.lifecycle", payload: { state: "running", reason: null } });
  });
  await expect(creating).rejects.toBeInstanceOf(InDoubt);
  isInFile = true;
  expect(commits.isArriving(tenant, "run_e")).toBe(true);
  expect(commits.turnsArriving(tenant, "ses_e")).toEqual(["run_e"]);
  await expect(commits.append(tenant, (commit) => commit.createdUnder("key"))).rejects.toThrow();
  // A refusal neither: it is for what nobody knows.
  const refused = commits.append(tenant, () => {
    throw new Error("a gap");
  });
  await expect(refused).rejects.toThrow("removed or replaced");
});
