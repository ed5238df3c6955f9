// What each provider is asked for beside the conversation: that it thinks where it can, and shows it.

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ChatMessage, ModelRequest } from "../model.js";
import { type FakeProvider, fakeProvider } from "../testing/fake-provider.js";
import { hearAll, never, plainRequest, secretKey } from "../testing/under-test.js";
import { type FakeAnswer, plainAnswer } from "../testing/wires/answer.js";
import { anthropicModel, localModel, openaiModel } from "./known.js";

let fake: FakeProvider;
beforeAll(async () => {
  fake = await fakeProvider();
});
afterAll(() => fake.close());

const said: FakeAnswer = { ...plainAnswer, reasoning: "Hm.", text: "Hi" };
type Body = { readonly [member: string]: unknown };

async function bodyOf(
  open: typeof openaiModel,
  model: string,
  request: Partial<ModelRequest>,
): Promise<Body> {
  fake.script(() => ({ kind: "answer", answer: said }));
  const opened = open({ model, key: secretKey, baseUrl: fake.url });
  await hearAll(opened.stream({ ...plainRequest, ...request }, never));
  return fake.requests.at(-1)?.body as Body;
}

const call = { call_id: "c1", tool: "web.fetch", input: {} };
const answered = (carry?: unknown): readonly ChatMessage[] => [
  { role: "user", content: "Hello?" },
  { role: "assistant", content: "", calls: [call], ...(carry === undefined ? {} : { carry }) },
  { role: "tool", ...{ call_id: "c1", tool: "web.fetch", ok: true, output: "page" } },
];
const carry = [{ reasoning: "Hm.", options: { anthropic: { signature: "c2ln" } } }, { call: true }];

describe("Claude", () => {
  const budget = { type: "enabled", budget_tokens: 4096 };
  test.each([
    ["claude-sonnet-5-5", {}, { type: "adaptive", display: "summarized" }],
    ["claude-opus-4-6", {}, { type: "adaptive", display: "summarized" }],
    ["claude-opus-4-6", { aside: "title" }, { type: "disabled" }],
    ["claude-sonnet-4-5", {}, budget],
    ["claude-3-7-sonnet-20250219", {}, budget],
    ["claude-3-5-haiku-latest", {}, undefined],
    // Thinking and a prefill exclude each other.
    ["claude-sonnet-4-5", { partial: "Well, " }, undefined],
    ["claude-sonnet-4-5", { aside: "title" }, undefined],
    // The thoughts of a call must come back with it, or there must be none.
    ["claude-sonnet-4-5", { messages: answered(carry) }, budget],
    ["claude-sonnet-4-5", { messages: answered() }, undefined],
    ["claude-sonnet-4-5", { messages: [...answered(), { role: "user", content: "And?" }] }, budget],
  ] as const)("%s with %j thinks as %j", async (model, request, thinking) => {
    expect((await bodyOf(anthropicModel, model, request)).thinking).toEqual(thinking);
  });

  test("it thinks about a person's words behind results without thoughts, however it takes them", async () => {
    const message = "a final `assistant` message must start with a thinking block";
    const body = JSON.stringify({ type: "error", error: { type: "invalid_request_error", message } });
    const isOneTurn = ({ body }: { readonly body: unknown }): boolean =>
      JSON.stringify((body as { readonly messages: readonly Body[] }).messages.at(-1)).includes(
        "tool_result",
      );
    fake.script((request) =>
      isOneTurn(request) ? { kind: "refusal", status: 400, body } : { kind: "answer", answer: said },
    );
    const model = anthropicModel({ model: "claude-sonnet-4-5", key: secretKey, baseUrl: fake.url });
    const messages: readonly ChatMessage[] = [...answered(), { role: "user", content: "And?" }];
    expect((await hearAll(model.stream({ ...plainRequest, messages }, never))).text).toBe("Hi");
    expect(fake.requests.map(isOneTurn)).toEqual([true, false]);
    expect(fake.requests[1]?.body).toMatchObject({ thinking: budget });
  });

  test("its thoughts go back signed, before the call that they led to", async () => {
    const { messages } = await bodyOf(anthropicModel, "claude-sonnet-5-5", { messages: answered(carry) });
    expect((messages as readonly Body[])[1]?.content).toMatchObject([
      { type: "thinking", thinking: "Hm.", signature: "c2ln" },
      { type: "tool_use", id: "c1" },
    ]);
  });
});

