// People steer runs: every control in every state, and plans that wait for them.

import { elsewhere, type Facts, mayMove, type RunState, runStates } from "@runwire/protocol";
import { startGateway } from "@runwire/server";
import { describe, expect, it } from "vitest";
import {
  allEvents,
  append,
  call,
  codeOf,
  control,
  createRun,
  getRun,
  lifecycle,
  messageOf,
  runPath,
  say,
  text,
  tryAppend,
} from "./calls.js";
import { openReading, readAll, streamPath } from "./readers.js";
import { underTest } from "./under-test.js";

const server = underTest(startGateway);

const plan = { id: "plan_1", steps: [{ id: "step_1", title: "look", intent: "research" }] };
const propose = say("plan.proposal", { plan });

/** A run brought into a state the way it gets there. */
const runIn: { readonly [S in RunState]: () => Promise<string> } = {
  planning: () => createRun(server.url, { planning_gate: "required" }),
  async awaiting_approval() {
    const run_id = await createRun(server.url, { planning_gate: "required" });
    await append(server.url, run_id, propose);
    return run_id;
  },
  running: () => createRun(server.url),
  paused: () => after("pause"),
  redirecting: () => after("redirect", { instruction: "left" }),
  done: () => endedAs("done"),
  aborted: () => after("abort"),
  error: () => endedAs("error"),
};

async function after(action: string, body: Facts = {}): Promise<string> {
  const run_id = await createRun(server.url);
  expect((await control(server.url, run_id, action, body)).status).toBe(202);
  return run_id;
}

async function endedAs(state: string): Promise<string> {
  const run_id = await createRun(server.url);
  await append(server.url, run_id, lifecycle(state));
  return run_id;
}

const states = async (run_id: string): Promise<readonly unknown[]> =>
  (await allEvents(server.url, run_id))
    .filter((e) => e.type === "run.lifecycle" && e.child_id === null)
    .map((e) => (e.payload as { state: string }).state);
const stateOf = async (run_id: string): Promise<unknown> => (await getRun(server.url, run_id)).state;
const isFinal = (state: RunState) => ["done", "aborted", "error"].includes(state);

