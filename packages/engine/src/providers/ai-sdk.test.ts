import type { LanguageModelV3 } from "@ai-sdk/provider";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Clock } from "../clock.js";
import { limits } from "../limits.js";
import { ModelFailure } from "../model.js";
import { type FakeProvider, fakeProvider, type Turn } from "../testing/fake-provider.js";
import {
  type Heard,
  hearAll,
  kinds,
  modelOf,
  never,
  plainRequest,
  secretKey,
} from "../testing/under-test.js";
import { type FakeAnswer, plainAnswer } from "../testing/wires/answer.js";
import { chatWire } from "../testing/wires/chat.js";
import { aiModel } from "./ai-sdk.js";

let fake: FakeProvider;
beforeAll(async () => {
  fake = await fakeProvider();
});
afterAll(() => fake.close());

const usage = { input: 25, cached: 5, output: 12, reasoning: 3 };
const answer: FakeAnswer = {
  ...plainAnswer,
  reasoning: "Let me see… 🤔",
  text: "Grüße, 世界!\n\nI'll look. 🎉 ",
  calls: [
    { call_id: "call_1", tool: "web_fetch", args: '{"url":"https://example.org/é"}' },
    { call_id: "call_2", tool: "web_fetch", args: '{"url":"x","deep":{"n":[1,2]}}' },
  ],
  finish: "calls",
  usage,
};

const failed = (kind: string) => (error: unknown) => error instanceof ModelFailure && error.kind === kind;

