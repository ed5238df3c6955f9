import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ChatMessage, ModelRequest } from "../model.js";
import { type FakeProvider, fakeProvider, type Turn } from "../testing/fake-provider.js";
import { hearAll, type Kind, kinds, modelOf, never, plainRequest } from "../testing/under-test.js";
import { type FakeAnswer, plainAnswer } from "../testing/wires/answer.js";
import { chatWire } from "../testing/wires/chat.js";

let fake: FakeProvider;
beforeAll(async () => {
  fake = await fakeProvider();
});
afterAll(() => fake.close());

interface Sent {
  readonly system?: unknown;
  readonly tools: readonly { readonly name?: string; readonly function?: { readonly name: string } }[];
  readonly messages?: readonly Wire[];
  readonly input?: readonly Wire[];
  readonly thinking?: unknown;
  readonly store?: unknown;
}
type Wire = { readonly [member: string]: unknown };

async function send(kind: Kind, request: Partial<ModelRequest>): Promise<Sent> {
  fake.script(() => ({ kind: "answer", answer: { ...plainAnswer, text: "Fine." } }));
  await hearAll(modelOf(kind, fake.url).stream({ ...plainRequest, ...request }, never));
  return fake.requests[0]!.body as Sent;
}

const worked: readonly ChatMessage[] = [
  { role: "user", content: "Look both up." },
  {
    role: "assistant",
    content: "Looking.",
    calls: [
      { call_id: "call_a", tool: "web.fetch", input: { url: "a" } },
      { call_id: "call_b", tool: "gone.tool", input: "{half" },
    ],
  },
  { role: "tool", call_id: "call_a", tool: "web.fetch", ok: true, output: { page: "A" } },
  { role: "tool", call_id: "call_b", tool: "gone.tool", ok: false, output: { message: "no such tool" } },
];

test("several calls and what came of them go to Anthropic as blocks, errors marked", async () => {
  const { messages, tools } = await send("anthropic", { messages: worked });
  expect(tools[0]?.name).toBe("web_fetch");
  expect(messages?.slice(1)).toMatchObject([
    {
      role: "assistant",
      content: [
        { type: "text", text: "Looking." },
        { type: "tool_use", id: "call_a", name: "web_fetch", input: { url: "a" } },
        { type: "tool_use", id: "call_b", name: "gone_tool", input: { unreadable: "{half" } },
      ],
    },
    {
      role: "user",
      content: [
        { type: "tool_result", tool_use_id: "call_a", content: '{"page":"A"}' },
        {
          type: "tool_result",
          tool_use_id: "call_b",
          is_error: true,
          content: '{"error":{"message":"no such tool"}}',
        },
      ],
    },
  ]);
});

test("they go to OpenAI as items", async () => {
  const { input, store } = await send("openai", { messages: worked });
  expect(store).toBe(false);
  expect(input?.slice(2)).toMatchObject([
    { role: "assistant", content: [{ text: "Looking." }] },
    { type: "function_call", call_id: "call_a", name: "web_fetch", arguments: '{"url":"a"}' },
    { type: "function_call", call_id: "call_b", name: "gone_tool" },
    { type: "function_call_output", call_id: "call_a", output: '{"page":"A"}' },
    { type: "function_call_output", call_id: "call_b", output: '{"error":{"message":"no such tool"}}' },
  ]);
});

test("they go to a local server as messages", async () => {
  const { messages } = await send("local", { messages: worked });
  expect(messages?.slice(2)).toMatchObject([
    { role: "assistant", content: "Looking.", tool_calls: [{ id: "call_a" }, { id: "call_b" }] },
    { role: "tool", tool_call_id: "call_a", content: '{"page":"A"}' },
    { role: "tool", tool_call_id: "call_b" },
  ]);
});

test("a model that takes a prefill is handed its beginning as the last message, without trailing blanks", async () => {
  const { messages } = await send("anthropic with prefill", { partial: "Once upon a \n" });
  expect(messages?.at(-1)).toMatchObject({ role: "assistant", content: [{ text: "Once upon a" }] });
});

