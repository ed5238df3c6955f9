import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Draft } from "@runwire/protocol";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { systemClock } from "./clock.js";
import { type Ingest, ingest } from "./ingest.js";
import type { NewRun } from "./log/roots.js";
import type { RunKey, Store } from "./store.js";
import { sqliteStore } from "./stores/sqlite/store.js";
import { writerHere } from "./stores/sqlite/writer.js";
import { transcripts } from "./transcripts.js";

const tenant = "acme";
const asked: NewRun = {
  messages: [],
  session_id: null,
  agent: null,
  model: null,
  planning_gate: "off",
  metadata: {},
  external: true,
  lease_ms: 60_000,
  asked: {},
};
const text = (child_id?: string): Draft => ({
  type: "text.delta",
  payload: { text: "so" },
  ...(child_id === undefined ? {} : { child_id }),
});
const done = (child_id?: string): Draft => ({
  type: "run.lifecycle",
  payload: { state: "done", reason: null },
  ...(child_id === undefined ? {} : { child_id }),
});

describe("a batch that ends runs", () => {
  const folder = mkdtempSync(join(tmpdir(), "runwire-ingest-"));
  const folded: string[] = [];
  let store: Store;
  let writer: Ingest;

  beforeAll(() => {
    store = sqliteStore({
      path: join(folder, "runwire.db"),
      durability: "os",
      clock: systemClock,
      openWriter: writerHere,
    });
    const { at } = transcripts(store);
    writer = ingest(store, {
      at(key, view, pos) {
        folded.push(key.run_id);
        return at(key, view, pos);
      },
    });
  });

  afterAll(async () => {
    writer.close();
    await store.close();
    rmSync(folder, { recursive: true });
  });

  async function runWithText(): Promise<RunKey> {
    const key = { tenant, run_id: (await writer.create(tenant, asked)).run_id };
    await writer.append(key, [text()]);
    folded.length = 0;
    return key;
  }

  it("folds what each has said once, however often it says so", async () => {
    const key = await runWithText();
    const child_id = "run_child";
    await writer.append(key, [{ type: "child.spawn", payload: { child_id } }, text(child_id)]);
    await writer.append(key, [done(child_id), ...Array.from({ length: 1000 }, () => done())]);
    expect(folded).toEqual([child_id, key.run_id]);
    expect((await store.head(key))?.state).toBe("done");
  });

  it("stores nothing of what one reader missed of a run that was written down [RW-KODER-2]", async () => {
    const lossy = async (code: string): Promise<unknown> => {
      const key = await runWithText();
      const payload = { state: "done" as const, reason: null, dropped_count: 12, code };
      await writer.append(key, [{ type: "run.lifecycle", payload }]);
      return (await store.read(key, "full", 0, 1_000_000)).events.at(-1)?.payload;
    };
    expect(await lossy("KAI-STREAM-BUF-0001")).toEqual({ state: "done", reason: null });
    expect(await lossy("mine")).toEqual({ state: "done", reason: null, code: "mine" });
  });

  it("folds nothing of another tree, of which it may say nothing", async () => {
    const other = await runWithText();
    const key = await runWithText();
    await expect(writer.append(key, [done(other.run_id)])).rejects.toMatchObject({
      code: "KAI-RUN-CHILD-0001",
    });
    expect(folded).toEqual([]);
  });
});

describe("a sweep of many runs whose producers are lost", () => {
  const folder = mkdtempSync(join(tmpdir(), "runwire-sweep-"));
  const runs = 300;
  let nowMs = Date.UTC(2026, 0, 1);
  let commits = 0;
  let store: Store;
  let writer: Ingest;

  beforeAll(() => {
    store = sqliteStore({
      path: join(folder, "runwire.db"),
      durability: "os",
      clock: { now: () => nowMs, monotonic: () => nowMs },
      observe: {
        committed: () => {
          commits += 1;
        },
        commitFailed() {},
        compactionFailed() {},
        readFailed() {},
      },
      openWriter: writerHere,
    });
    writer = ingest(store, transcripts(store));
  });

  afterAll(async () => {
    writer.close();
    await store.close();
    rmSync(folder, { recursive: true });
  });

  it("ends them in a few commits, and leaves those that are left where the server leaves", async () => {
    await Promise.all(Array.from({ length: runs }, () => writer.create(tenant, asked)));
    nowMs += asked.lease_ms;
    commits = 0;
    let groups = 0;
    const { leasesLost } = await writer.sweep(() => groups++ > 0);
    expect([leasesLost, commits]).toEqual([256, 1]);
    expect(await writer.sweep()).toEqual({ leasesLost: runs - 256, failures: [] });
    expect(commits).toBe(2);
    expect(await store.liveRuns()).toEqual([]);
  });
});
