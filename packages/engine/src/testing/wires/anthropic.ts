// Anthropic Messages.

import { deltasOf, type FakeAnswer, type FakeWire, lastSaid, sse } from "./answer.js";

export const anthropicWire: FakeWire = {
  path: "/v1/messages",
  encode(answer, model) {
    const { input, cached, output, reasoning } = answer.usage;
    const usage = { input_tokens: input - cached, cache_read_input_tokens: cached, output_tokens: 1 };
    const message = {
      id: "msg_fake",
      type: "message",
      role: "assistant",
      model,
      content: [],
      stop_reason: null,
    };
    const parts = [
      say({ type: "message_start", message: { ...message, stop_sequence: null, usage } }),
      say({ type: "ping" }),
      ...blocksOf(answer).map((block, index) => block(index)),
    ];
    if (answer.error !== undefined) return [...parts, say({ type: "error", error: answer.error })].join("");
    const stop_reason = { stop: "end_turn", calls: "tool_use", length: "max_tokens" }[answer.finish];
    const output_tokens_details = { thinking_tokens: reasoning };
    return [
      ...parts,
      say({
        type: "message_delta",
        delta: { stop_reason, stop_sequence: null },
        usage: { output_tokens: output, output_tokens_details },
      }),
      say({ type: "message_stop" }),
    ].join("");
  },
  partialOf: (body) => lastSaid((body as { messages: [] }).messages),
};

type Block = (index: number) => string;

function blocksOf({ reasoning, text, calls, deltaChars }: FakeAnswer): readonly Block[] {
  const deltas = (whole: string) => deltasOf(whole, deltaChars);
  const thinking = deltas(reasoning).map((thinking) => ({ type: "thinking_delta", thinking }));
  const signature = { type: "signature_delta", signature: "c2lnbmVk" };
  return [
    ...(reasoning === ""
      ? []
      : [block({ type: "thinking", thinking: "", signature: "" }, [...thinking, signature])]),
    ...(text === ""
      ? []
      : [
          block(
            { type: "text", text: "" },
            deltas(text).map((text) => ({ type: "text_delta", text })),
          ),
        ]),
    ...calls.map(({ call_id: id, tool: name, args }) =>
      block(
        { type: "tool_use", id, name, input: {} },
        ["", ...deltas(args)].map((partial_json) => ({ type: "input_json_delta", partial_json })),
      ),
    ),
  ];
}

function block(content_block: object, deltas: readonly object[]): Block {
  return (index) =>
    [
      say({ type: "content_block_start", index, content_block }),
      ...deltas.map((delta) => say({ type: "content_block_delta", index, delta })),
      say({ type: "content_block_stop", index }),
    ].join("");
}

function say(data: { readonly type: string; readonly [member: string]: unknown }): string {
  return sse(data, data.type);
}