test.each(["anthropic", "openai", "local"] as const)(
  "%s takes no prefill: it is handed its beginning and asked to go on",
  async (kind) => {
    const { messages, input } = await send(kind, { partial: "Once upon a " });
    const [said, goOn] = (messages ?? input ?? []).slice(-2);
    expect(said).toMatchObject({ role: "assistant" });
    expect(JSON.stringify(said)).toContain("Once upon a ");
    expect(goOn).toMatchObject({ role: "user" });
    expect(JSON.stringify(goOn)).toContain("exactly where it broke off");
  },
);

test.each(kinds)("%s is not handed a beginning of nothing but blanks, nor any blank text", async (kind) => {
  const messages: readonly ChatMessage[] = [
    { role: "user", content: "Hi" },
    { role: "assistant", content: "", calls: [] },
    { role: "user", content: "" },
    { role: "user", content: " \t" },
  ];
  const sent = await send(kind, { messages, partial: " \n" });
  expect((sent.messages ?? sent.input)?.at(-1)).toMatchObject({ role: "user" });
  expect(JSON.stringify(sent.messages ?? sent.input)).not.toContain('"assistant"');
  expect(JSON.stringify(sent.messages ?? sent.input)).not.toContain("\\t");
});

test.each(kinds)("%s is asked to go on where its own words are the last", async (kind) => {
  const messages: readonly ChatMessage[] = [
    { role: "user", content: "Plan it, then do it." },
    { role: "assistant", content: "Here is my plan.", calls: [] },
  ];
  const sent = await send(kind, { messages });
  const [said, asked] = (sent.messages ?? sent.input ?? []).slice(-2);
  expect(said).toMatchObject({ role: "assistant" });
  expect(JSON.stringify(said)).toContain("Here is my plan.");
  expect(asked).toMatchObject({ role: "user" });
});

test("blanks that a prefill lost are not said twice", async () => {
  fake.script(() => ({ kind: "answer", answer: { ...plainAnswer, text: "\n\n time.", deltaChars: 1 } }));
  const model = modelOf("anthropic with prefill", fake.url);
  const { text } = await hearAll(model.stream({ ...plainRequest, partial: "Once upon a\n\n" }, never));
  expect(text).toBe(" time.");
});

test("signed reasoning goes back to Anthropic with the calls it led to, in its place", async () => {
  const calls = [{ call_id: "toolu_1", tool: "web_fetch", args: "{}" }];
  fake.script(() => ({
    kind: "answer",
    answer: { ...plainAnswer, reasoning: "Hm.", text: "So:", calls, finish: "calls" },
  }));
  const heard = await hearAll(modelOf("anthropic", fake.url).stream(plainRequest, never));
  expect((fake.requests[0]!.body as Sent).thinking).toEqual({ type: "adaptive", display: "summarized" });
  // Through the log it goes as JSON.
  const carry: unknown = JSON.parse(JSON.stringify(heard.finished?.carry));
  const messages: readonly ChatMessage[] = [
    ...plainRequest.messages,
    { role: "assistant", content: heard.text, calls: [{ ...heard.calls[0]!, call_id: "call_ours" }], carry },
    { role: "tool", call_id: "call_ours", tool: "web.fetch", ok: true, output: "page" },
  ];
  expect((await send("anthropic", { messages })).messages?.[1]?.content).toMatchObject([
    { type: "thinking", thinking: "Hm.", signature: "c2lnbmVk" },
    { type: "text", text: "So:" },
    { type: "tool_use", id: "call_ours" },
  ]);
});

test("blanks between signed reasoning do not go back", async () => {
  const options = { anthropic: { signature: "c2lnbmVk" } };
  const carry = [
    { reasoning: "Hm.", options },
    { text: 2 },
    { reasoning: "And.", options },
    { text: 3 },
    { call: true },
  ];
  const calls = [{ call_id: "call_1", tool: "web.fetch", input: {} }];
  const messages: readonly ChatMessage[] = [
    ...plainRequest.messages,
    { role: "assistant", content: "\n\nSo.", calls, carry },
    { role: "tool", call_id: "call_1", tool: "web.fetch", ok: true, output: "page" },
  ];
  expect((await send("anthropic", { messages })).messages?.[1]?.content).toMatchObject([
    { type: "thinking", thinking: "Hm." },
    { type: "thinking", thinking: "And." },
    { type: "text", text: "So." },
    { type: "tool_use", id: "call_1" },
  ]);
});

