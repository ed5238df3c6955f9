// An MCP server with tools of every temper.

import { writeFileSync } from "node:fs";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import {
  CallToolRequestSchema,
  type CallToolResult,
  ErrorCode,
  ListToolsRequestSchema,
  McpError,
} from "@modelcontextprotocol/sdk/types.js";

type Handler = (
  input: { readonly [name: string]: unknown },
  signal: AbortSignal,
) => CallToolResult | Promise<CallToolResult>;

const text = (said: string): CallToolResult => ({ content: [{ type: "text", text: said }] });

const handlers: { readonly [name: string]: Handler } = {
  echo: (input) => text(JSON.stringify(input)),
  add: ({ a, b }) => {
    const structuredContent = { sum: Number(a) + Number(b) };
    return { content: [{ type: "text", text: JSON.stringify(structuredContent) }], structuredContent };
  },
  environment: () => text(JSON.stringify(process.env)),
  pid: () => text(`${process.pid}`),
  picture: () => ({
    content: [
      { type: "image", data: "AAEC", mimeType: "image/png" },
      { type: "audio", data: "AAEC", mimeType: "audio/wav" },
      { type: "resource", resource: { uri: "note:1", text: "a note", mimeType: "text/plain" } },
      { type: "resource", resource: { uri: "note:2", blob: "AAEC" } },
      { type: "resource_link", uri: "note:3", name: "another" },
    ],
  }),
  refuse: () => ({ ...text("there is no such city"), isError: true }),
  misuse: () => {
    throw new McpError(ErrorCode.InvalidParams, "city is missing");
  },
  break: () => {
    throw new Error("broken inside");
  },
  deep: ({ levels }) => {
    let inside: unknown = "x";
    for (let i = 0; i < Number(levels); i++) inside = [inside];
    return { content: [], structuredContent: { inside } };
  },
  large: ({ chars }) => text("x".repeat(Number(chars))),
  /** Answers when it is cancelled only, and leaves a note that it was. */
  wait: ({ note }, signal) =>
    new Promise((resolve) => {
      writeFileSync(`${note}.begun`, "");
      signal.addEventListener("abort", () => {
        writeFileSync(`${note}.cancelled`, "");
        resolve(text("late"));
      });
    }),
  die: () => process.exit(1),
  hang: () => {
    for (;;);
  },
};

const readOnly = new Set(["echo", "add"]);

export function mcpTestServer(names = Object.keys(handlers)): Server {
  const server = new Server({ name: "test", version: "1.0.0" }, { capabilities: { tools: {} } });
  server.setRequestHandler(ListToolsRequestSchema, ({ params }) => {
    // In two pages.
    const isFirst = params?.cursor === undefined;
    const listed = isFirst ? names.slice(0, 3) : names.slice(3);
    const tools = listed.map((name) => ({
      name,
      description: `does ${name}`,
      // No validator would take this pattern: schemas are the server's own business.
      inputSchema: { type: "object" as const, properties: { odd: { type: "string", pattern: "(" } } },
      outputSchema: { type: "object" as const, $ref: "https://example.com/unknown.json" },
      ...(readOnly.has(name) ? { annotations: { readOnlyHint: true } } : {}),
      ...(name === "die" ? { annotations: { readOnlyHint: false, destructiveHint: false } } : {}),
    }));
    return isFirst ? { tools, nextCursor: "2" } : { tools };
  });
  server.setRequestHandler(CallToolRequestSchema, async ({ params }, { signal }) => {
    const handler = handlers[params.name];
    if (handler === undefined) throw new McpError(ErrorCode.MethodNotFound, "no such tool");
    return handler(params.arguments ?? {}, signal);
  });
  return server;
}
