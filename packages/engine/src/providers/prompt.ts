// A request in the words of the AI SDK.

import type {
  LanguageModelV3CallOptions,
  LanguageModelV3FunctionTool,
  LanguageModelV3Message,
  LanguageModelV3ToolResultPart,
} from "@ai-sdk/provider";
import { isObject } from "@runwire/protocol";
import type { Call, ChatMessage, ModelRequest } from "../model.js";
import { withStep } from "../plan-steps.js";
import { withCarry } from "./carry.js";
import { picturesIn, resultFor } from "./result.js";
import { type WireNames, wireNames } from "./wire-names.js";

export interface Prompt {
  readonly options: Pick<LanguageModelV3CallOptions, "prompt" | "tools">;
  readonly toolNames: WireNames;
}

/** For those who take no prefill. */
const goOn =
  "Your answer above was cut off by a fault on the line. Go on exactly where it broke off, in the middle of the " +
  "sentence or word if need be. Write only what follows: repeat nothing, announce nothing, apologise for nothing.";

/** After a plan, or in a fork that asks nothing more: what ends with its own words a model takes for a prefill, or refuses. */
const proceed = "Go on.";

export function promptFor(request: ModelRequest, takesPrefill: boolean, takesPictures: boolean): Prompt {
  const { system, messages, tools, partial } = request;
  const toolNames = wireNames([...tools.map(({ name }) => name), ...messages.flatMap(toolsIn)]);
  const callNames = wireNames(messages.flatMap(callsIn));
  const pictures = picturesIn(takesPictures ? messages : []);
  const prompt: LanguageModelV3Message[] = [];
  if (system !== "") prompt.push({ role: "system", content: system });
  for (const message of messages) prompt.push(...messageFor(message, toolNames, callNames, pictures));
  if (prompt.at(-1)?.role === "assistant") prompt.push(userText(proceed));
  // An answer that is nothing but blanks is no beginning, and providers refuse it.
  if (partial.trim() !== "") {
    prompt.push({ role: "assistant", content: [{ type: "text", text: partial }] });
    if (!takesPrefill) prompt.push(userText(goOn));
  }
  const functions = tools.map(
    ({ name, description, input_schema }): LanguageModelV3FunctionTool => ({
      type: "function",
      name: toolNames.out(name),
      description,
      inputSchema: input_schema,
    }),
  );
  return { options: { prompt, ...(functions.length === 0 ? {} : { tools: functions }) }, toolNames };
}

function userText(text: string): LanguageModelV3Message {
  return { role: "user", content: [{ type: "text", text }] };
}

function messageFor(
  message: ChatMessage,
  toolNames: WireNames,
  callNames: WireNames,
  pictures: ReadonlySet<unknown>,
): readonly LanguageModelV3Message[] {
  switch (message.role) {
    case "user":
      // Providers refuse texts without a word.
      return message.content.trim() === "" ? [] : [userText(message.content)];
    case "assistant": {
      const { content, calls, carry } = message;
      const partOf = (call: Call) => ({
        type: "tool-call" as const,
        toolCallId: callNames.out(call.call_id),
        toolName: toolNames.out(call.tool),
        // Providers take nothing but an object.
        input: isObject(call.input) ? withStep(call) : { unreadable: call.input },
      });
      const plain = [
        ...(content.trim() === "" ? [] : [{ type: "text" as const, text: content }]),
        ...calls.map(partOf),
      ];
      const parts = withCarry(carry, content, calls, partOf) ?? plain;
      return parts.length === 0 ? [] : [{ role: "assistant", content: parts }];
    }
    case "tool": {
      const { call_id, tool } = message;
      const result: LanguageModelV3ToolResultPart = {
        type: "tool-result",
        toolCallId: callNames.out(call_id),
        toolName: toolNames.out(tool),
        output: resultFor(message, pictures),
      };
      return [{ role: "tool", content: [result] }];
    }
  }
}

function toolsIn(message: ChatMessage): readonly string[] {
  if (message.role === "assistant") return message.calls.map(({ tool }) => tool);
  return message.role === "tool" ? [message.tool] : [];
}

function callsIn(message: ChatMessage): readonly string[] {
  if (message.role === "assistant") return message.calls.map(({ call_id }) => call_id);
  return message.role === "tool" ? [message.call_id] : [];
}
