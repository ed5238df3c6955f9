// Children of the agent's runs: what they may do, how many work at once, and how far an order reaches.

import { engine, spawnTool, type Tool } from "@runwire/engine";
import { type Event, is, isFinal } from "@runwire/protocol";
import { startGateway } from "@runwire/server";
import { describe, expect, it } from "vitest";
import { allEvents, call, control, getRun } from "./calls.js";
import { readAll, streamPath } from "./readers.js";
import {
  calling,
  ended,
  type Line,
  lastState,
  ofType,
  script,
  scriptedModel,
  seenBy,
  spawning,
  start,
  waitFor,
  watch,
} from "./scripted.js";
import { underTest } from "./under-test.js";

const childrenTotal = 50;
const atOnce = 5;

const tool = (name: string, run: Tool["run"]): Tool => ({
  name,
  description: name,
  effect: "read-only",
  input_schema: { type: "object" },
  run,
});

/** Lets nobody through until so many have come: who waits here is at work with the others. */
let come = 0;
const gathering: (() => void)[] = [];
const gate = tool("gate.pass", async () => {
  come += 1;
  const all = new Promise<void>((resolve) => gathering.push(resolve));
  if (come % atOnce === 0) for (const pass of gathering.splice(0)) pass();
  await all;
  return { text: "passed" };
});

/** Each waits until it is let go, by the test or by its run's end. */
const held: (() => void)[] = [];
const hold = tool("hold", async (_, { signal }) => {
  await new Promise<void>((resolve) => {
    held.push(resolve);
    signal.addEventListener("abort", () => resolve());
  });
  return { text: "let go" };
});
const letGo = (): void => {
  for (const go of held.splice(0)) go();
};

/** Models that were asked for. */
const models = new Set<string | null>();
const agent = engine({
  modelOf(name) {
    models.add(name);
    return scriptedModel;
  },
  tools: [
    gate,
    hold,
    tool("fail", async () => {
      throw new Error("no luck");
    }),
    tool("note.read", async () => ({ text: "read" })),
    tool("note.write", async () => ({ text: "written" })),
    spawnTool,
  ],
  planningGate: "off",
});
const server = underTest((settings: object) => startGateway(settings, undefined, agent));

const spawn = (prompt: string, tools_allowed?: readonly string[]): Line => ({
  calls: [{ tool: "spawn", input: { prompt, ...(tools_allowed === undefined ? {} : { tools_allowed }) } }],
});

/** What each run of the tree had in its hands, the deepest first. */
const toolsOf = (events: readonly Event[]): readonly (readonly string[])[] =>
  events.flatMap((e) =>
    is(e, "message.settled") ? [(JSON.parse(e.payload.text) as { tools: readonly string[] }).tools] : [],
  );

const kindsOf = (events: readonly Event[]): readonly unknown[] =>
  ofType(
    events.filter(({ child_id }) => child_id === null),
    "step.boundary",
  ).map(({ step_kind }) => step_kind);

