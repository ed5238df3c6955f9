// An MCP server behind HTTP whose answers to calls do not end, each in a way of its own.

import { createServer, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { loopback } from "./loopback.js";

export interface McpEndless {
  readonly url: string;
  /** Answers to calls that are still being sent. */
  openCount(): number;
  /** How often a stream was asked for: to listen, or to go on with one that broke off. */
  streamCount(): number;
  /** How many pages of its list were asked for. */
  pageCount(): number;
  close(): Promise<void>;
}

const eventStream = { "content-type": "text/event-stream" };

const ways: { readonly [tool: string]: (response: ServerResponse) => void } = {
  json: (response) =>
    pour(response.writeHead(200, { "content-type": "application/json" }), "[".repeat(65_536)),
  event: (response) => pour(response.writeHead(200, eventStream), `data: ${"x".repeat(65_536)}\n`),
  line: (response) => pour(response.writeHead(200, eventStream), "x".repeat(65_536)),
  refusal: (response) => pour(response.writeHead(500), "x".repeat(65_536)),
  /** Many small ones, and more of them than one may be large. */
  events: (response) => pour(response.writeHead(200, eventStream), `: ${"x".repeat(65_536)}\r\n\r\n`),
  silence: (response) => void response.writeHead(200, eventStream).write(":\n\n"),
  /** Ends at once, and wants to be asked again at once. */
  again: (response) => void response.writeHead(200, eventStream).end("retry: 0\nid: 1\ndata:\n\n"),
};

/** Its list of tools comes at once, in more pages than anybody waits for, or never. */
export async function mcpEndless(list: "whole" | "pages" | "never" = "whole"): Promise<McpEndless> {
  let openCount = 0;
  let pageCount = 0;
  let streamCount = 0;
  const server = createServer(async (request, response) => {
    if (request.method === "GET") {
      streamCount++;
      ways.again?.(response);
      return;
    }
    const { id, method, params } = JSON.parse((await text(request)) || "{}");
    const answer = (result: object): void => {
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify({ jsonrpc: "2.0", id, result }));
    };
    switch (method) {
      case "initialize":
        answer({
          protocolVersion: params.protocolVersion,
          capabilities: { tools: {} },
          serverInfo: { name: "endless", version: "1" },
        });
        break;
      case "ping":
        answer({});
        break;
      case "tools/list":
        pageCount++;
        if (list === "whole") answer({ tools: Object.keys(ways).map(named) });
        if (list === "pages")
          setTimeout(answer, 20, { tools: [named(`tool${pageCount}`)], nextCursor: `${pageCount}` });
        break;
      case "tools/call":
        openCount++;
        response.once("close", () => openCount--);
        ways[params.name]?.(response);
        break;
      default:
        response.writeHead(202).end();
    }
  });
  const { url, close } = await loopback(server);
  return {
    url: `${url}/mcp`,
    openCount: () => openCount,
    streamCount: () => streamCount,
    pageCount: () => pageCount,
    close,
  };
}

function named(name: string): object {
  return { name, inputSchema: { type: "object" } };
}

function pour(response: ServerResponse, text: string): void {
  const piece = Buffer.from(text);
  const more = (): void => {
    while (!response.destroyed && response.write(piece));
  };
  response.on("drain", more);
  more();
}