describe("OpenAI", () => {
  test("is asked for summaries of its reasoning, and for the reasoning itself, encrypted", async () => {
    expect(await bodyOf(openaiModel, "gpt-6.1-sol", {})).toMatchObject({
      store: false,
      reasoning: { summary: "auto" },
      include: ["reasoning.encrypted_content"],
    });
    expect(await bodyOf(openaiModel, "gpt-6.1-sol", { aside: "title" })).toMatchObject({
      reasoning: { effort: "low" },
    });
    expect(await bodyOf(openaiModel, "gpt-4o", {})).not.toHaveProperty("reasoning");
  });

  test("is asked without them where it refuses them, and not again for them", async () => {
    const message = "Your organization must be verified to generate reasoning summaries.";
    const body = JSON.stringify({
      error: { message, param: "reasoning.summary", code: "unsupported_value" },
    });
    const wantsSummary = ({ body }: { readonly body: unknown }): boolean =>
      JSON.stringify(body).includes('"summary":"auto"');
    fake.script((request) =>
      wantsSummary(request) ? { kind: "refusal", status: 400, body } : { kind: "answer", answer: said },
    );
    const model = openaiModel({ model: "gpt-6.1-sol", key: secretKey, baseUrl: fake.url });
    for (let i = 0; i < 2; i++) expect((await hearAll(model.stream(plainRequest, never))).text).toBe("Hi");
    expect(fake.requests.map(wantsSummary)).toEqual([true, false, false]);
  });

  test("what it refuses for another reason is refused", async () => {
    const body = JSON.stringify({ error: { message: "No such model", code: "model_not_found" } });
    fake.script(() => ({ kind: "refusal", status: 404, body }));
    const model = openaiModel({ model: "gpt-6.1-sol", key: secretKey, baseUrl: fake.url });
    await expect(hearAll(model.stream(plainRequest, never))).rejects.toMatchObject({ kind: "refused" });
    expect(fake.requests).toHaveLength(1);
  });
});

describe("a local model", () => {
  const steered: readonly ChatMessage[] = [...answered(), { role: "user", content: "Mind the gap." }];
  const rolesIn = (body: unknown): readonly unknown[] =>
    (body as { readonly messages: readonly Body[] }).messages.map(({ role }) => role);
  const isOutOfTurn = ({ body }: { readonly body: unknown }): boolean =>
    rolesIn(body).join().includes("tool,user");
  const ask = { ...plainRequest, messages: steered };

  test.each([
    [400, { object: "error", message: "Unexpected role 'user' after role 'tool'", code: "3230" }],
    [500, { error: { code: 500, message: "conversation roles must alternate user and assistant roles" } }],
  ])(
    "that answers %i %j is asked with an answer before a person's words, from then on",
    async (status, error) => {
      fake.script((request) =>
        isOutOfTurn(request)
          ? { kind: "refusal", status, body: JSON.stringify(error) }
          : { kind: "answer", answer: said },
      );
      const model = localModel({ model: "mistral", key: "", baseUrl: fake.url });
      for (let i = 0; i < 2; i++) expect((await hearAll(model.stream(ask, never))).text).toBe("Hi");
      expect(fake.requests.map(isOutOfTurn)).toEqual([true, false, false]);
      expect(rolesIn(fake.requests[1]?.body)).toEqual([
        ...["system", "user", "assistant", "tool", "assistant", "user"],
      ]);
    },
  );

  test("that takes them where they were said is asked so", async () => {
    expect(rolesIn(await bodyOf(localModel, "llama", ask))).toEqual([
      ...["system", "user", "assistant", "tool", "user"],
    ]);
  });
});
