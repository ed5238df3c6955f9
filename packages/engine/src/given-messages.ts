import type { Facts } from "@runwire/protocol";
import type { Call, ChatMessage } from "./model.js";

/** The messages of a turn as they are handed on. A call without its result, or a result without its call, says nothing. */
export function givenMessages(given: unknown): readonly ChatMessage[] {
  if (!Array.isArray(given)) return [];
  const messages = given as readonly Facts[];
  const called = new Set(messages.flatMap((message) => callsIn(message).map(({ call_id }) => call_id)));
  const ended = new Set(messages.flatMap(({ role, call_id }) => (role === "tool" ? [call_id] : [])));
  return messages.flatMap((message): readonly ChatMessage[] => {
    if (message.role === "tool") {
      const { call_id, tool, ok, output } = message;
      if (typeof call_id !== "string" || !called.has(call_id)) return [];
      return [{ role: "tool", call_id, tool: String(tool), ok: ok !== false, output: output ?? null }];
    }
    const content =
      typeof message.content === "string" ? message.content : JSON.stringify(message.content ?? "");
    if (message.role !== "assistant") return [{ role: "user", content }];
    return [
      { role: "assistant", content, calls: callsIn(message).filter(({ call_id }) => ended.has(call_id)) },
    ];
  });
}

function callsIn({ role, calls }: Facts): readonly Call[] {
  if (role !== "assistant" || !Array.isArray(calls)) return [];
  return (calls as readonly Facts[]).flatMap(({ call_id, tool, input }) =>
    typeof call_id === "string" ? [{ call_id, tool: String(tool), input: input ?? null }] : [],
  );
}
