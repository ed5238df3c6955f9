// A run that begins with the words of another, while that is erased or the disk fails.

import { type Facts, RunwireError } from "@runwire/protocol";
import { InDoubt, type SqliteOptions, type Store, sqliteStore, startGateway } from "@runwire/server";
import { describe, expect, it } from "vitest";
import {
  allEvents,
  append,
  call,
  codeOf,
  control,
  getRun,
  lifecycle,
  runPath,
  say,
  startRun,
} from "./calls.js";
import { muteAgent } from "./mute-agent.js";
import { underTest } from "./under-test.js";

/** What happens while the next run is being checked, once. */
let meanwhile = async (): Promise<void> => {};
const settled: string[] = [];
const restored = {
  run_id: "run_restored",
  settle: async (outcome: string) => void settled.push(outcome),
};
const agent = muteAgent({
  async check() {
    const happens = meanwhile;
    meanwhile = async () => {};
    await happens();
  },
  restore: async () => restored,
  says: [say("step.boundary", { step_index: 0, step_kind: "done", checkpoint_id: "ckpt_1" })],
});
/** What the next append fails with. */
let failure: RunwireError | undefined;
function openStore(options: SqliteOptions): Store {
  const store = sqliteStore(options);
  return {
    ...store,
    async append(key, decide) {
      const error = failure;
      failure = undefined;
      if (error !== undefined) throw error;
      return store.append(key, decide);
    },
  };
}
const server = underTest((settings: object) => startGateway(settings, undefined, agent, openStore));

const begin = (asked: Facts): Promise<string> => startRun(server.url, asked);

const erase = async (run_id: string): Promise<void> => {
  expect((await call(server.url, "DELETE", `/v1/agent/runs/${run_id}`)).status).toBe(204);
};

const runs = async (): Promise<readonly unknown[]> =>
  (await call(server.url, "GET", "/v1/agent/runs")).body.runs as readonly unknown[];

async function begunWithCheckpoint(): Promise<string> {
  const run_id = await begin({ prompt: "the secret" });
  const checkpoints = () => call(server.url, "GET", runPath(run_id, "checkpoints"));
  await expect.poll(async () => (await checkpoints()).text).toContain("ckpt_1");
  return run_id;
}

describe.each(["fork", "rewind"])("a %s", (way) => {
  it("of what is erased meanwhile is told so, and brings nothing of it back [RW-ERASE-1]", async () => {
    const run_id = await begunWithCheckpoint();
    const before = settled.length;
    meanwhile = () => erase(run_id);
    const refused = await control(server.url, run_id, way, { checkpoint_id: "ckpt_1" });
    expect([refused.status, codeOf(refused)]).toEqual([410, "KAI-STREAM-CONN-0002"]);
    expect(settled.slice(before)).toEqual(["refused"]);
    expect(await runs()).toEqual([]);
  });

  it.each([
    ["that a restart may find keeps its workspace until then", new InDoubt("disk I/O error"), []],
    ["that was not stored lets its workspace go", new RunwireError("KAI-SERVER-STORE-0001"), ["unknown"]],
  ])("%s [RW-CKPT-3]", async (_, error, outcomes) => {
    const run_id = await begunWithCheckpoint();
    const before = settled.length;
    meanwhile = async () => {
      failure = error;
    };
    const failed = await control(server.url, run_id, way, { checkpoint_id: "ckpt_1" });
    expect([failed.status, codeOf(failed)]).toEqual([503, "KAI-SERVER-STORE-0001"]);
    expect(settled.slice(before)).toEqual(outcomes);
    await erase(run_id);
  });
});

it("a turn goes on from the one before, where the last is erased meanwhile [RW-TURN-1] [RW-ERASE-1]", async () => {
  const session_id = "sess_meanwhile";
  const turn = async (prompt: string): Promise<string> => begin({ prompt, session_id });
  for (const prompt of ["first", "second"])
    expect((await control(server.url, await turn(prompt), "abort")).status).toBe(202);
  const [last] = (await runs()) as readonly { run_id: string }[];
  meanwhile = () => erase(last?.run_id ?? "");
  const third = await turn("third");
  const { payload } =
    (await allEvents(server.url, third)).find(({ type }) => type === "turn.submitted") ?? {};
  expect(payload).toMatchObject({
    messages: ["first", "third"].map((content) => ({ role: "user", content })),
    history: { turns: 1 },
  });
});

it("a turn is not called by one that is erased meanwhile [RW-TURN-2] [RW-ERASE-1]", async () => {
  const session_id = "sess_called";
  const titled = await begin({ producer: "external", session_id });
  await append(server.url, titled, say("title", { title: "the secret" }), lifecycle("done"));
  const titleOf = async (run_id: string): Promise<unknown> => (await getRun(server.url, run_id)).title;
  const second = await begin({ prompt: "second", session_id });
  expect(await titleOf(second)).toBe("the secret");
  await erase(second);
  const third = await begin({ producer: "external", session_id });
  await append(server.url, third, lifecycle("done"));
  meanwhile = () => erase(titled);
  const last = await begin({ prompt: "last", session_id });
  expect(await titleOf(last)).toBeNull();
  expect((await call(server.url, "GET", `/v1/agent/sessions/${session_id}`)).body.title).toBeNull();
});