describe("the state of a run", () => {
  it.each(runStates)(
    "moves by a producer's word as the table says: from %s [RW-STATE-1] [RW-STATE-2] [RW-STATE-3]",
    async (from) => {
      for (const to of runStates) {
        const run_id = await runIn[from]();
        const before = await allEvents(server.url, run_id);
        const reply = await tryAppend(server.url, run_id, [lifecycle(to)]);
        const told = [from, to, reply.status, codeOf(reply)];
        // A plan that a person must approve is not approved by its producer.
        const gated = to === "running" && (from === "planning" || from === "awaiting_approval");
        if (isFinal(from)) expect(told).toEqual([from, to, 409, "KAI-RUN-ENDED-0001"]);
        else if (from === to) expect(told).toEqual([from, to, 200, undefined]);
        else if (gated || !mayMove(from, to)) expect(told).toEqual([from, to, 409, "KAI-RUN-STATE-0001"]);
        else expect(told).toEqual([from, to, 200, undefined]);
        if (reply.status === 409) {
          expect(messageOf(reply)).toContain(from);
          expect(await allEvents(server.url, run_id)).toEqual(before);
        } else if (from !== to) expect(await stateOf(run_id)).toBe(to);
        else expect(await allEvents(server.url, run_id)).toEqual(before);
      }
    },
  );

  const controls = {
    pause: { body: {}, to: "paused", from: ["running", "paused"] },
    resume: { body: {}, to: "running", from: ["running", "paused"] },
    redirect: {
      body: { instruction: "left" },
      to: "redirecting",
      from: ["running", "paused", "redirecting"],
    },
    abort: {
      body: { reason: "enough" },
      to: "aborted",
      from: ["planning", "awaiting_approval", "running", "paused", "redirecting", "aborted"],
    },
    approve_plan: { body: {}, to: "running", from: ["awaiting_approval"] },
    steer: {
      body: { text: "mind the step" },
      to: null,
      from: ["planning", "awaiting_approval", "running", "paused", "redirecting"],
    },
  } as const;

  it.each(Object.keys(controls) as (keyof typeof controls)[])(
    "is changed by %s where it allows that, and nothing is stored where it does not [RW-CONTROL-1]",
    async (action) => {
      const { body, to, from } = controls[action];
      for (const state of runStates) {
        const run_id = await runIn[state]();
        const before = await allEvents(server.url, run_id);
        const reply = await control(server.url, run_id, action, body);
        if ((from as readonly string[]).includes(state)) {
          expect([state, reply.status, reply.body.state]).toEqual([state, 202, to ?? state]);
          expect(await stateOf(run_id)).toBe(to ?? state);
        } else {
          const code = isFinal(state) ? "KAI-RUN-ENDED-0001" : "KAI-RUN-STATE-0001";
          expect([state, reply.status, codeOf(reply)]).toEqual([state, 409, code]);
          expect(messageOf(reply)).toContain(state);
          expect(await allEvents(server.url, run_id)).toEqual(before);
        }
      }
    },
  );

  it("is told to the producer on its own run: what was asked, then the change [RW-CONTROL-2]", async () => {
    const run_id = await createRun(server.url);
    const producer = await openReading("sse", server.url, streamPath({ run_id, dialect: "runwire" }));
    await control(server.url, run_id, "pause", { reason: "lunch" });
    await control(server.url, run_id, "resume");
    await control(server.url, run_id, "redirect", { instruction: "go left" });
    await append(server.url, run_id, lifecycle("running"));
    const steered = await control(server.url, run_id, "steer", { text: "mind the step" });
    await control(server.url, run_id, "abort", { reason: "enough" });
    await producer.ended;
    expect(producer.events.slice(2).map(({ type, payload }) => [type, payload])).toEqual([
      ["control.requested", { action: "pause", reason: "lunch" }],
      ["run.lifecycle", { state: "paused", reason: "lunch" }],
      ["control.requested", { action: "resume", reason: null }],
      ["run.lifecycle", { state: "running", reason: "resumed" }],
      ["control.requested", { action: "redirect", instruction: "go left" }],
      ["run.lifecycle", { state: "redirecting", reason: "redirected" }],
      ["run.lifecycle", { state: "running", reason: null }],
      ["steer.accepted", { steer_id: steered.body.steer_id, text: "mind the step" }],
      ["control.requested", { action: "abort", reason: "enough" }],
      ["steer.leftover", { steer_id: steered.body.steer_id, text: "mind the step" }],
      ["run.lifecycle", { state: "aborted", reason: "enough" }],
    ]);
  });

  it.each(["done", "error"] as const)(
    "is handed back where the run is %s without having taken it up, and only then [RW-CONTROL-8]",
    async (state) => {
      const run_id = await createRun(server.url);
      const steers = await Promise.all(
        ["one", "two", "three"].map((text) => control(server.url, run_id, "steer", { text })),
      );
      const [heard, given, late] = steers.map(({ body }) => body.steer_id as string) as [
        string,
        string,
        string,
      ];
      await append(
        server.url,
        run_id,
        say("steer.delivered", { steer_id: heard, text: "one" }),
        say("steer.leftover", { steer_id: given, text: "two" }),
        say("text.delta", { text: "well" }),
        lifecycle(state),
      );
      const leftovers = (await allEvents(server.url, run_id)).filter(({ type }) => type === "steer.leftover");
      expect(leftovers.map(({ payload }) => (payload as { steer_id: string }).steer_id)).toEqual([
        given,
        late,
      ]);
      expect((await allEvents(server.url, run_id)).at(-2)?.type).toBe("steer.leftover");
    },
  );

  it("is handed back whole, also where it lies beside the log [RW-CONTROL-8]", async () => {
    const run_id = await createRun(server.url);
    const words = "é".repeat(50_000);
    await control(server.url, run_id, "steer", { text: words });
    await control(server.url, run_id, "abort");
    const events = await allEvents(server.url, run_id);
    const payloadOf = (of: string) => events.find(({ type }) => type === of)?.payload as Facts;
    const leftover = payloadOf("steer.leftover");
    expect(leftover).toEqual(payloadOf("steer.accepted"));
    const where = elsewhere(leftover, "text");
    expect((await call(server.url, "GET", `/v1/blobs/${where?.blob_ref}`)).text).toBe(words);
  });

  it("is refused where a hundred wait already [RW-CONTROL-8]", async () => {
    const run_id = await createRun(server.url);
    for (let i = 0; i < 100; i++) await control(server.url, run_id, "steer", { text: String(i) });
    const refused = await control(server.url, run_id, "steer", { text: "one more" });
    expect([refused.status, codeOf(refused)]).toEqual([409, "KAI-RUN-STATE-0001"]);
  });

  it("is told of each direction, also before the last one is taken up [RW-CONTROL-2]", async () => {
    const run_id = await createRun(server.url);
    for (const instruction of ["left", "right"]) {
      const { status, body } = await control(server.url, run_id, "redirect", { instruction });
      expect([status, body.state]).toEqual([202, "redirecting"]);
    }
    await append(server.url, run_id, lifecycle("running"));
    expect((await allEvents(server.url, run_id)).slice(2).map(({ payload }) => payload)).toEqual([
      { action: "redirect", instruction: "left" },
      { state: "redirecting", reason: "redirected" },
      { action: "redirect", instruction: "right" },
      { state: "running", reason: null },
    ]);
    // What is said to it is the last of them.
    const { body } = await control(server.url, run_id, "fork");
    const [, asked] = await allEvents(server.url, body.run_id as string);
    expect(asked?.payload).toMatchObject({ messages: [{}, { role: "user", content: "right" }] });
  });

  it("is not changed twice by the same control [RW-STATE-3]", async () => {
    const run_id = await createRun(server.url);
    for (let i = 0; i < 3; i++) expect((await control(server.url, run_id, "pause")).status).toBe(202);
    const aborts = await Promise.all(Array.from({ length: 20 }, () => control(server.url, run_id, "abort")));
    expect(new Set(aborts.map(({ status }) => status))).toEqual(new Set([202]));
    expect(await states(run_id)).toEqual(["running", "paused", "aborted"]);
    const asked = (await allEvents(server.url, run_id)).filter((e) => e.type === "control.requested");
    expect(asked).toHaveLength(2);
  });

  it("is not changed by a request that is wrong", async () => {
    const run_id = await createRun(server.url);
    const wrong: readonly [string, unknown][] = [
      ["redirect", {}],
      ["redirect", { instruction: "" }],
      ["redirect", { instruction: " \n" }],
      ["redirect", { instruction: 7 }],
      ["steer", {}],
      ["steer", { text: "\t" }],
      ["children", { prompt: " " }],
      ["fork", { prompt: " " }],
      ["pause", { colour: "red" }],
      ["abort", { reason: 7 }],
      ["approve_plan", { approved: "yes" }],
      ["approvals/appr_1", { decision: "perhaps" }],
      ["approvals/appr_1", {}],
      ["clarifications/clar_1", {}],
    ];
    for (const [action, body] of wrong) {
      const reply = await call(server.url, "POST", runPath(run_id, action), body);
      expect([action, reply.status, codeOf(reply)]).toEqual([action, 422, "KAI-REQUEST-BODY-0002"]);
    }
    expect(await allEvents(server.url, run_id)).toHaveLength(2);
  });
});

