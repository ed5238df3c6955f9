// Plans, through a server: what people make of them is what the model gets, and what they cost is said beforehand.

import type { Facts } from "@runwire/protocol";
import { expect, test } from "vitest";
import { demoModel } from "./demo/model.js";
import type { Model } from "./model.js";
import { planTool } from "./plan.js";
import { answering } from "./testing/asides.js";
import type { FakeRequest, Turn } from "./testing/fake-provider.js";
import { mortal } from "./testing/mortal.js";
import {
  endedRun,
  joined,
  payloadsOf,
  post,
  readRun,
  recordOf,
  served,
  servedOnFake,
  startRun,
} from "./testing/served.js";
import { type FakeAnswer, plainAnswer } from "./testing/wires/answer.js";

const { fake, server } = await servedOnFake({}, (url) => ({ OPENAI_API_KEY: "key", OPENAI_BASE_URL: url }));

const proposed = [
  { title: "Look around", intent: "research", est_tools: ["look.up"] },
  { title: "Tell", intent: "nonsense", est_tools: [1, "x"], est_cost_usd: 99 },
];
const usage = { input: 100_000, cached: 0, output: 0, reasoning: 0 };
const said: FakeAnswer = { ...plainAnswer, text: "Done.", usage };
const proposing = (steps: unknown): FakeAnswer => ({
  ...plainAnswer,
  calls: [{ call_id: "p", tool: "plan_propose", args: JSON.stringify({ steps }) }],
  finish: "calls",
});
const looking: FakeAnswer = {
  ...plainAnswer,
  calls: [{ call_id: "l", tool: "look_up", args: '{"what":"this","plan_step":"s1"}' }],
  finish: "calls",
  usage,
};

const answer = (of: FakeAnswer): Turn => ({ kind: "answer", answer: of });
const model = "openai/gpt-5";

async function waiting(turns: readonly FakeAnswer[], asked: Facts = {}, { url } = server) {
  fake.script(answering((_, n) => answer(turns[n] ?? said)));
  const run_id = await startRun(url, { model, planning_gate: "required", ...asked });
  const events = await readRun(
    url,
    run_id,
    ({ type, payload }) => type === "run.lifecycle" && (payload as Facts).state === "awaiting_approval",
  );
  return {
    run_id,
    plan: payloadsOf(events, "plan.proposal")[0]?.plan as Facts & { readonly steps: readonly Facts[] },
  };
}

const approve = (run_id: string, body: Facts, { url } = server) =>
  post(url, `/v1/agent/runs/${run_id}/approve_plan`, body);
const toldOf = (request: FakeRequest | undefined): string => JSON.stringify(request?.body);

test("an approved plan is what the model gets, and its calls say which step they are for", async () => {
  const { run_id, plan } = await waiting([proposing(proposed), looking]);
  expect(plan).toMatchObject({
    run_id,
    steps: [
      { id: "s1", title: "Look around", intent: "research", est_tools: ["look.up"] },
      { id: "s2", title: "Tell", intent: "other", est_tools: ["x"] },
    ],
  });
  await approve(run_id, {});
  const events = await endedRun(server.url, run_id);
  expect(toldOf(fake.requests[1])).toContain("s1. Look around\\ns2. Tell");
  // The tool does not see it, the log does, and so does the model.
  expect(payloadsOf(events, "tool.start")).toMatchObject([{ input: { what: "this" } }]);
  expect(payloadsOf(events, "tool.start")[0]?.input).not.toHaveProperty("plan_step");
  expect(payloadsOf(events, "tool.call")).toMatchObject([{ plan_step: "s1" }]);
  expect(toldOf(fake.requests[2])).toContain('\\"plan_step\\":\\"s1\\"');
  const boundaries = payloadsOf(events, "step.boundary");
  expect(boundaries.map(({ step_kind, plan_steps }) => [step_kind, plan_steps])).toEqual([
    ["plan", undefined],
    ["tool-roundtrip", ["s1"]],
    ["done", undefined],
  ]);
});

test("an edited plan is what the model gets, and nothing of the old one", async () => {
  const { run_id } = await waiting([proposing(proposed)]);
  await approve(run_id, { steps: [{ title: "Only this" }, { id: "mine", title: "And that" }] });
  const events = await endedRun(server.url, run_id);
  expect(events.at(-1)?.payload).toMatchObject({ state: "done" });
  expect(toldOf(fake.requests[1])).toContain("s1. Only this\\nmine. And that");
  expect(toldOf(fake.requests[1])).not.toContain("Look around");
});

