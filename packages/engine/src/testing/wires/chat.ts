// OpenAI chat completions, as OpenAI and everything compatible with it speak them.

import { deltasOf, type FakeWire, lastSaid, sse } from "./answer.js";

export const chatWire: FakeWire = {
  path: "/v1/chat/completions",
  encode({ reasoning, text, calls, finish, usage, error, deltaChars }, model) {
    const head = {
      id: "chatcmpl-fake",
      object: "chat.completion.chunk",
      created: 1_700_000_000,
      model,
      system_fingerprint: "fp_fake",
    };
    const say = (delta: object, finish_reason: string | null = null): string =>
      sse({ ...head, choices: [{ index: 0, delta, finish_reason }] });
    const parts = [
      say({ role: "assistant", content: "" }),
      ...deltasOf(reasoning, deltaChars).map((reasoning_content) => say({ reasoning_content })),
      ...deltasOf(text, deltaChars).map((content) => say({ content })),
      ...calls.flatMap(({ call_id: id, tool: name, args, signature: thought_signature }, index) => [
        say({
          tool_calls: [
            {
              ...{ index, id, type: "function", function: { name, arguments: "" } },
              ...(thought_signature === undefined
                ? {}
                : { extra_content: { google: { thought_signature } } }),
            },
          ],
        }),
        ...deltasOf(args, deltaChars).map((piece) =>
          say({ tool_calls: [{ index, function: { arguments: piece } }] }),
        ),
      ]),
    ];
    if (error !== undefined) return [...parts, sse({ error: { ...error, code: error.type } })].join("");
    const finish_reason = { stop: "stop", calls: "tool_calls", length: "length" }[finish];
    return [
      ...parts,
      say({}, finish_reason),
      sse({
        ...head,
        choices: [],
        usage: {
          prompt_tokens: usage.input,
          completion_tokens: usage.output,
          total_tokens: usage.input + usage.output,
          prompt_tokens_details: { cached_tokens: usage.cached },
          completion_tokens_details: { reasoning_tokens: usage.reasoning },
        },
      }),
      sse("[DONE]"),
    ].join("");
  },
  partialOf: (body) => lastSaid((body as { messages: [] }).messages),
};