describe.each(kinds)("%s", (kind) => {
  const ask = (request = plainRequest, signal = never, sofar?: (heard: Heard) => void) =>
    hearAll(modelOf(kind, fake.url).stream(request, signal), sofar);

  test("an answer is heard whole: reasoning, text, arguments as they are written, calls, usage and ids", async () => {
    fake.script(() => ({ kind: "answer", answer }));
    const heard = await ask();
    expect(heard.text).toBe(answer.text);
    expect(heard.reasoning).toBe(answer.reasoning);
    expect(heard.args).toEqual(Object.fromEntries(answer.calls.map(({ call_id, args }) => [call_id, args])));
    expect(heard.calls).toEqual(
      answer.calls.map(({ call_id, args }) => ({ call_id, tool: "web.fetch", input: JSON.parse(args) })),
    );
    expect(heard.finished).toMatchObject({
      reason: "calls",
      usage: { input_tokens: 25, cached_tokens: 5, output_tokens: 12, reasoning_tokens: 3 },
      refs: {
        request_id: "req_fake",
        response_id: expect.stringContaining("fake"),
        model_id: expect.any(String),
      },
    });
    if (kind === "local") expect(heard.finished?.refs.system_fingerprint).toBe("fp_fake");
  });

  test("however its bytes are cut into pieces, an answer is the same", async () => {
    const text = fc.string({ unit: "grapheme", maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(
        fc.record({ reasoning: text, text, args: fc.dictionary(text, text, { maxKeys: 3 }) }),
        fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 5 }),
        fc.integer({ min: 1, max: 12 }),
        async ({ reasoning, text, args }, pieceBytes, deltaChars) => {
          const calls = [{ call_id: "call_1", tool: "web_fetch", args: JSON.stringify(args) }];
          const said: FakeAnswer = { ...plainAnswer, reasoning, text, calls, finish: "calls", deltaChars };
          fake.script(() => ({ kind: "answer", answer: said, pieceBytes }));
          const heard = await ask();
          expect(heard).toMatchObject({ reasoning, text, calls: [{ input: args }] });
          expect(heard.args).toEqual({ call_1: JSON.stringify(args) });
        },
      ),
      { numRuns: 40 },
    );
  });

  test.each([
    ["stop", "stop"],
    ["length", "length"],
  ] as const)("an answer that ends with %s says so", async (finish, reason) => {
    fake.script(() => ({ kind: "answer", answer: { ...plainAnswer, text: "Hi", finish } }));
    expect((await ask()).finished?.reason).toBe(reason);
  });

  test("arguments that are no JSON are handed on as the text they are", async () => {
    const calls = [{ call_id: "call_1", tool: "web_fetch", args: '{"url": "htt' }];
    fake.script(() => ({ kind: "answer", answer: { ...plainAnswer, calls, finish: "length" } }));
    expect((await ask()).calls).toEqual([{ call_id: "call_1", tool: "web.fetch", input: '{"url": "htt' }]);
  });

  test.each([
    ["too deep for a log", `{"a":${"[".repeat(100)}${"]".repeat(100)}}`],
    ["too deep for anything", `{"a":${"[".repeat(20_000)}${"]".repeat(20_000)}}`],
    ["with a number that overflows", '{"a":1e999}'],
  ])("arguments %s are handed on as the text they are", async (_, args) => {
    const calls = [{ call_id: "call_1", tool: "web_fetch", args }];
    fake.script(() => ({
      kind: "answer",
      answer: { ...plainAnswer, calls, finish: "calls", deltaChars: 5000 },
    }));
    expect((await ask()).calls).toEqual([{ call_id: "call_1", tool: "web.fetch", input: args }]);
  });

  test("a call without arguments has none", async () => {
    const calls = [{ call_id: "call_1", tool: "web_fetch", args: "" }];
    fake.script(() => ({ kind: "answer", answer: { ...plainAnswer, calls, finish: "calls" } }));
    expect((await ask()).calls).toEqual([{ call_id: "call_1", tool: "web.fetch", input: {} }]);
  });

  test("a call that the length cut off before its first argument is not one without any", async () => {
    const [first, last] = ["call_1", "call_2"].map((call_id) => ({ call_id, tool: "web_fetch", args: "" }));
    fake.script(() => ({
      kind: "answer",
      answer: { ...plainAnswer, calls: [first!, last!], finish: "length" },
    }));
    expect((await ask()).calls).toMatchObject([{ input: {} }, { input: "" }]);
  });

  test("an answer that cannot be read is broken", async () => {
    const said = { ...plainAnswer, text: "Hello there" };
    fake.script(() => ({ kind: "answer", answer: said, insert: "data: {nonsense\n\n" }));
    await expect(ask()).rejects.toSatisfy(failed("broken"));
  });

  test("an answer that is no event stream is broken", async () => {
    fake.script(() => ({
      kind: "refusal",
      status: 200,
      headers: { "content-type": "text/html" },
      body: "<p>Hi</p>",
    }));
    await expect(ask()).rejects.toSatisfy(failed("broken"));
  });

  test("an error in mid-answer is told as what it is, and what was used is counted", async () => {
    const error = {
      type: kind.startsWith("anthropic") ? "overloaded_error" : "server_error",
      message: "Too busy",
    };
    fake.script(() => ({ kind: "answer", answer: { ...plainAnswer, text: "Hello", usage, error } }));
    const failure = await ask().catch((error: unknown) => error as ModelFailure);
    expect(failure).toMatchObject({ kind: "overloaded", message: expect.stringContaining("Too busy") });
    if (kind.startsWith("anthropic")) expect((failure as ModelFailure).usage?.input_tokens).toBe(25);
  });

  test.each([
    [401, "", "unauthorized"],
    [403, "", "unauthorized"],
    [400, "invalid_request_error", "refused"],
    [404, "not_found_error", "refused"],
    [413, "request_too_large", "refused"],
    [429, "rate_limit_error", "rate-limit"],
    [429, "insufficient_quota", "refused"],
    [500, "", "overloaded"],
    [503, "", "overloaded"],
    [529, "overloaded_error", "overloaded"],
  ] as const)("%i %s is %s", async (status, code, expected) => {
    const body = JSON.stringify({ type: "error", error: { type: code, code, message: "No." } });
    fake.script(() => ({ kind: "refusal", status, body }));
    await expect(ask()).rejects.toMatchObject({ kind: expected });
  });

  test("a rate limit says when to come back", async () => {
    const body = JSON.stringify({ type: "error", error: { type: "rate_limit_error", message: "Slow down" } });
    fake.script(() => ({ kind: "refusal", status: 429, headers: { "retry-after": "7" }, body }));
    await expect(ask()).rejects.toMatchObject({ kind: "rate-limit", retryMs: 7000 });
  });

  test("no error shows a key", async () => {
    for (const status of [400, 401, 429, 500]) {
      const message = `Incorrect API key provided: ${secretKey}, also sk-proj-abc***xyz. You asked with ${secretKey}`;
      const body = JSON.stringify({ type: "error", error: { type: "x", code: "y", message } });
      fake.script(() => ({ kind: "refusal", status, body }));
      const failure = await ask().catch((error: unknown) => error as ModelFailure);
      expect(failure).toBeInstanceOf(ModelFailure);
      expect(everythingIn(failure)).not.toMatch(/key-that|sk-proj/);
      expect((failure as ModelFailure).message).toContain("Incorrect API key");
    }
  });

  test("a provider that is not there is a broken answer, not a crash", async () => {
    const gone = await fakeProvider();
    await gone.close();
    await expect(hearAll(modelOf(kind, gone.url).stream(plainRequest, never))).rejects.toSatisfy(
      failed("broken"),
    );
  });

  test.each(["before the first byte", "in mid-answer"])(
    "whoever aborts %s hangs up at once",
    async (when) => {
      const said = { ...plainAnswer, text: "Hello there, this goes on" };
      fake.script(() =>
        when === "in mid-answer"
          ? { kind: "answer", answer: said, silentAfterBytes: midOf(kind) }
          : { kind: "silence" },
      );
      const controller = new AbortController();
      const asked = fake.asked();
      const reason = new Error("enough");
      const heard = ask(plainRequest, controller.signal, ({ text }) => {
        if (text !== "") controller.abort(reason);
      });
      const request = await asked;
      if (when !== "in mid-answer") controller.abort(reason);
      await expect(heard).rejects.toBe(reason);
      await request.hungUp;
    },
  );

  test("whoever stops listening hangs up", async () => {
    fake.script(() => ({
      kind: "answer",
      answer: { ...plainAnswer, text: "Hello there" },
      silentAfterBytes: midOf(kind),
    }));
    const asked = fake.asked();
    for await (const part of modelOf(kind, fake.url).stream(plainRequest, never))
      if (part.kind === "text") break;
    await (await asked).hungUp;
  });

  test("nothing is asked for on behalf of somebody who has left", async () => {
    fake.script(() => ({ kind: "answer", answer }));
    await expect(ask(plainRequest, AbortSignal.abort(new Error("gone")))).rejects.toThrow("gone");
    expect(fake.requests).toEqual([]);
  });

  const patient = { firstPartMsMax: 60_000, silenceMsMax: 60_000, answerMsMax: 60_000 };
  test.each([
    ["does not begin", { ...patient, firstPartMsMax: 50 }, "did not begin"],
    ["falls silent", { ...patient, silenceMsMax: 50 }, "fell silent"],
    ["does not end", { ...patient, answerMsMax: 300 }, "did not end"],
  ])("an answer that %s is given up, and the line with it", async (_, limits, words) => {
    const said = { ...plainAnswer, text: "Hello there" };
    fake.script(() =>
      words === "did not begin"
        ? { kind: "silence" }
        : { kind: "answer", answer: said, silentAfterBytes: midOf(kind) },
    );
    const asked = fake.asked();
    const heard = hearAll(modelOf(kind, fake.url, { limits }).stream(plainRequest, never));
    await expect(heard).rejects.toMatchObject({ kind: "timeout", message: expect.stringContaining(words) });
    await (await asked).hungUp;
  });

  test("a server that says it is at it has begun, though it says nothing else", async () => {
    const before = ": keep-alive\n\n";
    const turn: Turn = { kind: "answer", answer, before, silentAfterBytes: before.length };
    fake.script(() => turn);
    const limits = { ...patient, silenceMsMax: 50 };
    const heard = hearAll(modelOf(kind, fake.url, { limits }).stream(plainRequest, never));
    await expect(heard).rejects.toThrow("fell silent");
  });

  test("what a server says on the side is no part of its answer", async () => {
    fake.script(() => ({ kind: "answer", answer, before: ": keep-alive\n\n: keep-alive\n\n" }));
    expect(await ask()).toMatchObject({ text: answer.text, finished: { reason: "calls" } });
  });

  test("a local model has as long to begin as it may be silent, others a minute", async () => {
    fake.script(() => ({ kind: "answer", answer }));
    const delaysMs: number[] = [];
    const clock: Clock = {
      nowMs: () => 0,
      after(delayMs) {
        delaysMs.push(delayMs);
        return () => {};
      },
    };
    await hearAll(modelOf(kind, fake.url, { clock }).stream(plainRequest, never));
    expect(delaysMs[0]).toBe(kind === "local" ? limits.silenceMsMax : limits.firstPartMsMax);
  });
});