test("a carry of another answer is left out", async () => {
  const carry = [{ reasoning: "Hm.", options: { anthropic: { signature: "s" } } }, { text: 99 }];
  const messages: readonly ChatMessage[] = [
    { role: "user", content: "Hi" },
    { role: "assistant", content: "Yes?", calls: [], carry },
    { role: "user", content: "Go on" },
  ];
  expect((await send("anthropic", { messages })).messages?.[1]).toMatchObject({
    content: [{ type: "text", text: "Yes?" }],
  });
});

test("reasoning that OpenAI encrypted goes back to it", async () => {
  const calls = [{ call_id: "call_1", tool: "web_fetch", args: "{}" }];
  fake.script(() => ({
    kind: "answer",
    answer: { ...plainAnswer, reasoning: "Hm.", calls, finish: "calls" },
  }));
  const heard = await hearAll(modelOf("openai", fake.url).stream(plainRequest, never));
  const messages: readonly ChatMessage[] = [
    ...plainRequest.messages,
    { role: "assistant", content: "", calls: heard.calls, carry: heard.finished?.carry },
    { role: "tool", call_id: "call_1", tool: "web.fetch", ok: true, output: "page" },
  ];
  expect((await send("openai", { messages })).input?.slice(2)).toMatchObject([
    { type: "reasoning", encrypted_content: "ZW5jcnlwdGVk" },
    { type: "function_call", call_id: "call_1" },
    { type: "function_call_output" },
  ]);
});

const png = `iVBORw0KGgo${"A".repeat(400_000)}`;
const seen = (output: unknown, ok = true): readonly ChatMessage[] => [
  { role: "user", content: "What is there?" },
  { role: "assistant", content: "", calls: [{ call_id: "call_1", tool: "browser.look", input: {} }] },
  { role: "tool", call_id: "call_1", tool: "browser.look", ok, output },
];
// Its server is wrong about what it is.
const screen = { type: "image", mime_type: "image/jpeg", data: png };

test("a picture goes to Anthropic as a picture, as what it is", async () => {
  const { messages } = await send("anthropic", {
    messages: seen({ content: [{ type: "text", text: "Here" }, screen] }),
  });
  expect(messages?.at(-1)?.content).toMatchObject([
    {
      type: "tool_result",
      content: [
        { type: "text", text: expect.stringContaining('"data":"[shown below]"') },
        { type: "image", source: { type: "base64", media_type: "image/png", data: png } },
      ],
    },
  ]);
});

test("a picture goes to OpenAI as a picture", async () => {
  const { input } = await send("openai", { messages: seen({ content: [screen] }) });
  expect(input?.at(-1)?.output).toMatchObject([
    { type: "input_text" },
    { type: "input_image", image_url: `data:image/png;base64,${png}` },
  ]);
});

test.each(kinds)("%s is told of what it cannot be shown", async (kind) => {
  const content = [
    { type: "image", mime_type: "image/png", data: "AAEC" },
    { type: "audio", mime_type: "audio/wav", data: png },
    { type: "resource", uri: "note:1", data: png },
    ...(kind === "local" ? [screen] : []),
  ];
  const sent = JSON.stringify(await send(kind, { messages: seen({ content, structured: { n: 1 } }) }));
  expect(sent).not.toContain("AAEC");
  expect(sent).not.toContain("AAAA");
  expect(sent).toContain("[3 bytes left out; the log has them]");
  expect(sent).toContain("note:1");
});

test("of many pictures the newest are shown", async () => {
  const many = Array.from({ length: 30 }, (_, i) => ({ ...screen, data: `iVBORw0KGgo${i}` }));
  const { messages } = await send("anthropic", { messages: seen({ content: many }) });
  const [result] = (messages?.at(-1)?.content ?? []) as readonly { readonly content: readonly Wire[] }[];
  expect(result?.content.slice(1).map(({ source }) => (source as Wire).data)).toEqual(
    many.slice(-20).map(({ data }) => data),
  );
});

