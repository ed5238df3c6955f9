// The agent on real wires: what a provider says, or fails to, is what the log of a run shows.

import { beforeAll, describe, expect, test } from "vitest";
import { costOf } from "./prices.js";
import type { ModelEnv } from "./providers/choose.js";
import { answerLimits } from "./providers/deadlines.js";
import { answering, asideSuggestions, asideTitle, asideUsage } from "./testing/asides.js";
import type { Turn } from "./testing/fake-provider.js";
import {
  endedRun,
  joined,
  payloadsOf,
  post,
  readRun,
  recordOf,
  servedOnFake,
  startRun,
} from "./testing/served.js";
import { secretKey } from "./testing/under-test.js";
import { type FakeAnswer, plainAnswer } from "./testing/wires/answer.js";
import { anthropicWire } from "./testing/wires/anthropic.js";
import { chatWire } from "./testing/wires/chat.js";
import { responsesWire } from "./testing/wires/responses.js";

const { fake, server } = await servedOnFake();

const wires = [
  {
    model: "anthropic/claude-haiku-4-5",
    wire: anthropicWire,
    keyName: "ANTHROPIC_API_KEY",
    env: (url: string): ModelEnv => ({ ANTHROPIC_API_KEY: secretKey, ANTHROPIC_BASE_URL: url }),
  },
  {
    model: "anthropic/claude-sonnet-5-5",
    wire: anthropicWire,
    keyName: "ANTHROPIC_API_KEY",
    // As Anthropic's own libraries take it.
    env: (url: string): ModelEnv => ({
      ANTHROPIC_API_KEY: secretKey,
      ANTHROPIC_BASE_URL: new URL(url).origin,
    }),
  },
  {
    model: "openai/gpt-6.1-sol",
    wire: responsesWire,
    keyName: "OPENAI_API_KEY",
    env: (url: string): ModelEnv => ({ OPENAI_API_KEY: secretKey, OPENAI_BASE_URL: url }),
  },
  {
    model: "local/llama",
    wire: chatWire,
    keyName: "RUNWIRE_OPENAI_API_KEY",
    env: (url: string): ModelEnv => ({ RUNWIRE_OPENAI_BASE_URL: url, RUNWIRE_OPENAI_API_KEY: secretKey }),
  },
];

const usage = { input: 2500, cached: 500, output: 120, reasoning: 30 };
const called: FakeAnswer = {
  ...plainAnswer,
  reasoning: "I should look. 🤔",
  text: "Let me look. ",
  calls: [{ call_id: "call_1", tool: "look_up", args: '{"what":"héllo"}' }],
  finish: "calls",
  usage,
};
const said: FakeAnswer = { ...plainAnswer, text: "Hello, 世界! That is all I have to say today.", usage };
const answer = (of: FakeAnswer): Turn => ({ kind: "answer", answer: of });
const refusal = (status: number, type: string, headers = {}): Turn => ({
  kind: "refusal",
  status,
  headers,
  body: JSON.stringify({ type: "error", error: { type, code: type, message: `No: ${type}` } }),
});

