// The smallest MCP server that can be reached by an address: it answers each request by itself, and has one tool.

import { createServer } from "node:http";
import { text as textOf } from "node:stream/consumers";
import type { Facts } from "@runwire/protocol";
import { loopback } from "../loopback.js";

export interface McpHttp {
  readonly url: string;
  close(): Promise<void>;
}

/** Its tool tells the header `Authorization` that a call came with. */
export async function mcpHttp(): Promise<McpHttp> {
  const server = createServer(async (request, response) => {
    const body = await textOf(request);
    if (request.method !== "POST") return response.writeHead(405).end();
    const { id, method, params } = JSON.parse(body) as { id?: number; method: string; params?: Facts };
    if (id === undefined) return response.writeHead(202).end();
    const result = results(request.headers.authorization ?? "none")[method]?.(params ?? {});
    const answer = result === undefined ? { error: { code: -32601, message: "no such method" } } : { result };
    response.writeHead(200, { "Content-Type": "application/json" });
    return response.end(JSON.stringify({ jsonrpc: "2.0", id, ...answer }));
  });
  const { url, close } = await loopback(server);
  return { url: `${url}/mcp`, close };
}

const results = (authorization: string): { readonly [method: string]: (params: Facts) => object } => ({
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: "remote", version: "2.1.0" },
  }),
  ping: () => ({}),
  "tools/list": () => ({
    tools: [{ name: "whoami", inputSchema: { type: "object" }, annotations: { readOnlyHint: true } }],
  }),
  "tools/call": () => ({ content: [{ type: "text", text: `you are ${authorization}` }] }),
});
