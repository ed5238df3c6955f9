// Tools of MCP servers. A server is somebody else's program: its schemas are passed on and never compiled here, its
// answers are bounded, and what our own check leaves open of its inputs it checks itself. Whether a tool only reads is what the server says of it.

import type { CallToolResult, ContentBlock, Tool as McpTool } from "@modelcontextprotocol/sdk/types.js";
import {
  CallToolResultSchema,
  ErrorCode,
  ListToolsResultSchema,
  McpError,
} from "@modelcontextprotocol/sdk/types.js";
import { messageOf } from "@runwire/protocol";
import { type Tool, ToolFailure } from "../tool.js";
import { unfitForLog } from "../unfit.js";
import { checkForeign } from "./foreign-input.js";
import { inputCheck } from "./input.js";
import { toolLimits } from "./limits.js";
import { type McpConnection, type McpServer, mcpConnection } from "./mcp-connection.js";
import { until } from "./until.js";

export type { McpServer } from "./mcp-connection.js";

export interface McpTools {
  readonly tools: readonly Tool[];
  close(): Promise<void>;
}

/**
 * Connects to all of them. Throws, with none left running, when one cannot be connected to or names its tools badly: twice
 * the same, or like one that there is; and when the signal aborts meanwhile.
 */
export async function mcpTools(
  servers: readonly McpServer[],
  taken: ReadonlySet<string> = new Set(),
  signal: AbortSignal = new AbortController().signal,
): Promise<McpTools> {
  const connections = servers.map((server) => ({ server, connection: mcpConnection(server) }));
  const close = async (): Promise<void> => {
    await Promise.allSettled(connections.map(({ connection }) => connection.close()));
  };
  try {
    const listing = connections.map(({ server, connection }) => toolsOf(server, connection, taken));
    const lists = await until(signal, Promise.all(listing));
    return { tools: lists.flat(), close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function toolsOf(
  server: McpServer,
  connection: McpConnection,
  taken: ReadonlySet<string>,
): Promise<readonly Tool[]> {
  if (!/^[a-z0-9][a-z0-9_-]{0,31}$/.test(server.name))
    throw new Error(`an MCP server cannot be named ${server.name}`);
  try {
    const listed = await list(connection, server.connectMs ?? toolLimits.mcpConnectMs);
    const version = (await connection.client()).getServerVersion()?.version;
    const tools = listed.map((tool) => toolFrom(server, version, tool, connection));
    const names = new Set(taken);
    for (const { name } of tools) {
      if (names.has(name)) throw new Error(`there would be two tools named ${name}`);
      names.add(name);
    }
    return tools;
  } catch (cause) {
    throw new Error(`the MCP server ${server.name} gives no tools: ${whyNot(cause, server)}`, { cause });
  }
}

/** For operators, in logs: without what the settings say of the way there, which may hold a key. */
function whyNot(error: unknown, server: McpServer): string {
  return cut(secretsOf(server).reduce((text, value) => text.replaceAll(value, "…"), messageOf(error)));
}

/** Each value and each word of it, the longest first: who refuses `Bearer <key>` may well name the key alone. */
function secretsOf(server: McpServer): readonly string[] {
  const values =
    "url" in server
      ? [...partsOf(server.url), ...Object.values(server.headers ?? {})]
      : [...(server.args ?? []), ...Object.values(server.env ?? {})];
  const words = values.flatMap((value) => [value, ...value.split(/\s+/)]);
  return words
    .filter(({ length }) => length >= toolLimits.mcpSecretCharsMin)
    .sort((a, b) => b.length - a.length);
}

function partsOf(url: string): readonly string[] {
  const { href, pathname, searchParams } = new URL(url);
  return [url, href, ...pathname.split("/"), ...searchParams.values()];
}

/** However many pages there are, they have this time together. */
async function list(connection: McpConnection, listMs: number): Promise<readonly McpTool[]> {
  const client = await connection.client();
  const lastMs = performance.now() + listMs;
  const all: McpTool[] = [];
  let cursor: string | undefined;
  do {
    const params = cursor === undefined ? {} : { cursor };
    // Not `listTools`, which compiles the schemas that it is given.
    const page = await client.request({ method: "tools/list", params }, ListToolsResultSchema, {
      timeout: Math.max(0, lastMs - performance.now()),
    });
    all.push(...page.tools);
    // A page without tools is the last one, so that this ends.
    cursor = page.tools.length === 0 ? undefined : page.nextCursor;
    if (all.length > toolLimits.mcpToolsMax)
      throw new Error(`it has more than ${toolLimits.mcpToolsMax} tools`);
  } while (cursor !== undefined);
  return all;
}

const versionCharsMax = 64;
const checkObject = inputCheck<{ [name: string]: unknown }>({ type: "object" });

function toolFrom(
  server: McpServer,
  version: string | undefined,
  tool: McpTool,
  connection: McpConnection,
): Tool {
  if (!/^[\w./-]{1,128}$/.test(tool.name)) throw new Error("a tool has a name that cannot be used");
  if (JSON.stringify(tool.inputSchema).length > toolLimits.mcpSchemaCharsMax) {
    throw new Error(`the schema of ${tool.name} is too large`);
  }
  const check = (input: unknown): { [name: string]: unknown } => {
    const fit = checkObject(input);
    checkForeign(tool.inputSchema, fit);
    return fit;
  };
  return {
    name: `${server.name}.${tool.name}`,
    description: (tool.description ?? "").slice(0, toolLimits.mcpDescriptionCharsMax),
    effect: tool.annotations?.readOnlyHint === true ? "read-only" : "destructive",
    input_schema: tool.inputSchema,
    ...(version === undefined ? {} : { skill_id: `${server.name}@${version.slice(0, versionCharsMax)}` }),
    check,
    async run(input, { signal }) {
      signal.throwIfAborted();
      const params = { name: tool.name, arguments: check(input) };
      try {
        const client = await until(signal, connection.client());
        const timeout = server.callMs ?? toolLimits.mcpCallMs;
        // Aborting tells the server, too.
        const result = await client.request({ method: "tools/call", params }, CallToolResultSchema, {
          signal,
          timeout,
        });
        return outputOf(result);
      } catch (error) {
        signal.throwIfAborted();
        if (error instanceof ToolFailure) throw error;
        // What the server itself has answered is no reason to doubt that it is there.
        const code = error instanceof McpError ? error.code : ErrorCode.ConnectionClosed;
        const kind = kinds.get(code) ?? "failed";
        if (kinds.has(code) && kind !== "invalid-input") void connection.doubt();
        throw new ToolFailure(kind, cut(answerOf(error, server)), { cause: error });
      }
    },
  };
}

const kinds = new Map<number, string>([
  [ErrorCode.ConnectionClosed, "unreachable"],
  [ErrorCode.RequestTimeout, "timeout"],
  [ErrorCode.InvalidParams, "invalid-input"],
]);

function answerOf(error: unknown, { name }: McpServer): string {
  if (error instanceof McpError) return `${name}: ${error.message}`;
  // What a failed connection says may hold its address, and that a key.
  return `The MCP server ${name} cannot be reached, or answers in a way that cannot be read.`;
}

function outputOf({ content, structuredContent, isError }: CallToolResult): unknown {
  const texts = content.flatMap((block) => (block.type === "text" ? [block.text] : []));
  if (isError === true) throw new ToolFailure("failed", cut(texts.join("\n") || "The tool failed."));
  const structured = structuredContent === undefined ? {} : { structured: structuredContent };
  const output = { content: content.map(blockOf), ...structured };
  const unfit = unfitForLog(output);
  if (unfit !== undefined) throw new ToolFailure("too-large", `The result ${unfit}.`);
  if (JSON.stringify(output).length > toolLimits.mcpResultCharsMax) {
    throw new ToolFailure(
      "too-large",
      `The result is larger than ${toolLimits.mcpResultCharsMax} characters.`,
    );
  }
  return output;
}

function blockOf(block: ContentBlock): unknown {
  switch (block.type) {
    case "text":
      return { type: "text", text: block.text };
    case "image":
    case "audio":
      return { type: block.type, mime_type: block.mimeType, data: block.data };
    case "resource_link":
      return { type: "resource_link", uri: block.uri, name: block.name };
    case "resource": {
      const { uri, mimeType: mime_type } = block.resource;
      const inside = "text" in block.resource ? { text: block.resource.text } : { data: block.resource.blob };
      return { type: "resource", uri, ...(mime_type === undefined ? {} : { mime_type }), ...inside };
    }
  }
}

function cut(text: string): string {
  return text.slice(0, toolLimits.mcpErrorCharsMax);
}