describe("a run's tools", () => {
  it("are those it was given: no other is shown, and none can be called", async () => {
    const run_id = await start(server.url, calling("note.write"), { tools: ["note.read", "gate.*"] });
    const seen = seenBy(await ended(server.url, run_id));
    expect(seen.tools).toEqual(["gate.pass", "note.read"]);
    expect(seen.results).toMatchObject([
      { tool: "note.write", ok: false, output: { kind: "tool-not-allowed" } },
    ]);
    const none = seenBy(await ended(server.url, await start(server.url, calling("spawn"), { tools: [] })));
    expect(none.tools).toEqual([]);
    expect(none.results).toMatchObject([{ ok: false, output: { kind: "tool-not-allowed" } }]);
  });

  it("are the most that its children and grandchildren can have, whatever these ask for", async () => {
    const tools = ["spawn", "note.*"];
    const inner = script({ calls: [{ tool: "gate.pass", input: {} }] });
    const wild = script(spawn(script(spawn(inner)), ["*"]));
    const events = await ended(server.url, await start(server.url, wild, { tools }));
    const all = ["note.read", "note.write", "spawn"];
    expect(toolsOf(events)).toEqual([all, all, all]);
    expect(JSON.stringify(ofType(events, "message.settled")[0])).toContain("tool-not-allowed");
    // Each level takes away, and none gives back.
    const narrow = script(spawn(script(spawn(inner, ["note.read"])), ["spawn", "note.read"]));
    const narrowed = await ended(server.url, await start(server.url, narrow, { tools }));
    expect(toolsOf(narrowed)).toEqual([["note.read"], ["note.read", "spawn"], all]);
  });

  it("that a run does not have cannot be given to a child, and the model is told", async () => {
    const run_id = await start(server.url, script(spawn("[]", ["gate.pass"])), { tools: ["spawn"] });
    const { results } = seenBy(await ended(server.url, run_id));
    expect(results).toMatchObject([{ ok: false, output: { kind: "invalid-input" } }]);
    const misspelt = await start(server.url, script({ calls: [{ tool: "spawn", input: { promt: "x" } }] }));
    expect(seenBy(await ended(server.url, misspelt)).results).toMatchObject([
      { ok: false, output: { kind: "invalid-input", message: expect.stringContaining("prompt") } },
    ]);
  });

  it("are the most, too, for a child that somebody else spawns, and which the agent then writes", async () => {
    const run_id = await start(server.url, calling("hold"), { tools: ["hold", "note.read"] });
    await waitFor(server.url, run_id, "tool.start");
    const prompt = script();
    const made = await call(server.url, "POST", `/v1/agent/runs/${run_id}/children`, { prompt });
    const child = made.body.run_id as string;
    expect(seenBy(await ended(server.url, child)).tools).toEqual(["hold", "note.read"]);
    letGo();
    await ended(server.url, run_id);
  });
});

describe(`a run of ${childrenTotal} children`, () => {
  it(`has ${atOnce} at work at once and never more, and keeps the order of each`, async () => {
    const prompts = Array.from({ length: childrenTotal }, (_, i) =>
      script(
        { text: `child ${i} begins. `, calls: [{ tool: "gate.pass", input: { i } }] },
        { text: `${i} ends` },
      ),
    );
    const run_id = await start(server.url, script(spawning(...prompts)));
    const events = await ended(server.url, run_id);
    let live = 0;
    let most = 0;
    for (const e of events) {
      if (is(e, "child.spawn")) live += 1;
      if (is(e, "run.lifecycle") && e.child_id !== null && isFinal(e.payload.state)) live -= 1;
      most = Math.max(most, live);
    }
    expect([live, most]).toEqual([0, atOnce]);
    expect(kindsOf(events)).toEqual(["fan-out", "fan-in", "done"]);
    const { results } = seenBy(events);
    // In the order of the calls, whoever came first.
    expect(results.map(({ output }) => output.text)).toEqual(prompts.map((_, i) => `${i} ends`));
    const children = ofType(events, "child.spawn").map(({ child_id }) => child_id as string);
    expect(new Set(children).size).toBe(childrenTotal);
    for (const child_id of children) {
      const own = (await allEvents(server.url, child_id)).map(({ id }) => id);
      expect(events.filter((e) => e.child_id === child_id).map(({ id }) => id)).toEqual(own);
    }
    const shown = (await readAll("sse", server.url, streamPath({ run_id }))).events;
    expect(shown.map(({ seq }) => seq)).toEqual(shown.map((_, i) => i + 1));
  });
});

describe("a child", () => {
  it("that fails is a result like any other, which its parent sees and goes on from", async () => {
    const run_id = await start(
      server.url,
      script(spawning(script(spawning(calling("hold"))), calling("fail"), "[]")),
    );
    const [inner] = (await waitFor(server.url, run_id, "child.spawn", 4)).filter(({ by }) => by !== run_id);
    await waitFor(server.url, run_id, "tool.start", 5);
    // A grandchild is ended by somebody; what a child's own tool failed with is its own affair.
    await control(server.url, String(inner?.child_id), "abort", { reason: "not this one" });
    const events = await ended(server.url, run_id);
    const { results } = seenBy(events);
    expect(results.map(({ ok }) => ok)).toEqual([true, true, true]);
    expect(String(results[0]?.output.text)).toContain("not this one");
    expect(String(results[0]?.output.text)).toContain("child-aborted");
    expect(String(results[1]?.output.text)).toContain("no luck");
    expect(lastState(events)).toMatchObject({ state: "done" });
  });

  it("thinks with its parent's model", async () => {
    models.clear();
    const nested = script(spawning(script(spawning("[]"))));
    await ended(server.url, await start(server.url, nested, { model: "the-same" }));
    expect([...models]).toEqual(["the-same"]);
  });

  it("may have children that have children, as deep as a tree may be", async () => {
    const depth = 9;
    let prompt = script({ text: "[]" });
    for (let level = 0; level < depth; level++) prompt = script(spawning(prompt));
    const events = await ended(server.url, await start(server.url, prompt));
    expect(lastState(events)).toMatchObject({ state: "done" });
    // The ninth level is one too many: the eighth is told so, and all the others go on.
    expect(ofType(events, "child.spawn")).toHaveLength(8);
    const ends = ofType(events, "tool.end");
    expect(ends.map(({ ok }) => ok)).toEqual([false, true, true, true, true, true, true, true, true]);
    expect(JSON.stringify(ends[0])).toContain("8 levels");
  });
});

