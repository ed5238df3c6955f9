// The test server behind HTTP, with sessions.

import { randomUUID } from "node:crypto";
import { createServer, type IncomingHttpHeaders } from "node:http";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { loopback } from "./loopback.js";
import { mcpTestServer } from "./mcp-server.js";

export interface McpHttp {
  readonly url: string;
  /** Of every request. */
  readonly headers: readonly IncomingHttpHeaders[];
  /** As a restart would. */
  forgetSessions(): void;
  sessionCount(): number;
  close(): Promise<void>;
}

export async function mcpHttp(): Promise<McpHttp> {
  const sessions = new Map<string, StreamableHTTPServerTransport>();
  const headers: IncomingHttpHeaders[] = [];
  const server = createServer(async (request, response) => {
    headers.push(request.headers);
    const known = request.headers["mcp-session-id"];
    let transport = typeof known === "string" ? sessions.get(known) : undefined;
    if (transport === undefined && known !== undefined) {
      response.writeHead(404).end();
      return;
    }
    if (transport === undefined) {
      const made = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (id) => void sessions.set(id, made),
        onsessionclosed: (id) => void sessions.delete(id),
      });
      await mcpTestServer().connect(made as Transport);
      transport = made;
    }
    await transport.handleRequest(request, response);
  });
  const { url, close } = await loopback(server);
  return {
    url: `${url}/mcp`,
    headers,
    forgetSessions: () => sessions.clear(),
    sessionCount: () => sessions.size,
    close,
  };
}