describe.each(wires)("$model", ({ model, wire, keyName, env }) => {
  beforeAll(() => server.given(env(fake.url)));

  async function run(turn: (n: number) => Turn, asked = {}) {
    fake.script(answering((_, n) => turn(n)));
    const run_id = await startRun(server.url, { model, ...asked });
    return { run_id, events: await endedRun(server.url, run_id) };
  }

  test("an answer with a call is told in all its parts, and counted to the token", async () => {
    const { run_id, events } = await run((n) => answer(n === 0 ? called : said));
    expect(joined(events, "reasoning.delta")).toBe(called.reasoning);
    expect(joined(events, "text.delta")).toBe(called.text + said.text);
    expect(joined(events, "tool.args.delta")).toBe(called.calls[0]?.args);
    const [start] = payloadsOf(events, "tool.start");
    expect(start).toMatchObject({ tool: "look.up", input: { what: "héllo" } });
    expect(payloadsOf(events, "tool.call")).toMatchObject([{ call_id: start?.call_id }]);
    expect(payloadsOf(events, "tool.end")).toMatchObject([{ ok: true, output: { found: "héllo" } }]);
    expect(payloadsOf(events, "model.completed")).toMatchObject([
      {
        finish_reason: "calls",
        refs: { request_id: "req_fake", response_id: expect.stringContaining("fake") },
      },
      { finish_reason: "stop" },
    ]);
    expect(payloadsOf(events, "message.settled")).toMatchObject([{ text: said.text }]);
    const own = { input_tokens: 2500, cached_tokens: 500, output_tokens: 120, reasoning_tokens: 30 };
    const aside = { input_tokens: 11, cached_tokens: 0, output_tokens: 3, reasoning_tokens: 0 };
    const used = payloadsOf(events, "usage");
    expect(used).toMatchObject([own, own, aside, aside]);
    const record = await recordOf(server.url, run_id);
    expect(record.usage).toMatchObject({
      input_tokens: 2 * usage.input + 2 * asideUsage.input,
      output_tokens: 2 * usage.output + 2 * asideUsage.output,
      requests: 4,
    });
    const [provider = "", name = ""] = model.split("/");
    const price = (of: typeof own): number => costOf({ provider, name }, of) ?? Number.NaN;
    expect(record.cost).toEqual({ usd: expect.closeTo(2 * price(own) + 2 * price(aside), 10), known: true });
  });

  test("what the provider signed, or thinks in the open, goes back with the result of its call", async () => {
    await run((n) => answer(n === 0 ? called : said));
    const [, second] = fake.requests.filter(({ body }) => !JSON.stringify(body).includes("conversation"));
    const body = JSON.stringify(second?.body);
    if (wire === anthropicWire) expect(body).toContain('"signature":"c2lnbmVk"');
    if (wire === responsesWire) expect(body).toContain('"encrypted_content":"ZW5jcnlwdGVk"');
    if (wire === chatWire) expect(body).toContain(`"reasoning_content":"${called.reasoning}"`);
    expect(body).toContain("found");
  });

  test("the end is told in order: message, title, suggestions, usage, evidence, end", async () => {
    const { events } = await run(() => answer(said));
    const types = events.map(({ type }) => type);
    expect(types.slice(types.indexOf("message.settled"))).toEqual([
      "message.settled",
      "title",
      "suggestions",
      "usage",
      "usage",
      "evidence.changed",
      "run.lifecycle",
    ]);
    expect(payloadsOf(events, "title")).toEqual([{ title: asideTitle }]);
    expect(payloadsOf(events, "suggestions")).toEqual([{ suggestions: asideSuggestions }]);
  });

  test("an answer that was too long for the model says so at its end", async () => {
    const { events } = await run(() => answer({ ...said, finish: "length" }));
    expect(payloadsOf(events, "model.completed")).toMatchObject([{ finish_reason: "length" }]);
    expect(events.at(-1)?.payload).toMatchObject({
      state: "done",
      reason: expect.stringContaining("length limit"),
    });
  });

  test("a rate limit is told, waited for, and the run goes on", async () => {
    const { events } = await run((n) =>
      n === 0 ? refusal(429, "rate_limit_error", { "retry-after-ms": "40" }) : answer(said),
    );
    const [hit] = payloadsOf(events, "rate_limit.hit");
    expect(hit).toMatchObject({ kind: "rate-limit", try: 1 });
    expect(Number(hit?.wait_ms)).toBeGreaterThanOrEqual(40);
    expect(payloadsOf(events, "message.settled")).toMatchObject([{ text: said.text }]);
    // A request that was turned away has used nothing.
    expect(payloadsOf(events, "usage")).toHaveLength(3);
  });

  test("a server that fails is asked again", async () => {
    const { events } = await run((n) => (n === 0 ? refusal(500, "api_error") : answer(said)));
    expect(payloadsOf(events, "model.failed")).toMatchObject([{ kind: "overloaded", try: 1 }]);
    expect(joined(events, "text.delta")).toBe(said.text);
  });

  const goesOn = (broken: Turn) =>
    answering(({ partial }, n) =>
      n === 0 ? broken : answer({ ...said, text: said.text.slice(partial.length) }),
    );

  test.each(["cut off", "unreadable"])("what was said of an answer that is %s stays said", async (how) => {
    const text = wire.encode(said, "m");
    const afterBytes = Buffer.byteLength(text.slice(0, text.indexOf("have")));
    fake.script(
      goesOn(
        how === "cut off"
          ? { kind: "answer", answer: said, cut: { afterBytes, how: "line" } }
          : { kind: "answer", answer: said, insert: "data: {nonsense\n\n" },
      ),
    );
    const run_id = await startRun(server.url, { model });
    const events = await endedRun(server.url, run_id);
    expect(joined(events, "text.delta")).toBe(said.text);
    expect(payloadsOf(events, "model.failed")).toMatchObject([{ kind: "broken" }]);
    const failedAt = events.findIndex(({ type }) => type === "model.failed");
    const before = joined(events.slice(0, failedAt), "text.delta");
    expect(before).not.toBe("");
    expect(fake.requests[1]?.partial.trimEnd()).toBe(before.trimEnd());
    // The broken try was paid for, and nobody tells how much all of it came to.
    const [spent] = payloadsOf(events.slice(failedAt), "usage");
    expect(spent).toMatchObject({
      requests: 1,
      ...(wire === anthropicWire ? { input_tokens: usage.input } : {}),
    });
    const { cost } = await recordOf(server.url, run_id);
    expect(cost).toEqual({ usd: expect.any(Number), known: wire === chatWire });
  });

  test("a provider that does not begin in time is asked again", async () => {
    server.given(env(fake.url), { ...answerLimits, firstPartMsMax: 80 });
    const { events } = await run((n) => (n === 0 ? { kind: "silence" } : answer(said)));
    server.given(env(fake.url));
    expect(payloadsOf(events, "model.failed")).toMatchObject([{ kind: "timeout", try: 1 }]);
    expect(joined(events, "text.delta")).toBe(said.text);
  });

  test("a wrong key ends the run, and says what to do and no more", async () => {
    const { events } = await run(() => refusal(401, "invalid_api_key"));
    expect(events.at(-1)?.payload).toMatchObject({
      state: "error",
      reason: expect.stringContaining(`Check ${keyName}`),
    });
    expect(payloadsOf(events, "model.failed")).toMatchObject([{ kind: "unauthorized" }]);
    expect(fake.requests).toHaveLength(1);
    expect(JSON.stringify(events)).not.toContain(secretKey);
  });

  test("who pauses an answer pays for what was told of it, and is told the rest later", async () => {
    const text = wire.encode(said, "m");
    const silentAfterBytes = Buffer.byteLength(text.slice(0, text.indexOf("have")));
    fake.script(goesOn({ kind: "answer", answer: said, silentAfterBytes }));
    const run_id = await startRun(server.url, { model });
    await readRun(server.url, run_id, ({ type }) => type === "text.delta");
    await post(server.url, `/v1/agent/runs/${run_id}/pause`, {});
    const paused = await readRun(server.url, run_id, ({ type }) => type === "usage");
    expect(payloadsOf(paused, "usage")).toMatchObject([{ requests: 1 }]);
    await post(server.url, `/v1/agent/runs/${run_id}/resume`, {});
    const events = await endedRun(server.url, run_id);
    expect(joined(events, "text.delta")).toBe(said.text);
    expect(payloadsOf(events, "usage")).toHaveLength(4);
  });
});

