// Checkpoints through a server: what steps name, what forks and rewinds begin with, and what erasing leaves: nothing.

import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Facts } from "@runwire/protocol";
import { type Gateway, startGateway } from "@runwire/server";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { engine } from "../engine.js";
import type { ChatMessage, Model } from "../model.js";
import type { Tool } from "../tool.js";
import { builtInTools } from "../tools/built-in.js";

const folder = mkdtempSync(join(tmpdir(), "runwire-rewind-"));
const dayMs = 24 * 60 * 60 * 1000;
let aheadMs = 0;
const clock = { now: () => Date.now() + aheadMs, monotonic: () => performance.now() + aheadMs };
let gateway: Gateway;

/** Writes `one` and then `two` into a file, waits for as long as the test wants, and ends. Asked to read, it reads. */
const model: Model = {
  name: "scripted",
  provider: "test",
  takesPrefill: true,
  async *stream({ messages }) {
    const call = next(messages);
    if (call === null) yield { kind: "text", text: String(contentIn(messages.at(-1))) };
    else yield { kind: "call", call_id: "c", ...call };
    yield {
      kind: "finished",
      reason: call === null ? "stop" : "calls",
      usage: { input_tokens: 1, output_tokens: 1, reasoning_tokens: 0, cached_tokens: 0 },
      refs: {},
    };
  },
};

function next(messages: readonly ChatMessage[]): { tool: string; input: unknown } | null {
  const last = messages.at(-1);
  if (last?.role === "user" && last.content === "read")
    return { tool: "file.read", input: { path: "a.txt" } };
  if (last?.role === "tool" && last.tool === "file.read") return null;
  if (messages.length === 1 && last?.role === "user" && last.content === "deep")
    return { tool: "deepen", input: {} };
  if (last?.role === "tool" && last.tool === "deepen") return null;
  const done = messages.filter(({ role }) => role === "tool").length;
  if (done < 2) {
    const content = done === 0 ? "one" : "two";
    return { tool: "file.write", input: { path: "a.txt", content } };
  }
  return done === 2 && messages[0]?.role === "user" && messages[0].content === "wait"
    ? { tool: "hold", input: {} }
    : null;
}

function contentIn(message: ChatMessage | undefined): unknown {
  if (message?.role !== "tool") return "done";
  const output = message.output as { content?: string; message?: string } | null;
  return output?.content ?? output?.message ?? "done";
}

let holding = (): void => {};
let letGo = async (): Promise<void> => {};
const hold: Tool = {
  name: "hold",
  description: "Waits until the run ends.",
  effect: "read-only",
  input_schema: { type: "object" },
  run: (_input, { signal }) =>
    new Promise((_resolve, reject) => {
      holding();
      const ended = (): void => reject(new Error("ended"));
      signal.addEventListener("abort", () => void letGo().then(ended, ended));
    }),
};

const deepen: Tool = {
  name: "deepen",
  description: "Makes a workspace that cannot be kept.",
  effect: "read-only",
  input_schema: { type: "object" },
  async run(_input, { workspace }) {
    mkdirSync(join(workspace, ...Array.from({ length: 20 }, () => "deep")), { recursive: true });
    return { content: "made" };
  },
};

beforeAll(async () => {
  gateway = await startGateway(
    { port: 0, dataFolder: folder, durability: "os", log: "error" },
    clock,
    engine({ modelOf: () => model, tools: [...builtInTools(), hold, deepen], planningGate: "off" }),
  );
});
afterAll(async () => {
  await gateway.close();
  rmSync(folder, { recursive: true });
});

interface Reply {
  readonly status: number;
  readonly body: Facts;
}

