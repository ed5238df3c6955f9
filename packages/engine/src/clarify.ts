// The tool by which the agent asks a person a question.

import { answerTo } from "./asks.js";
import type { CallWork } from "./call-work.js";
import type { Loop } from "./loop.js";
import { type Tool, ToolFailure } from "./tool.js";
import { checkedTool } from "./tools/input.js";

interface Question {
  readonly question: string;
  readonly choices?: readonly string[];
}

export const clarifyTool: Tool = checkedTool<Question>({
  name: "clarify",
  description: "Ask the person one question, where going on without the answer would be a guess.",
  effect: "read-only",
  input_schema: {
    type: "object",
    required: ["question"],
    additionalProperties: false,
    properties: {
      question: { type: "string", minLength: 1 },
      choices: { type: "array", items: { type: "string" }, maxItems: 10 },
    },
  },
  run() {
    throw new ToolFailure("failed", "clarify is asked by the agent itself");
  },
});

/** The answer; where none came in time, that the agent should use its own judgement. */
export async function clarify(loop: Loop, call: CallWork, signal: AbortSignal): Promise<unknown> {
  clarifyTool.check?.(call.input);
  const { question, choices = [] } = call.input as Question;
  const { call_id } = call;
  const resolved = await answerTo(loop, call, "question", signal, (clarify_id, expires_at) =>
    loop.log.write({
      type: "clarify.requested",
      payload: { clarify_id, call_id, question, choices, expires_at },
    }),
  );
  // Not answered, but no longer asked by this loop: the next one, if there is one, waits on.
  signal.throwIfAborted();
  if (resolved.outcome === "answered") return { answer: resolved.answer };
  return { answer: null, note: "Nobody answered in time. Use your best judgement." };
}
