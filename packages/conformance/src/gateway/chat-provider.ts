// The scripted model behind a provider's wire: OpenAI's chat completions, for servers that are processes of their own.

import { createServer } from "node:http";
import { text as textOf } from "node:stream/consumers";
import { loopback } from "../loopback.js";
import { type Line, lineFor, type Message } from "./scripted.js";

export interface ChatProvider {
  /** With `/v1`. */
  readonly url: string;
  close(): Promise<void>;
}

interface ChatMessage {
  readonly role: string;
  readonly content: unknown;
  readonly tool_call_id?: string;
}

interface ChatTool {
  readonly function: { readonly name: string };
}

export async function chatProvider(): Promise<ChatProvider> {
  const server = createServer(async (request, response) => {
    const body = JSON.parse(await textOf(request)) as {
      messages: readonly ChatMessage[];
      tools?: readonly ChatTool[];
    };
    const tools = (body.tools ?? []).map(({ function: { name } }) => ({ name }));
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    response.end(told(lineFor({ messages: body.messages.map(heard), tools })));
  });
  const { url, close } = await loopback(server);
  return { url: `${url}/v1`, close };
}

function heard({ role, content }: ChatMessage): Message {
  const words = Array.isArray(content)
    ? content.map((part: { text?: string }) => part.text ?? "").join("")
    : content;
  return role === "tool" ? { role, ok: true, output: parsed(String(words)) } : { role, content: words };
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    // A plain text is what it says.
    return json;
  }
}

/** Names have no dots on this wire. */
function told({ text = "", calls = [] }: Line): string {
  const head = { id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: "scripted" };
  const chunk = (delta: object, finish_reason: string | null = null): string =>
    `data: ${JSON.stringify({ ...head, choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
  return [
    chunk({ role: "assistant", content: text }),
    ...calls.map(({ tool, input }, index) => {
      const of = { name: tool.replaceAll(".", "_"), arguments: JSON.stringify(input) };
      return chunk({ tool_calls: [{ index, id: `call-${index}`, type: "function", function: of }] });
    }),
    chunk({}, calls.length > 0 ? "tool_calls" : "stop"),
    "data: [DONE]\n\n",
  ].join("");
}
