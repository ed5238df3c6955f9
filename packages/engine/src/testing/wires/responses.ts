// OpenAI Responses.

import { deltasOf, type FakeAnswer, type FakeWire, lastSaid, sse } from "./answer.js";

export const responsesWire: FakeWire = {
  path: "/v1/responses",
  encode(answer, model) {
    let sequence_number = 0;
    const say = (type: string, rest: object): string => {
      sequence_number += 1;
      return sse({ type, sequence_number, ...rest }, type);
    };
    const { usage, error, finish } = answer;
    const response = {
      id: "resp_fake",
      object: "response",
      created_at: 1_700_000_000,
      model,
      status: "in_progress",
    };
    const parts = [
      say("response.created", { response }),
      say("response.in_progress", { response }),
      ...itemsOf(answer, say),
    ];
    if (error !== undefined) {
      const { type, message } = error;
      const failed = { ...response, status: "failed", error: { code: type, message } };
      return [...parts, say("response.failed", { response: failed })].join("");
    }
    const counted = {
      input_tokens: usage.input,
      input_tokens_details: { cached_tokens: usage.cached },
      output_tokens: usage.output,
      output_tokens_details: { reasoning_tokens: usage.reasoning },
      total_tokens: usage.input + usage.output,
    };
    const end =
      finish === "length"
        ? {
            type: "response.incomplete",
            status: "incomplete",
            incomplete_details: { reason: "max_output_tokens" },
          }
        : { type: "response.completed", status: "completed", incomplete_details: null };
    const { type, ...ended } = end;
    return [...parts, say(type, { response: { ...response, ...ended, usage: counted } })].join("");
  },
  partialOf: (body) => lastSaid((body as { input: [] }).input),
};

type Say = (type: string, rest: object) => string;

function itemsOf({ reasoning, text, calls, deltaChars }: FakeAnswer, say: Say): readonly string[] {
  const items = [
    ...(reasoning === "" ? [] : [thought(reasoning, deltaChars)]),
    ...(text === "" ? [] : [message(text, deltaChars)]),
    ...calls.map((call) => functionCall(call, deltaChars)),
  ];
  return items.flatMap((item, output_index) => item(output_index, say));
}

type Item = (output_index: number, say: Say) => readonly string[];

function thought(text: string, deltaChars: number): Item {
  const item_id = "rs_fake";
  const item = { id: item_id, type: "reasoning", encrypted_content: "ZW5jcnlwdGVk" };
  const summary = [{ type: "summary_text", text }];
  return (output_index, say) => [
    say("response.output_item.added", { output_index, item: { ...item, summary: [] } }),
    say("response.reasoning_summary_part.added", {
      output_index,
      item_id,
      summary_index: 0,
      part: summary[0],
    }),
    ...deltasOf(text, deltaChars).map((delta) =>
      say("response.reasoning_summary_text.delta", { output_index, item_id, summary_index: 0, delta }),
    ),
    say("response.reasoning_summary_part.done", {
      output_index,
      item_id,
      summary_index: 0,
      part: summary[0],
    }),
    say("response.output_item.done", { output_index, item: { ...item, summary } }),
  ];
}

function message(text: string, deltaChars: number): Item {
  const item_id = "msg_fake";
  const item = { id: item_id, type: "message", role: "assistant" };
  const place = { item_id, content_index: 0 };
  const content = [{ type: "output_text", text, annotations: [] }];
  return (output_index, say) => [
    say("response.output_item.added", {
      output_index,
      item: { ...item, status: "in_progress", content: [] },
    }),
    ...deltasOf(text, deltaChars).map((delta) =>
      say("response.output_text.delta", { output_index, ...place, delta, logprobs: [] }),
    ),
    say("response.output_text.done", { output_index, ...place, text, logprobs: [] }),
    say("response.output_item.done", { output_index, item: { ...item, status: "completed", content } }),
  ];
}

function functionCall({ call_id, tool: name, args }: FakeAnswer["calls"][number], deltaChars: number): Item {
  const id = `fc_${call_id}`;
  const item = { id, type: "function_call", call_id, name };
  return (output_index, say) => [
    say("response.output_item.added", {
      output_index,
      item: { ...item, status: "in_progress", arguments: "" },
    }),
    ...deltasOf(args, deltaChars).map((delta) =>
      say("response.function_call_arguments.delta", { output_index, item_id: id, delta }),
    ),
    say("response.function_call_arguments.done", { output_index, item_id: id, arguments: args }),
    say("response.output_item.done", {
      output_index,
      item: { ...item, status: "completed", arguments: args },
    }),
  ];
}
