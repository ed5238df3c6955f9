// The built-in agent, as people meet it: the demo runs by itself, does what it is told, and survives its server.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Event, type Facts, is } from "@runwire/protocol";
import { afterAll, describe, expect, it } from "vitest";
import { allEvents, call, control, startRun } from "./calls.js";
import { chance, isSoak } from "./chance.js";
import { openReading, readAll, streamPath } from "./readers.js";
import { ownProcess } from "./server-process.js";

const luck = chance("agent");
const kills = isSoak ? 20 : 2;
const serve = [
  process.execPath,
  fileURLToPath(new URL("../../../cli/bin/runwire.js", import.meta.url)),
  "serve",
];
const prompt = "compare three charting libraries";

const server = ownProcess(serve);
const { folder } = server;

afterAll(async () => {
  expect(await server.kill("SIGTERM")).toEqual({ code: 0, signal: null });
});

const start = (asked: Facts = {}): Promise<string> => startRun(server.url, { prompt, ...asked });

/** Follows the run to its end, whatever happens to the server meanwhile. */
async function ended(run_id: string): Promise<readonly Event[]> {
  await readAll("sse", server.url, streamPath({ run_id }));
  return allEvents(server.url, run_id, { detail: "default" });
}

/** What a run came to: which tools were run with what, what they gave, and what everyone said in the end. */
function outcome(events: readonly Event[]): object {
  const tools = events.flatMap((e) =>
    is(e, "tool.start") ? [JSON.stringify([e.payload.tool, e.payload.input])] : [],
  );
  const ends = events.flatMap((e) => {
    if (!is(e, "tool.end")) return [];
    const { child_id: _, ...output } = e.payload.output as Facts;
    return [JSON.stringify([e.payload.ok, output])];
  });
  const said = events.flatMap((e) => (is(e, "message.settled") ? [e.payload.text] : []));
  const states = events.flatMap((e) =>
    is(e, "run.lifecycle") && e.child_id === null ? [e.payload.state] : [],
  );
  const thoughts = events.flatMap(({ type, payload: { call_id: _, ...facts } }) =>
    /^[tg]ot\./.test(type) ? [JSON.stringify([type, facts])] : [],
  );
  return {
    tools: tools.toSorted(),
    ends: ends.toSorted(),
    said: said.toSorted(),
    states,
    thoughts: thoughts.toSorted(),
  };
}

describe("the demo", () => {
  it("plans, thinks, calls tools, spawns three children, merges and answers, without a key", async () => {
    const events = await ended(await start());
    const types = new Set(events.map(({ type }) => type));
    for (const type of [
      "reasoning.delta",
      "text.delta",
      "tool.start",
      "tool.end",
      "step.boundary",
      "child.spawn",
      "plan.proposal",
      "run.lifecycle",
    ] as const)
      expect([type, types.has(type)]).toEqual([type, true]);
    expect(events.filter(({ type }) => type === "child.spawn")).toHaveLength(3);
    const kinds = events.flatMap((e) =>
      is(e, "step.boundary") && e.child_id === null ? [e.payload.step_kind] : [],
    );
    expect(kinds).toEqual(["plan", "fan-out", "fan-in", "done"]);
    const planned = events.flatMap((e) =>
      is(e, "step.boundary") && e.child_id === null ? [e.payload.plan_steps] : [],
    );
    expect(planned).toEqual([undefined, undefined, ["s1", "s2", "s3"], ["s4"]]);
    const used = events.filter(({ type }) => type === "usage").map(({ payload }) => payload as Facts);
    const record = (await call(server.url, "GET", `/v1/agent/runs/${events[0]?.run_id}`)).body;
    expect(record.cost).toEqual({ usd: 0, known: true });
    expect(record.usage).toMatchObject({
      requests: used.length,
      input_tokens: used.reduce((sum, { input_tokens }) => sum + Number(input_tokens), 0),
    });
    const own = events.filter(({ child_id }) => child_id === null).map(({ type }) => type);
    expect(own.slice(own.lastIndexOf("step.boundary"))).toEqual([
      "step.boundary",
      "message.settled",
      "title",
      "suggestions",
      "usage",
      "usage",
      "evidence.changed",
      "run.lifecycle",
    ]);
    // Those below it report to it, and to nobody else.
    const asides = events.filter(({ type }) => type === "title" || type === "suggestions");
    expect(asides.map(({ child_id, payload }) => [child_id, payload])).toEqual([
      [null, { title: "Compare three charting libraries" }],
      [null, { suggestions: expect.arrayContaining(["Tell me more about uPlot"]) }],
    ]);
  });

  it.each([
    [{ agent: "tot", tools: [] }, kills / 2],
    [{ agent: "got", got_adaptive: true, tools: [] }, kills / 2],
  ])("says and does the same, whenever its server is killed: %j", async (asked, count) => {
    const undisturbed = outcome(await ended(await start(asked)));
    for (let kill = 0; kill < count; kill++) {
      const run_id = await start(asked);
      const reading = await openReading("sse", server.url, streamPath({ run_id }));
      const events = luck.whole(1, 80);
      // Or right after its end, where it has said less.
      await Promise.race([reading.ended, reading.until(({ heard }) => heard.length >= events)]).catch(
        () => {},
      );
      await server.again("SIGKILL");
      const log = await ended(run_id);
      expect([kill, events, outcome(log)]).toEqual([kill, events, undisturbed]);
      // A call that has started has all of its facts, and each once. [RW-GOVERN-1] [RW-GOVERN-3]
      for (const { payload } of log.filter((e) => is(e, "tool.start"))) {
        const facts = log.filter(({ scope }) => scope?.tool_call_id === (payload as Facts).call_id);
        const types = facts.map(({ type }) => type).filter((type) => !type.startsWith("sandbox."));
        expect(types).toEqual(["permission.evaluated", "hook.started", "hook.completed"]);
      }
    }
  });
});