describe("a server that ends its answers in its own way", () => {
  const said: FakeAnswer = { ...plainAnswer, text: "Hello there" };
  const hear = (change: (wire: string) => string): Promise<Heard> => {
    const body = change(chatWire.encode(said, "llama"));
    const headers = { "content-type": "text/event-stream" };
    fake.script(() => ({ kind: "refusal", status: 200, headers, body }));
    return hearAll(modelOf("local", fake.url).stream(plainRequest, never));
  };
  const blank = (wire: string): string => wire.replaceAll('"finish_reason":null', '"finish_reason":""');
  const ending = (reason: string) => (wire: string) =>
    wire.replace('"finish_reason":"stop"', `"finish_reason":"${reason}"`);

  test.each(["abort", "insufficient_system_resource", "error"])(
    "has broken it off where it says %s",
    async (reason) => {
      await expect(hear(ending(reason))).rejects.toSatisfy(failed("broken"));
    },
  );

  test("has broken it off where it never says why", async () => {
    await expect(hear((wire) => blank(ending("")(wire)))).rejects.toSatisfy(failed("broken"));
    await expect(hear((wire) => blank(wire.slice(0, wire.indexOf(" ther"))))).rejects.toSatisfy(
      failed("broken"),
    );
  });

  test("has ended it where it says so once, with blanks before and after", async () => {
    expect((await hear(blank)).finished?.reason).toBe("stop");
    const blanksAfter = '"choices":[{"index":0,"delta":{},"finish_reason":""}]';
    const heard = await hear((wire) => blank(wire).replace('"choices":[]', blanksAfter));
    expect(heard).toMatchObject({ text: "Hello there", finished: { reason: "other" } });
  });

  test("has ended it where it gives another reason", async () => {
    expect((await hear(ending("eos_token"))).finished?.reason).toBe("other");
  });
});