describe("an order to a run", () => {
  const threeLevels = script(spawning(script(spawning(calling("hold"))), calling("hold")));

  /** All are at work: the child and the grandchild that hold. */
  async function atWork(): Promise<{ run_id: string; all: readonly string[] }> {
    const run_id = await start(server.url, threeLevels);
    const reading = await watch(server.url, run_id);
    await reading.until(
      ({ events }) => events.filter((e) => is(e, "tool.start") && e.payload.tool === "hold").length === 2,
    );
    reading.stop();
    const spawns = await waitFor(server.url, run_id, "child.spawn", 3);
    return { run_id, all: [run_id, ...spawns.map(({ child_id }) => String(child_id))] };
  }
  const statesOf = async (all: readonly string[]): Promise<readonly unknown[]> =>
    Promise.all(all.map(async (run_id) => (await getRun(server.url, run_id)).state));

  it("to abort reaches its grandchildren at once", async () => {
    const { run_id, all } = await atWork();
    await control(server.url, run_id, "abort");
    expect(await statesOf(all)).toEqual(all.map(() => "aborted"));
    const events = await ended(server.url, run_id);
    const reasons = events.flatMap((e) =>
      is(e, "run.lifecycle") && e.payload.state === "aborted" ? [e.payload.reason] : [],
    );
    expect(reasons).toEqual(["parent ended", "parent ended", "parent ended", "aborted"]);
  });

  it("to pause reaches its grandchildren, and to resume does too [RW-CONTROL-7]", async () => {
    const { run_id, all } = await atWork();
    await control(server.url, run_id, "pause");
    expect(await statesOf(all)).toEqual(all.map(() => "paused"));
    // What was at work may finish; nothing new begins.
    letGo();
    await waitFor(server.url, run_id, "tool.end", 2);
    expect(ofType(await allEvents(server.url, run_id), "model.requested")).toHaveLength(4);
    await server.restart();
    expect(await statesOf(all)).toEqual(all.map(() => "paused"));
    await control(server.url, run_id, "resume");
    const events = await ended(server.url, run_id);
    expect(await statesOf(all)).toEqual(all.map(() => "done"));
    expect(ofType(events, "child.spawn")).toHaveLength(3);
  });

  it("to pause lets finish what has begun, and begins nothing else", async () => {
    const calls = Array.from({ length: atOnce + 2 }, () => ({ tool: "hold", input: {} }));
    const run_id = await start(server.url, script({ calls }));
    await waitFor(server.url, run_id, "tool.start", atOnce);
    await control(server.url, run_id, "pause");
    letGo();
    await waitFor(server.url, run_id, "tool.end", atOnce);
    await control(server.url, run_id, "resume");
    await waitFor(server.url, run_id, "tool.start", calls.length);
    letGo();
    const events = await ended(server.url, run_id);
    const resumed = events.findLastIndex((e) => is(e, "run.lifecycle") && e.payload.state === "running");
    const began = events.flatMap((e, i) => (is(e, "tool.start") ? [i > resumed] : []));
    expect(began).toEqual(calls.map((_, i) => i >= atOnce));
  });

  it("to resume leaves a child paused that somebody paused for itself [RW-CONTROL-7]", async () => {
    const { run_id, all } = await atWork();
    const [, child = "", ...others] = all;
    await control(server.url, child, "pause", { reason: "wait for me" });
    await control(server.url, run_id, "pause");
    await control(server.url, run_id, "resume");
    const states = Object.fromEntries(
      await Promise.all(all.map(async (id) => [id, (await statesOf([id]))[0]])),
    );
    expect(states[child]).toBe("paused");
    expect(states[run_id]).toBe("running");
    await control(server.url, child, "resume");
    expect(await statesOf(others)).toEqual(others.map(() => "running"));
    letGo();
    await ended(server.url, run_id);
  });

  it("to resume leaves a child paused that somebody paused for itself after its parent [RW-CONTROL-7]", async () => {
    const { run_id, all } = await atWork();
    const [, child = "", ...others] = all;
    await control(server.url, run_id, "pause");
    await control(server.url, child, "pause", { reason: "wrong file" });
    const before = await allEvents(server.url, child);
    // It says so once, and the state was the same before.
    await control(server.url, child, "pause", { reason: "again" });
    expect(await allEvents(server.url, child)).toEqual(before);
    expect(before.at(-1)?.payload).toEqual({ action: "pause", reason: "wrong file" });
    const shown = await call(server.url, "GET", `/v1/agent/runs/${child}`);
    expect(shown.body).toMatchObject({ state: "paused", reason: "wrong file" });
    const snapshot = await call(server.url, "GET", `/v1/agent/runs/${child}/snapshot`);
    expect(snapshot.body.transcript).toMatchObject({ state: "paused", reason: "wrong file" });
    await control(server.url, run_id, "resume");
    expect(await statesOf([run_id, child])).toEqual(["running", "paused"]);
    await control(server.url, child, "resume");
    expect(await statesOf(others)).toEqual(others.map(() => "running"));
    await control(server.url, run_id, "abort");
  });

  it("to take another direction, where it was paused, lets go on what is left below it [RW-CONTROL-7]", async () => {
    const run_id = await start(server.url, calling("hold"));
    await waitFor(server.url, run_id, "tool.start");
    const path = `/v1/agent/runs/${run_id}/children`;
    const made = await call(server.url, "POST", path, { prompt: calling("hold") });
    const child = String(made.body.run_id);
    expect(made.body.state).toBe("running");
    await waitFor(server.url, child, "tool.start");
    await control(server.url, run_id, "pause");
    expect(await statesOf([run_id, child])).toEqual(["paused", "paused"]);
    await control(server.url, run_id, "redirect", { instruction: calling("hold") });
    await waitFor(server.url, run_id, "tool.start", 3);
    expect(await statesOf([run_id, child])).toEqual(["running", "running"]);
    await control(server.url, run_id, "abort");
  });

  it("to take another direction ends the children that nobody waits for any longer", async () => {
    const { run_id, all } = await atWork();
    await control(server.url, run_id, "redirect", { instruction: script({ text: "turned" }) });
    const events = await ended(server.url, run_id);
    expect(lastState(events)).toMatchObject({ state: "done" });
    const [, ...below] = all;
    expect(await statesOf(below)).toEqual(below.map(() => "aborted"));
    expect(JSON.stringify(ofType(events, "run.lifecycle"))).toContain("parent redirected");
    expect(String(ofType(events, "message.settled").at(-1)?.text)).toContain("turned");
  });

  it("to pause holds for children that are spawned later [RW-CONTROL-7]", async () => {
    const run_id = await start(server.url, calling("hold"));
    await waitFor(server.url, run_id, "tool.start");
    await control(server.url, run_id, "pause");
    const path = `/v1/agent/runs/${run_id}/children`;
    const ask = () => call(server.url, "POST", path, { prompt: "[]" }, { "Idempotency-Key": "paused-child" });
    const made = await ask();
    const child = String(made.body.run_id);
    expect([made.body.state, ...(await statesOf([child]))]).toEqual(["paused", "paused"]);
    await control(server.url, run_id, "resume");
    expect(lastState(await ended(server.url, child))).toMatchObject({ state: "done" });
    // Whoever asks again is told what was answered then.
    expect((await ask()).body).toEqual(made.body);
    letGo();
    await ended(server.url, run_id);
  });
});

describe("large things", () => {
  it("that a model hands to a tool, and a tool to a model, come through whole", async () => {
    const large = "0123456789".repeat(20_000);
    const run_id = await start(
      server.url,
      script({ calls: [{ tool: "spawn", input: { prompt: script({ text: large }) } }] }),
    );
    const { results } = seenBy(await ended(server.url, run_id));
    expect(results[0]?.output.text).toBe(large);
  });
});