describe("a person", () => {
  it("approves a plan before anything is done, as proposed or edited", async () => {
    const run_id = await start({ planning_gate: "required" });
    const reading = await openReading("sse", server.url, streamPath({ run_id, dialect: "runwire" }));
    await reading.until(({ events }) =>
      events.some((e) => is(e, "run.lifecycle") && e.payload.state === "awaiting_approval"),
    );
    const steps = [{ id: "s1", title: "Only this" }];
    expect((await control(server.url, run_id, "approve_plan", { steps })).status).toBe(202);
    const events = await ended(run_id);
    const states = events.flatMap((e) =>
      is(e, "run.lifecycle") && e.child_id === null ? [e.payload.state] : [],
    );
    expect(states).toEqual(["planning", "awaiting_approval", "running", "done"]);
    const waited = events.findIndex((e) => is(e, "run.lifecycle") && e.payload.state === "awaiting_approval");
    expect(events.slice(0, waited).some(({ type }) => type === "tool.start")).toBe(false);
  });

  it("rejects a plan, and the run is over", async () => {
    const run_id = await start({ planning_gate: "required" });
    const reading = await openReading("sse", server.url, streamPath({ run_id }));
    await reading.until(({ events }) =>
      events.some((e) => is(e, "run.lifecycle") && e.payload.state === "awaiting_approval"),
    );
    await control(server.url, run_id, "approve_plan", { approved: false, reason: "too dear" });
    const events = await ended(run_id);
    expect(events.at(-1)?.payload).toMatchObject({ state: "aborted", reason: "too dear" });
  });

  it("pauses and resumes a run, and nothing is lost or said twice", async () => {
    const undisturbed = outcome(await ended(await start())) as { said: readonly string[] };
    const run_id = await start();
    const reading = await openReading("sse", server.url, streamPath({ run_id }));
    const events = luck.whole(5, 70);
    await Promise.race([reading.ended, reading.until(({ heard }) => heard.length >= events)]).catch(() => {});
    const paused = await control(server.url, run_id, "pause");
    if (paused.status === 202) {
      await control(server.url, run_id, "resume");
    }
    const { said } = outcome(await ended(run_id)) as { said: readonly string[] };
    expect([events, said]).toEqual([events, undisturbed.said]);
  });

  it("redirects a run: what was said stays, and the new direction is taken", async () => {
    const run_id = await start();
    const reading = await openReading("sse", server.url, streamPath({ run_id }));
    await reading.until(({ events }) => events.some((e) => is(e, "text.delta")));
    await control(server.url, run_id, "redirect", { instruction: "just say hello" });
    const events = await ended(run_id);
    const settled = events.filter((e) => e.child_id === null && is(e, "message.settled"));
    expect(settled.at(-1)?.payload).toMatchObject({
      text: expect.stringContaining("Understood: just say hello"),
    });
    expect(events.at(-1)?.payload).toMatchObject({ state: "done" });
  });

  it("steers a run at the next tool's end, or gets it back as a leftover", async () => {
    const run_id = await start();
    const reading = await openReading("sse", server.url, streamPath({ run_id }));
    await reading.until(({ events }) => events.some((e) => e.child_id === null && is(e, "tool.start")));
    await control(server.url, run_id, "steer", { text: "prefer small ones" });
    const events = (await ended(run_id)).filter(({ child_id }) => child_id === null);
    const types = events.map(({ type }) => type);
    expect(types.indexOf("steer.delivered")).toBeGreaterThan(types.lastIndexOf("tool.end"));
    expect(types).not.toContain("steer.leftover");
    const late = await start();
    const following = await openReading("sse", server.url, streamPath({ run_id: late, dialect: "runwire" }));
    await following.until(({ events: seen }) =>
      seen.some((e) => e.child_id === null && is(e, "step.boundary") && e.payload.step_kind === "fan-in"),
    );
    await following.until(({ events: seen }) => seen.filter((e) => e.type === "model.requested").length >= 9);
    await control(server.url, late, "steer", { text: "too late" });
    const rest = (await ended(late)).filter(({ child_id }) => child_id === null).map(({ type }) => type);
    expect(rest).toContain("steer.leftover");
  });

  it("aborts a run at once, and its children with it", async () => {
    const run_id = await start();
    const reading = await openReading("sse", server.url, streamPath({ run_id }));
    await reading.until(({ events }) => events.filter((e) => e.type === "child.spawn").length === 3);
    expect((await control(server.url, run_id, "abort", { reason: "enough" })).status).toBe(202);
    const events = await ended(run_id);
    const ends = events.flatMap((e) =>
      is(e, "run.lifecycle") && e.payload.state === "aborted" ? [e.child_id] : [],
    );
    expect(ends).toHaveLength(4);
    expect(ends.at(-1)).toBeNull();
  });
});

