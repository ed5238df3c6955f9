import { converse, emptyConversation, RunwireError, StoredEvent } from "@runwire/protocol";
import { expect, it } from "vitest";
import { historyOf } from "./conversations.js";
import type { Head } from "./log/head.js";
import type { Idempotency } from "./log/run-record.js";
import { nothing, stretchOf } from "./log/stretch.js";
import { stretches } from "./reading.js";
import type { Rooms } from "./rooms.js";
import { beginAsked } from "./routes/runs.js";
import type { RunKey, Store } from "./store.js";

function event(run_id: string, pos: number, payload: object): StoredEvent {
  const type = pos === 1 ? "run.lifecycle" : "turn.submitted";
  const text = JSON.stringify(payload);
  return new StoredEvent(`evt_${pos}`, "2026-01-01T00:00:00.000Z", type, run_id, null, pos, pos, text, null);
}

/** Ended turns of one session, newest first. All have two events; of those that go, only the first is still read. */
function storeOf(
  run_ids: readonly string[],
  going: ReadonlySet<string>,
  damaged: ReadonlySet<string> = new Set(),
): Store {
  const gone = new Set<string>();
  const headOf = (run_id: string): Head =>
    ({
      run: { tenant: "acme", run_id },
      state: "done",
      views: { default: { pos: 2, seq: 2 }, full: { pos: 2, seq: 2 } },
    }) as unknown as Head;
  return {
    listRuns: async () => ({
      heads: run_ids.filter((run_id) => !gone.has(run_id)).map(headOf),
      next: null,
    }),
    // A moment after it is gone from the file it is in memory still.
    head: async ({ run_id }: RunKey) => headOf(run_id),
    isErased: async ({ run_id }: RunKey) => gone.has(run_id),
    async read({ run_id }: RunKey, _view: unknown, after: number) {
      if (after > 0 && going.has(run_id)) gone.add(run_id);
      if (gone.has(run_id) || (after > 0 && damaged.has(run_id))) return nothing;
      const payload =
        after === 0 ? { state: "running" } : { messages: [{ role: "user", content: `of ${run_id}` }] };
      return after < 2 ? stretchOf([event(run_id, after + 1, payload)]) : nothing;
    },
  } as unknown as Store;
}

/** What is told here lies in the log. */
function roomsOf(store: Store): Pick<Rooms, "store" | "blobs"> {
  return { store, blobs: {} as Rooms["blobs"] };
}

async function positions(store: Store, run_id: string, to: number): Promise<readonly number[]> {
  const found: number[] = [];
  for await (const events of stretches(store, { tenant: "acme", run_id }, "default", { to }))
    found.push(...events.map(({ pos }) => pos));
  return found;
}

it("a log is read whole, or whoever reads it is told that it went", async () => {
  const store = storeOf(["run_b", "run_a"], new Set(["run_b"]));
  expect(await positions(store, "run_a", 2)).toEqual([1, 2]);
  // Up to the head, where that comes first.
  expect(await positions(store, "run_a", 9)).toEqual([1, 2]);
  await expect(positions(store, "run_b", 2)).rejects.toMatchObject({ code: "KAI-STREAM-CONN-0002" });
});

it("a turn that begins while the last one is erased goes on from the one before", async () => {
  const history = (going: readonly string[]) =>
    historyOf(roomsOf(storeOf(["run_b", "run_a"], new Set(going))), "acme", "ses_a");
  expect((await history([]))?.messages).toEqual([{ role: "user", content: "of run_b" }]);
  expect((await history(["run_b"]))?.messages).toEqual([{ role: "user", content: "of run_a" }]);
  expect(await history(["run_a", "run_b"])).toBe(undefined);
});

it("a turn does not begin after one of which something is lost, and says so", async () => {
  const store = storeOf(["run_b", "run_a"], new Set(), new Set(["run_b"]));
  const lost = { code: "KAI-STREAM-CONN-0002", message: expect.stringContaining("run_b") };
  await expect(historyOf(roomsOf(store), "acme", "ses_a")).rejects.toMatchObject(lost);
});

it("a turn whose words come with it, or that has begun before, begins whatever is lost of the one before it", async () => {
  const store = {
    ...storeOf(["run_b", "run_a"], new Set(), new Set(["run_b"])),
    session: async () => ({ titledBy: "run_a" }),
  };
  const made = { run_id: "run_c", session_id: "ses_a", state: "running" };
  const agent = { planningGate: () => "off", check: async () => {}, take: () => {} };
  const created: unknown[] = [];
  const ingest = {
    async create(_tenant: string, { messages }: { readonly messages: unknown }) {
      created.push(messages);
      return made;
    },
    created: async (_tenant: string, { key }: Idempotency) => (key === "used" ? made : undefined),
  };
  const rooms = { store, ingest, agent, blobs: {} } as unknown as Rooms;
  const begun = (body: object, key: string) =>
    beginAsked(rooms, "acme", { session_id: "ses_a", ...body } as never, { key, digest: "d" });
  const messages = [{ role: "user", content: "Go on" }];
  expect((await begun({ messages }, "new")).body.run_id).toBe("run_c");
  expect(created).toEqual([messages]);
  const unread = new RunwireError("KAI-SERVER-STORE-0003");
  const readings = [store.read, () => Promise.reject(unread)];
  for (const [i, code] of ["KAI-STREAM-CONN-0002", unread.code].entries()) {
    store.read = readings[i] as Store["read"];
    await expect(begun({ prompt: "Go on" }, "new")).rejects.toMatchObject({ code });
    expect((await begun({ prompt: "Go on" }, "used")).body.run_id).toBe("run_c");
  }
  expect(created.length).toBe(1);
});

it("a turn that is submitted again costs what it weighs, whatever was said before it", () => {
  const fold = (...payloads: readonly object[]): void => {
    const before = process.cpuUsage();
    payloads
      .map((payload, i) => event("run_a", i + 2, payload))
      .reduce((c, e) => converse(c, e), emptyConversation);
    // Seconds of the processor: less than one; minutes where each word is held against all others.
    expect(process.cpuUsage(before).user / 1000).toBeLessThan(10_000);
  };
  const words = { messages: Array.from({ length: 1_000_000 }, () => ({})) };
  fold(words, words);
  const instructions = Array.from({ length: 300_000 }, () => ({ role: "system" }));
  const look = { role: "user", content: "Look." };
  fold(
    { messages: [look, ...instructions] },
    ...Array.from({ length: 20_000 }, () => ({ messages: [look] })),
  );
});

it("looking for the last turn that has ended lets others have their turn", async () => {
  const pages = 40;
  let turns = 0;
  let looked = 0;
  const count = (): void => {
    turns += 1;
    if (looked < pages) setImmediate(count);
  };
  setImmediate(count);
  const live = { state: "running" } as Head;
  const store = {
    listRuns: async () => ({ heads: [live], next: ++looked < pages ? `${looked}` : null }),
  } as unknown as Store;
  expect(await historyOf(roomsOf(store), "acme", "ses_a")).toBe(undefined);
  expect(turns).toBeGreaterThan(pages / 2);
});