test("a plan that nobody could follow is refused, and still waits", async () => {
  const { run_id } = await waiting([proposing(proposed)]);
  for (const steps of [[], [{}], [{ title: " " }], [{ title: "x", intent: "nonsense" }], ["x"]])
    await expect(approve(run_id, { steps })).rejects.toThrow("422");
  expect(await recordOf(server.url, run_id)).toMatchObject({ state: "awaiting_approval" });
  await approve(run_id, { approved: false, reason: "too dear" });
  const events = await endedRun(server.url, run_id);
  expect(events.at(-1)?.payload).toMatchObject({ state: "aborted", reason: "too dear" });
  expect(fake.requests).toHaveLength(1);
});

test("a plan is made by one who knows the tools, and what needs none is done with the answer", async () => {
  const steps = [...proposed, { title: "Think", intent: "report" }];
  const { run_id } = await waiting([proposing(steps), looking]);
  expect(toldOf(fake.requests[0])).toContain("The tools that you will have then: look.up");
  await approve(run_id, {});
  const events = await endedRun(server.url, run_id);
  const boundaries = payloadsOf(events, "step.boundary").map(({ plan_steps }) => plan_steps);
  expect(boundaries).toEqual([undefined, ["s1"], ["s3"]]);
  const none = await waiting([proposing(proposed)], { tools: [] });
  expect(toldOf(fake.requests[0])).toContain("You will have no tools then.");
  await approve(none.run_id, { approved: false });
});

test("a model that makes no plan still does what was asked", async () => {
  const { run_id, plan } = await waiting([{ ...plainAnswer, text: "I just do it." }]);
  expect(plan.steps).toMatchObject([{ id: "s1", title: "Do what was asked" }]);
  await approve(run_id, {});
  expect((await endedRun(server.url, run_id)).at(-1)?.payload).toMatchObject({ state: "done" });
});

test("a plan says what it is likely to cost: by the price list at first, then by what such steps have cost", async () => {
  const fresh = await served();
  fresh.given({ OPENAI_API_KEY: "key", OPENAI_BASE_URL: fake.url });
  try {
    const first = await waiting([proposing(proposed), looking], {}, fresh);
    const [look, tell] = first.plan.steps.map(({ est_cost_usd }) => Number(est_cost_usd));
    expect(look).toBeGreaterThan(0);
    expect(first.plan.est_total_cost_usd).toBeCloseTo((look ?? 0) + (tell ?? 0), 3);
    await approve(first.run_id, {}, fresh);
    await endedRun(fresh.url, first.run_id);
    const next = await waiting([proposing(proposed)], {}, fresh);
    // Looking was one answer of 100,000 tokens and half of the last one; telling was the other half.
    const million = 1.25;
    expect(next.plan.steps).toMatchObject([
      { est_cost_usd: Number((0.15 * million).toPrecision(2)) },
      { est_cost_usd: Number((0.05 * million).toPrecision(2)) },
    ]);
    const unknown = await waiting([proposing(proposed)], { model: "openai/gpt-99" }, fresh);
    expect(unknown.plan).not.toHaveProperty("est_total_cost_usd");
    for (const step of unknown.plan.steps) expect(step).not.toHaveProperty("est_cost_usd");
  } finally {
    await fresh.close();
  }
});

test("what is said with a plan is said once, also where a crash came in between", async () => {
  const said = "First I look, then I tell.";
  const planner: Model = {
    ...demoModel({ wordMs: 0 }),
    async *stream({ tools, partial }) {
      const isPlanning = tools.some(({ name }) => name === planTool.name);
      const rest = isPlanning ? said.slice(partial.length) : "Done.";
      for (const text of rest.split(/(?<= )/)) yield { kind: "text", text };
      const input = { steps: [{ title: "Look" }] };
      if (isPlanning) yield { kind: "call", call_id: "p", tool: planTool.name, input };
      const used = { input_tokens: 1, output_tokens: 1, reasoning_tokens: 0, cached_tokens: 0 };
      yield { kind: "finished", reason: isPlanning ? "calls" : "stop", usage: used, refs: {} };
    },
  };
  const mortals = await served({
    model: () => planner,
    around: (makeAgent) => {
      const agent = mortal(makeAgent);
      // What it is about, the model's request, two words.
      agent.killAfter(4);
      return agent.make;
    },
  });
  try {
    const run_id = await startRun(mortals.url, { planning_gate: "required" });
    const events = await readRun(mortals.url, run_id, ({ type }) => type === "plan.proposal");
    expect(payloadsOf(events, "task.attempt.started")).toHaveLength(2);
    expect(joined(events, "text.delta")).toBe(said);
  } finally {
    await mortals.close();
  }
});