describe("a question", () => {
  it("waits for its answer, also through a restart, and the answer is heard", async () => {
    const run_id = await start({ prompt: "help me choose a charting library" });
    const reading = await openReading("sse", server.url, streamPath({ run_id, dialect: "runwire" }));
    await reading.until(({ events }) => events.some((e) => is(e, "clarify.requested")));
    const asked = reading.events.find((e) => is(e, "clarify.requested"))?.payload as Facts;
    expect(asked).toMatchObject({
      question: "What matters most?",
      choices: expect.arrayContaining(["speed"]),
    });
    await server.again("SIGKILL");
    const answer = await control(server.url, run_id, `clarifications/${asked.clarify_id}`, {
      answer: "speed",
    });
    expect([answer.status, answer.text]).toEqual([200, answer.text]);
    const events = await ended(run_id);
    expect(events.filter(({ type }) => type === "clarify.requested")).toHaveLength(1);
    const said = events
      .flatMap((e) => (is(e, "text.delta") && e.child_id === null ? [e.payload.text] : []))
      .join("");
    expect(said).toContain("Good to know: speed.");
    expect(events.at(-1)?.payload).toMatchObject({ state: "done" });
  });
});

describe("a dangerous tool", () => {
  const saving = { prompt: "compare three charting libraries and save it", approvals: "destructive" };

  async function asked(run_id: string): Promise<Facts> {
    const reading = await openReading("sse", server.url, streamPath({ run_id, dialect: "runwire" }));
    await reading.until(({ events }) => events.some((e) => is(e, "approval.requested")));
    return reading.events.find((e) => is(e, "approval.requested"))?.payload as Facts;
  }

  it("waits for a person, also through a restart, and runs once with the input they gave", async () => {
    const run_id = await start(saving);
    const { approval_id, tool } = await asked(run_id);
    expect(tool).toBe("file.write");
    await server.again("SIGKILL");
    const input = { path: "other.md", content: "shorter" };
    await control(server.url, run_id, `approvals/${approval_id}`, { decision: "once", input });
    const events = await ended(run_id);
    const starts = events.filter((e) => is(e, "tool.start") && e.payload.tool === "file.write");
    expect(starts.map(({ payload }) => (payload as Facts).input)).toEqual([input]);
    expect(readFileSync(join(folder, "workspaces", "default", run_id, "other.md"), "utf8")).toBe("shorter");
    expect(events.filter(({ type }) => type === "approval.requested")).toHaveLength(1);
  });

  it("is not run where they deny it, and the run goes on", async () => {
    const run_id = await start(saving);
    const { approval_id, call_id } = await asked(run_id);
    await control(server.url, run_id, `approvals/${approval_id}`, { decision: "deny", reason: "not here" });
    const events = await ended(run_id);
    expect(events.some((e) => is(e, "tool.start") && e.payload.call_id === call_id)).toBe(false);
    const end = events.find((e) => is(e, "tool.end") && e.payload.call_id === call_id);
    expect(end?.payload).toMatchObject({
      ok: false,
      error: { message: expect.stringContaining("not here") },
    });
    expect(events.at(-1)?.payload).toMatchObject({ state: "done" });
  });
});