test.each([
  ["text", "x".repeat(1_000_000), true],
  ["an object", { page: "x".repeat(1_000_000) }, true],
  ["an error", { message: "x".repeat(1_000_000) }, false],
  ["words beside a picture", { content: [{ type: "text", text: "x".repeat(1_000_000) }, screen] }, true],
])("of a result without end the model gets how it begins and ends: %s", async (_, output, ok) => {
  for (const kind of kinds) {
    const sent = JSON.stringify(await send(kind, { messages: seen(output, ok) })).replace(png, "");
    expect(sent.length).toBeLessThan(110_000);
    expect(sent).toMatch(/xxx.*\[… 9\d{5} bytes left out; the log has them …\].*xxx/);
  }
});

test("a call that Gemini signed goes back signed, and one beside it as it was", async () => {
  const calls = [
    { call_id: "call_1", tool: "web_fetch", args: "{}", signature: "c2lnbmVk" },
    { call_id: "call_2", tool: "web_fetch", args: "{}" },
  ];
  for (const partial of ["", "Well. "]) {
    fake.script(() => ({ kind: "answer", answer: { ...plainAnswer, text: "So:", calls, finish: "calls" } }));
    const heard = await hearAll(modelOf("local", fake.url).stream({ ...plainRequest, partial }, never));
    const carry: unknown = JSON.parse(JSON.stringify(heard.finished?.carry));
    const messages: readonly ChatMessage[] = [
      ...plainRequest.messages,
      { role: "assistant", content: partial + heard.text, calls: heard.calls, carry },
      ...heard.calls.map(
        ({ call_id, tool }): ChatMessage => ({ role: "tool", call_id, tool, ok: true, output: "page" }),
      ),
    ];
    const said = (await send("local", { messages })).messages?.[2];
    expect(said).toMatchObject({
      content: `${partial}So:`,
      tool_calls: [
        { id: "call_1", extra_content: { google: { thought_signature: "c2lnbmVk" } } },
        { id: "call_2" },
      ],
    });
    expect(JSON.stringify(said).match(/thought_signature/g)).toHaveLength(1);
  }
});

describe("the thoughts of a local model", () => {
  const calls = [{ call_id: "call_1", tool: "web_fetch", args: "{}" }];
  const called: FakeAnswer = { ...plainAnswer, reasoning: "Hm.", text: "So:", calls, finish: "calls" };

  /** What it is handed of an answer with a call, once the call has been made. */
  async function handedBack(turn: Turn, partial = ""): Promise<Wire | undefined> {
    fake.script(() => turn);
    const heard = await hearAll(modelOf("local", fake.url).stream({ ...plainRequest, partial }, never));
    const { carry } = JSON.parse(JSON.stringify(heard.finished)) as { readonly carry?: unknown };
    const messages: readonly ChatMessage[] = [
      ...plainRequest.messages,
      { role: "assistant", content: partial + heard.text, calls: heard.calls, carry },
      { role: "tool", call_id: "call_1", tool: "web.fetch", ok: true, output: "page" },
    ];
    return (await send("local", { messages })).messages?.[2];
  }
  const answered: Turn = { kind: "answer", answer: called };

  test("go back with the calls they led to", async () => {
    expect(await handedBack(answered)).toMatchObject({
      content: "So:",
      reasoning_content: "Hm.",
      tool_calls: [{ id: "call_1" }],
    });
  });

  test("go back also where the answer had been cut off before", async () => {
    expect(await handedBack(answered, "Well. ")).toMatchObject({
      content: "Well. So:",
      reasoning_content: "Hm.",
      tool_calls: [{ id: "call_1" }],
    });
  });

  test("do not go back to a server that spells them in another way", async () => {
    const body = chatWire.encode(called, "llama").replaceAll("reasoning_content", "reasoning");
    const headers = { "content-type": "text/event-stream" };
    const said = await handedBack({ kind: "refusal", status: 200, headers, body });
    expect(said).toMatchObject({ content: "So:", tool_calls: [{ id: "call_1" }] });
    expect(JSON.stringify(said)).not.toContain("Hm.");
  });
});