async function ask(method: string, path: string, body?: unknown, key?: string): Promise<Reply> {
  const response = await fetch(`${gateway.url}/v1/agent/runs${path}`, {
    method,
    headers: {
      ...(body === undefined ? {} : { "Content-Type": "application/json" }),
      ...(key === undefined ? {} : { "Idempotency-Key": key }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, body: text === "" ? {} : (JSON.parse(text) as Facts) };
}

async function begin(prompt: string): Promise<string> {
  return (await ask("POST", "", { prompt })).body.run_id as string;
}

async function apply(): Promise<void> {
  await fetch(`${gateway.url}/v1/retention/apply`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: "{}",
  });
}

/** One that has written both, and waits. */
async function waiting(): Promise<string> {
  const held = new Promise<void>((resolve) => {
    holding = resolve;
  });
  const run_id = await begin("wait");
  await held;
  return run_id;
}

/** The last thing it said, once it has ended. */
async function answer(run_id: string): Promise<unknown> {
  const stream = await fetch(`${gateway.url}/v1/agent/runs/${run_id}/stream?dialect=runwire`, {
    headers: { Accept: "application/x-ndjson" },
  });
  const lines = (await stream.text()).split("\n").filter((line) => line !== "");
  const settled = lines
    .map((line) => JSON.parse(line) as Facts)
    .filter(({ type }) => type === "message.settled");
  return (settled.at(-1)?.payload as Facts | undefined)?.text;
}

interface Listed {
  readonly checkpoint_id: string;
  readonly step_kind: string;
  readonly pos: number;
  readonly kept: boolean;
  readonly bytes: number | null;
}

async function checkpointsOf(run_id: string): Promise<readonly Listed[]> {
  return (await ask("GET", `/${run_id}/checkpoints`)).body.checkpoints as readonly Listed[];
}

const workspaceOf = (run_id: string) => join(folder, "workspaces", "default", run_id);
const treeOf = (run_id: string) => join(folder, "checkpoints", "default", run_id);
const fileOf = (run_id: string, { checkpoint_id }: Listed) =>
  join(treeOf(run_id), `${checkpoint_id}-${run_id}`);
const codeOf = ({ body }: Reply) => (body.error as Facts | undefined)?.code;
const runs = async () => ((await ask("GET", "?limit=200")).body.runs as readonly Facts[]).length;

describe("every step of the agent's run", () => {
  it("has a checkpoint, and the list says which are kept [RW-CKPT-1]", async () => {
    const run_id = await begin("go");
    await answer(run_id);
    const steps = (await ask("GET", `/${run_id}/steps`)).body.steps as readonly Facts[];
    expect(steps.map(({ step_kind }) => step_kind)).toEqual(["tool-roundtrip", "tool-roundtrip", "done"]);
    const listed = await checkpointsOf(run_id);
    expect(listed).toEqual(
      steps.map((step) => ({
        ...step,
        checkpoint_id: expect.stringMatching(/^ckpt_[0-9A-HJKMNP-TV-Z]{26}$/),
        kept: true,
        bytes: expect.any(Number),
      })),
    );
    rmSync(fileOf(run_id, listed[0] as Listed));
    expect((await checkpointsOf(run_id)).map(({ kept, bytes }) => [kept, bytes === null])).toEqual([
      [false, true],
      [true, false],
      [true, false],
    ]);
  });
});

describe("a step whose workspace cannot be kept", () => {
  it("has no checkpoint, and the run goes on [RW-CKPT-1]", async () => {
    const run_id = await begin("deep");
    expect(await answer(run_id)).toBe("made");
    const steps = (await ask("GET", `/${run_id}/steps`)).body.steps as readonly Facts[];
    expect(steps.map(({ step_kind }) => step_kind)).toEqual(["tool-roundtrip", "done"]);
    expect(await checkpointsOf(run_id)).toEqual([]);
    const { body } = await ask("POST", `/${run_id}/fork`, { prompt: "read" });
    expect(body.workspace).toBe("fresh");
  });
});

describe("a fork", () => {
  it("reads the files as they were at its point [RW-CKPT-3]", async () => {
    const run_id = await begin("go");
    await answer(run_id);
    const [one, two, done] = (await checkpointsOf(run_id)) as [Listed, Listed, Listed];
    const points: readonly (readonly [Facts, string])[] = [
      [{ checkpoint_id: one.checkpoint_id }, "one"],
      [{ at: one.pos }, "one"],
      [{ at: two.pos - 1 }, "one"],
      [{ checkpoint_id: two.checkpoint_id }, "two"],
      [{}, "two"],
    ];
    for (const [point, content] of points) {
      const { status, body } = await ask("POST", `/${run_id}/fork?dialect=runwire`, {
        ...point,
        prompt: "read",
      });
      expect([point, status, body.workspace]).toEqual([point, 201, "restored"]);
      expect([point, await answer(body.run_id as string)]).toEqual([point, content]);
    }
    const whole = (await ask("POST", `/${run_id}/fork`, { prompt: "read" })).body;
    expect(whole.forked_from).toMatchObject({ run_id, workspace_from: done.checkpoint_id });
    expect((await ask("GET", `/${whole.run_id}`)).body.forked_from).toEqual(whole.forked_from);
  });

  it("begins with an empty workspace before the first checkpoint, and where it is gone [RW-CKPT-3]", async () => {
    const run_id = await begin("go");
    await answer(run_id);
    const [one] = (await checkpointsOf(run_id)) as [Listed];
    rmSync(fileOf(run_id, one));
    for (const point of [{ at: 2 }, { checkpoint_id: one.checkpoint_id }]) {
      const { body } = await ask("POST", `/${run_id}/fork?dialect=runwire`, { ...point, prompt: "read" });
      expect(body.workspace).toBe("fresh");
      expect(body.forked_from).not.toHaveProperty("workspace_from");
      expect(await answer(body.run_id as string)).toBe("There is nothing at this path.");
    }
  });
});

describe("a rewind", () => {
  it("ends a live run and goes on from its checkpoint [RW-CKPT-4]", async () => {
    const run_id = await waiting();
    const [one] = (await checkpointsOf(run_id)) as [Listed];
    const { status, body } = await ask("POST", `/${run_id}/rewind`, {
      checkpoint_id: one.checkpoint_id,
      prompt: "read",
    });
    expect([status, body.workspace]).toEqual([201, "restored"]);
    expect((await ask("GET", `/${run_id}`)).body).toMatchObject({
      state: "aborted",
      reason: `rewound, continues as ${body.run_id}`,
    });
    expect(body.forked_from).toMatchObject({
      run_id,
      pos: one.pos,
      checkpoint_id: one.checkpoint_id,
      workspace_from: one.checkpoint_id,
    });
    expect(await answer(body.run_id as string)).toBe("one");
  });

  it("leaves a run that has ended as it was [RW-CKPT-4]", async () => {
    const run_id = await begin("go");
    await answer(run_id);
    const before = (await ask("GET", `/${run_id}`)).body;
    const [, two] = (await checkpointsOf(run_id)) as [Listed, Listed];
    const { body } = await ask("POST", `/${run_id}/rewind`, {
      checkpoint_id: two.checkpoint_id,
      prompt: "read",
    });
    expect(await answer(body.run_id as string)).toBe("two");
    expect((await ask("GET", `/${run_id}`)).body).toEqual(before);
  });

  it("that cannot be done changes nothing [RW-CKPT-4]", async () => {
    const run_id = await waiting();
    const [one, two] = (await checkpointsOf(run_id)) as [Listed, Listed];
    rmSync(fileOf(run_id, one));
    writeFileSync(fileOf(run_id, two), "damaged");
    const [count, folders] = [await runs(), readdirSync(join(folder, "workspaces", "default"))];
    const rewind = (checkpoint_id: string) => ask("POST", `/${run_id}/rewind`, { checkpoint_id });
    const gone = await rewind(one.checkpoint_id);
    expect([gone.status, codeOf(gone)]).toEqual([410, "KAI-RUN-POINT-0002"]);
    const unknown = await rewind("ckpt_01HZ7K4PXA8QJ2M5V0T3RC6NBW");
    expect([unknown.status, codeOf(unknown)]).toEqual([422, "KAI-RUN-POINT-0001"]);
    const damaged = await rewind(two.checkpoint_id);
    expect([damaged.status, codeOf(damaged)]).toEqual([500, "KAI-SERVER-STORE-0003"]);
    expect((await ask("GET", `/${run_id}`)).body.state).toBe("running");
    expect(await runs()).toBe(count);
    expect(readdirSync(join(folder, "workspaces", "default"))).toEqual(folders);
    await ask("POST", `/${run_id}/abort`, {});
  });

  it("is done once under a key, also at once and after its checkpoint is gone [RW-CKPT-4]", async () => {
    const run_id = await waiting();
    const [one] = (await checkpointsOf(run_id)) as [Listed];
    const { checkpoint_id } = one;
    const rewind = () => ask("POST", `/${run_id}/rewind`, { checkpoint_id, prompt: "read" }, "a-key");
    const all = await Promise.all([rewind(), rewind(), rewind(), rewind()]);
    rmSync(fileOf(run_id, one));
    for (const { status, body } of [...all, await rewind()]) {
      expect([status, body]).toEqual([201, { ...all[0]?.body }]);
      expect(body.workspace).toBe("restored");
    }
    const kept = readdirSync(join(folder, "workspaces", "default"));
    const known = ((await ask("GET", "?limit=200")).body.runs as readonly Facts[]).map((run) => run.run_id);
    expect(kept.filter((name) => !known.includes(name))).toEqual([]);
    expect(await answer(all[0]?.body.run_id as string)).toBe("one");
  });
});

describe("erasing", () => {
  it("takes workspace and checkpoints along, also of a run that is at work [RW-CKPT-5]", async () => {
    const [ended, live] = [await begin("go"), await waiting()];
    await answer(ended);
    const stopped = new Promise<void>((resolve) => {
      letGo = async () => resolve();
    });
    for (const run_id of [ended, live]) {
      expect([workspaceOf(run_id), treeOf(run_id)].map((path) => existsSync(path))).toEqual([true, true]);
      expect((await ask("DELETE", `/${run_id}`)).status).toBe(204);
      expect([workspaceOf(run_id), treeOf(run_id)].map((path) => existsSync(path))).toEqual([false, false]);
    }
    // Nobody works on for a run that is gone.
    await stopped;
  });

  it("takes along what is written meanwhile, also where something cannot be removed [RW-CKPT-5]", async () => {
    const run_id = await waiting();
    const stuck = join(treeOf(run_id), "stuck");
    mkdirSync(stuck);
    const isThere = (): boolean => existsSync(workspaceOf(run_id));
    const written = new Promise<void>((resolve, reject) => {
      letGo = async () => {
        await expect.poll(isThere, { interval: 5 }).toBe(false).catch(reject);
        mkdirSync(workspaceOf(run_id), { recursive: true });
        resolve();
      };
    });
    const [{ status }] = await Promise.all([ask("DELETE", `/${run_id}`), written]);
    expect(status).toBe(503);
    await expect.poll(isThere).toBe(false);
    rmdirSync(stuck);
  });

  it("by age takes checkpoints after a week, and the rest with the run [RW-CKPT-2] [RW-CKPT-5]", async () => {
    const run_id = await begin("go");
    await answer(run_id);
    aheadMs += 7 * dayMs + 1000;
    // The sweeper finds it by itself.
    while ((await checkpointsOf(run_id)).some(({ kept }) => kept));
    expect(existsSync(workspaceOf(run_id))).toBe(true);
    const [one] = (await checkpointsOf(run_id)) as [Listed];
    const { checkpoint_id } = one;
    expect(codeOf(await ask("POST", `/${run_id}/rewind`, { checkpoint_id }))).toBe("KAI-RUN-POINT-0002");
    aheadMs += 90 * dayMs;
    await apply();
    expect((await ask("GET", `/${run_id}`)).status).toBe(410);
    expect(existsSync(workspaceOf(run_id))).toBe(false);
  });

  it("by age takes all that is old, also where something of one run cannot be removed [RW-CKPT-5]", async () => {
    const ended: string[] = [];
    for (let i = 0; i < 51; i++) {
      const run_id = (await ask("POST", "", { producer: "external" })).body.run_id as string;
      await ask("POST", `/${run_id}/events`, [{ type: "run.lifecycle", payload: { state: "done" } }]);
      ended.push(run_id);
    }
    const stuck = join(treeOf(ended[0] as string), "stuck");
    mkdirSync(stuck, { recursive: true });
    aheadMs += 91 * dayMs;
    // Or the sweeper, if it is faster.
    await apply();
    for (const run_id of ended) expect((await ask("GET", `/${run_id}`)).status).toBe(410);
    rmdirSync(stuck);
  });
});