/** Somewhere behind the first word. */
function midOf(kind: (typeof kinds)[number]): number {
  return { "anthropic with prefill": 720, anthropic: 720, openai: 900, local: 560 }[kind];
}

function everythingIn(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const members = Object.getOwnPropertyNames(error).map((name) => String(Reflect.get(error, name)));
  return [String(error), ...members, error.cause === undefined ? "" : everythingIn(error.cause)].join("\n");
}

test("nothing is asked for on behalf of somebody who has left while the provider was being opened", async () => {
  let open = (_: LanguageModelV3): void => {};
  let asked = 0;
  const opening = new Promise<LanguageModelV3>((resolve) => {
    open = resolve;
  });
  const model = aiModel({
    ...{ provider: "anthropic", model: "claude-x", takesPrefill: false },
    open: () => opening,
  });
  const leaving = new AbortController();
  const heard = hearAll(model.stream(plainRequest, leaving.signal));
  leaving.abort(new Error("gone"));
  const provider: Partial<LanguageModelV3> = {
    async doStream() {
      asked += 1;
      return { stream: new ReadableStream() };
    },
  };
  open(provider as LanguageModelV3);
  await expect(heard).rejects.toThrow("gone");
  expect(asked).toBe(0);
});

test("a provider that could not be opened is a failure like any other, and is opened again for the next try", async () => {
  let opened = 0;
  const model = aiModel({
    ...{ provider: "anthropic", model: "claude-x", takesPrefill: false, secrets: [secretKey] },
    open: async () => {
      opened += 1;
      throw new Error(`cannot load with ${secretKey}`);
    },
  });
  for (const times of [1, 2]) {
    const heard = hearAll(model.stream(plainRequest, never));
    await expect(heard).rejects.toSatisfy(failed("broken"));
    await expect(heard).rejects.toThrow(/^(?!.*that-nobody-may-see)/);
    expect(opened).toBe(times);
  }
});
