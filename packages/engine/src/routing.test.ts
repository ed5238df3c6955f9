// A model that is given up on is followed by the next of the run's fallbacks, which goes on from what was said.

import type { Event, Facts } from "@runwire/protocol";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { firstCourse } from "./course.js";
import { demoModel } from "./demo/model.js";
import { limits } from "./limits.js";
import { router } from "./routing.js";
import { answering } from "./testing/asides.js";
import { type FakeProvider, fakeProvider, type Turn } from "./testing/fake-provider.js";
import { endedRun, joined, payloadsOf, type Served, served, startRun } from "./testing/served.js";
import { secretKey } from "./testing/under-test.js";
import { type FakeAnswer, plainAnswer } from "./testing/wires/answer.js";
import { anthropicWire } from "./testing/wires/anthropic.js";
import { advance, firstWork } from "./work.js";

let first: FakeProvider;
let second: FakeProvider;
let server: Served;
beforeAll(async () => {
  first = await fakeProvider();
  second = await fakeProvider();
  server = await served();
  server.given({
    ANTHROPIC_API_KEY: secretKey,
    ANTHROPIC_BASE_URL: first.url,
    RUNWIRE_OPENAI_BASE_URL: second.url,
  });
});
afterAll(async () => {
  await server.close();
  await first.close();
  await second.close();
});

const asked = { model: "anthropic/claude-sonnet-5-5", fallback_models: ["local/llama"] };
const said: FakeAnswer = { ...plainAnswer, text: "Hello, and that is all I have to say today." };
const unauthorized: Turn = { kind: "refusal", status: 401, body: '{"error":{"message":"no"}}' };
const routed = (events: readonly Event[]): readonly string[] =>
  events.map(({ type }) => type).filter((type) => /^routing\.|^task\.profile/.test(type));

test("a run whose model cannot be had is not answered by another, whenever it is taken up [RW-COURSE-2]", () => {
  const routing = router(
    (name) => {
      if (name === null) return demoModel({ wordMs: 0 });
      throw new Error("no key");
    },
    "local/llama",
    ["local/other"],
  );
  for (const course of [
    firstCourse,
    { ...firstCourse, candidate: "local/other", givenUp: ["local/llama"] },
  ]) {
    const said = routing.opening(course);
    expect(said.at(-1)).toMatchObject({ type: "routing.not_possible", payload: { reason: "no key" } });
    // Whoever takes it up once more finds what was decided, which is nothing.
    expect(() => routing.model(course)).toThrow("no key");
  }
});

describe("a run with fallbacks", () => {
  test("goes on with the next model from what was said, and each is paid for its own [RW-COURSE-2]", async () => {
    const text = anthropicWire.encode(said, "claude-sonnet-5-5");
    const afterBytes = Buffer.byteLength(text.slice(0, text.indexOf("say")));
    first.script(
      answering((_, n) =>
        n === 0 ? { kind: "answer", answer: said, cut: { afterBytes, how: "clean" } } : unauthorized,
      ),
    );
    second.script(
      answering(({ partial }) => ({
        kind: "answer",
        answer: { ...said, text: said.text.slice(partial.length) },
      })),
    );
    const events = await endedRun(server.url, await startRun(server.url, asked));
    expect(events.at(-1)?.payload).toMatchObject({ state: "done" });
    expect(joined(events, "text.delta")).toBe(said.text);
    expect(second.requests[0]?.partial).not.toBe("");
    expect(routed(events)).toEqual([
      "task.profile.resolved",
      "routing.candidates.resolved",
      "routing.decided",
      "routing.fallback.applied",
    ]);
    expect(payloadsOf(events, "routing.fallback.applied")).toMatchObject([
      {
        from: { candidate: asked.model, provider: "anthropic" },
        to: { candidate: "local/llama", model: "llama", provider: "local" },
        kind: "unauthorized",
      },
    ]);
    const paid = payloadsOf(events, "usage").map(({ provider }) => provider);
    expect(paid).toEqual(["anthropic", "local", "local", "local"]);

    // Whoever takes it up at any moment speaks to the model that was decided on.
    let work = firstWork;
    for (const [i, event] of events.entries()) {
      work = advance(work, event);
      const fellBack = events.slice(0, i + 1).some(({ type }) => type === "routing.fallback.applied");
      if (routed(events.slice(0, i + 1)).length > 2)
        expect(work.course.candidate).toBe(fellBack ? "local/llama" : asked.model);
    }
  });

  test("hands nothing that one provider signed to another, though the model has the same name", async () => {
    const calls = [{ call_id: "c1", tool: "look_up", args: "{}" }];
    const called: FakeAnswer = { ...plainAnswer, reasoning: "Hm.", calls, finish: "calls" };
    first.script((_, n) => (n === 0 ? { kind: "answer", answer: called } : unauthorized));
    second.script(answering(() => ({ kind: "answer", answer: said })));
    const same = { ...asked, fallback_models: ["local/claude-sonnet-5-5"] };
    const events = await endedRun(server.url, await startRun(server.url, same));
    expect(events.at(-1)?.payload).toMatchObject({ state: "done" });
    // The one who signed it has it back, as long as it is asked.
    expect(JSON.stringify(first.requests[1]?.body)).toContain('"thinking":"Hm."');
    const body = JSON.stringify(second.requests[0]?.body);
    expect(body).toContain('"tool_calls"');
    expect(body).not.toContain("Hm.");
  });

  test("leaves a model that calls too much, and pays for what it said", async () => {
    const calls = Array.from({ length: limits.callsPerAnswerMax + 1 }, (_, n) => ({
      call_id: `c${n}`,
      tool: "look_up",
      args: "{}",
    }));
    const usage = { input: 100, cached: 0, output: 10, reasoning: 0 };
    first.script(() => ({ kind: "answer", answer: { ...plainAnswer, calls, finish: "calls", usage } }));
    second.script(answering(() => ({ kind: "answer", answer: said })));
    const events = await endedRun(server.url, await startRun(server.url, asked));
    expect(events.at(-1)?.payload).toMatchObject({ state: "done" });
    expect(payloadsOf(events, "model.failed")).toMatchObject([{ kind: "refused", provider: "anthropic" }]);
    expect(payloadsOf(events, "tool.call")).toEqual([]);
    const used = payloadsOf(events, "usage");
    expect(used.filter(({ provider }) => provider === "anthropic")).toMatchObject([
      { input_tokens: 100, output_tokens: 10, requests: 1 },
    ]);
  });

  test("says that there is none left before it ends [RW-COURSE-2]", async () => {
    first.script(() => unauthorized);
    second.script(() => unauthorized);
    const events = await endedRun(server.url, await startRun(server.url, asked));
    expect(routed(events).slice(-2)).toEqual(["routing.fallback.applied", "routing.not_possible"]);
    expect(events.at(-1)?.payload).toMatchObject({ state: "error" });
    const alone = await endedRun(server.url, await startRun(server.url, { model: asked.model }));
    expect(routed(alone)).toContain("routing.single_candidate");
    expect(routed(alone).at(-1)).toBe("routing.not_possible");
  });

  test("is refused where one of them cannot be had [RW-COURSE-2]", async () => {
    const code = async (more: Facts): Promise<string> =>
      startRun(server.url, { ...asked, ...more }).then(
        () => "taken",
        (error: Error) => error.message,
      );
    expect(await code({ fallback_models: ["openai/gpt-6.1-sol"] })).toContain("KAI-MODEL-KEY-0001");
    expect(await code({ fallback_models: [" "] })).toContain("422");
  });
});