describe("what is asked aside", () => {
  const env = { RUNWIRE_OPENAI_BASE_URL: "", RUNWIRE_MODEL: "local/llama" };
  const asked = { model: "local/llama" };

  test("is left out where it fails or takes too long, and the run is done", async () => {
    server.given({ ...env, RUNWIRE_OPENAI_BASE_URL: fake.url });
    fake.script(
      answering(
        () => answer(said),
        (kind) => (kind === "title" ? refusal(500, "api_error") : { kind: "silence" }),
      ),
    );
    const events = await endedRun(server.url, await startRun(server.url, asked));
    const types = events.map(({ type }) => type);
    expect(types.slice(types.indexOf("message.settled"))).toEqual([
      "message.settled",
      "evidence.changed",
      "run.lifecycle",
    ]);
    expect(events.at(-1)?.payload).toMatchObject({ state: "done" });
    // Each was asked for once.
    expect(fake.requests).toHaveLength(3);
  });

  test("is one title a session: a turn of a session that has one asks for none", async () => {
    server.given({ ...env, RUNWIRE_OPENAI_BASE_URL: fake.url });
    fake.script(answering(() => answer(said)));
    const first = await startRun(server.url, { ...asked, session_id: "sess_one" });
    await endedRun(server.url, first);
    fake.script(answering(() => answer(said)));
    const second = await startRun(server.url, { ...asked, session_id: "sess_one" });
    const events = await endedRun(server.url, second);
    expect(payloadsOf(events, "title")).toEqual([{ title: asideTitle }]);
    expect(fake.requests).toHaveLength(2);
  });
});