describe("a plan", () => {
  it("waits for approval where the gate is required [RW-CONTROL-3]", async () => {
    const run_id = await runIn.awaiting_approval();
    expect(await states(run_id)).toEqual(["planning", "awaiting_approval"]);
    const wrong = await control(server.url, run_id, "approve_plan", { plan_id: "plan_2" });
    expect(wrong.status).toBe(409);
    expect(messageOf(wrong)).toContain("plan_1");
    expect(await stateOf(run_id)).toBe("awaiting_approval");
    const approved = await control(server.url, run_id, "approve_plan", { plan_id: "plan_1" });
    expect([approved.status, approved.body]).toEqual([202, { run_id, state: "running" }]);
    expect(await states(run_id)).toEqual(["planning", "awaiting_approval", "running"]);
    expect((await control(server.url, run_id, "approve_plan")).status).toBe(409);
  });

  it("is not approved with two steps of one id [RW-CONTROL-3]", async () => {
    const run_id = await runIn.awaiting_approval();
    const steps = [
      { title: "look" },
      { id: "s1", title: "buy" },
      { title: "wait" },
      { id: "s1", title: "sell" },
    ];
    const refused = await control(server.url, run_id, "approve_plan", { steps });
    expect([refused.status, codeOf(refused)]).toEqual([422, "KAI-REQUEST-BODY-0002"]);
    expect(messageOf(refused)).toContain("`steps.3.id`");
    expect(await stateOf(run_id)).toBe("awaiting_approval");
    expect((await control(server.url, run_id, "approve_plan", { steps: steps.slice(0, 3) })).status).toBe(
      202,
    );
  });

  it("is approved as edited, and the producer is given the edited steps [RW-CONTROL-3]", async () => {
    const run_id = await runIn.awaiting_approval();
    const steps = [{ id: "step_9", title: "look twice" }];
    await control(server.url, run_id, "approve_plan", { steps, reason: "safer" });
    const asked = (await allEvents(server.url, run_id)).find((e) => e.type === "control.requested");
    expect(asked?.payload).toEqual({
      action: "approve_plan",
      plan_id: "plan_1",
      approved: true,
      reason: "safer",
      steps,
    });
    expect(await stateOf(run_id)).toBe("running");
  });

  it("that is rejected ends the run as aborted, with the reason [RW-CONTROL-3]", async () => {
    const run_id = await runIn.awaiting_approval();
    const reading = readAll("sse", server.url, streamPath({ run_id }));
    const rejected = await control(server.url, run_id, "approve_plan", {
      approved: false,
      reason: "too dear",
    });
    expect(rejected.body.state).toBe("aborted");
    const { events } = await reading;
    expect(events.at(-1)?.payload).toEqual({ state: "aborted", reason: "too dear" });
  });

  it("may be proposed again before it is approved; the last one counts", async () => {
    const run_id = await runIn.awaiting_approval();
    await append(
      server.url,
      run_id,
      lifecycle("planning"),
      say("plan.proposal", { plan: { ...plan, id: "plan_2" } }),
    );
    expect(await states(run_id)).toEqual(["planning", "awaiting_approval", "planning", "awaiting_approval"]);
    expect((await control(server.url, run_id, "approve_plan", { plan_id: "plan_1" })).status).toBe(409);
    expect((await control(server.url, run_id, "approve_plan", { plan_id: "plan_2" })).status).toBe(202);
  });

  it("is only shown where the gate is a preview, and changes nothing where there is none [RW-CONTROL-3]", async () => {
    const preview = await createRun(server.url, { planning_gate: "preview" });
    await append(server.url, preview, propose, text("on I go"));
    expect(await states(preview)).toEqual(["planning", "running"]);
    const off = await createRun(server.url, { planning_gate: "off" });
    await append(server.url, off, propose);
    expect(await states(off)).toEqual(["running"]);
    expect((await control(server.url, off, "approve_plan")).status).toBe(409);
  });
});
