// A connection to one MCP server that is made again when it is lost. It is lost when the server ends, when it no longer
// answers, or when a message cannot be sent to it; calls under way fail then, and the next one connects anew.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { getDefaultEnvironment, StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { toolLimits } from "./limits.js";
import { mcpFetch } from "./mcp-fetch.js";
import { systemPath } from "./process-group.js";
import { until } from "./until.js";

export type McpServer = McpCommand | McpUrl;

interface McpNamed {
  /** What its tools are called by: `<name>.<tool>`. */
  readonly name: string;
  /** How long one call may take. */
  readonly callMs?: number;
  /** How long it may take to start and to say what it is. */
  readonly connectMs?: number;
}

interface McpCommand extends McpNamed {
  readonly command: string;
  readonly args?: readonly string[];
  /** All of its environment, but for a PATH of the system's folders where none is given. */
  readonly env?: { readonly [name: string]: string };
  readonly cwd?: string;
}

interface McpUrl extends McpNamed {
  readonly url: string;
  readonly headers?: { readonly [name: string]: string };
}

export interface McpConnection {
  client(): Promise<Client>;
  /** To be told of anything that may mean the server is gone: it is asked, and left if it does not answer. */
  doubt(): Promise<void>;
  close(): Promise<void>;
}

interface Link {
  readonly client: Client;
  readonly transport: StdioClientTransport | StreamableHTTPClientTransport;
}

export function mcpConnection(server: McpServer): McpConnection {
  let linking: Promise<Link> | null = null;
  let isDoubted = false;
  const closing = new AbortController();

  function link(): Promise<Link> {
    if (closing.signal.aborted)
      return Promise.reject(new Error(`the MCP server ${server.name} has been closed`));
    if (linking !== null) return linking;
    const made = connect(server, closing.signal, {
      lost: () => forget(made),
      doubted: () => void connection.doubt(),
    });
    linking = made;
    made.catch(() => forget(made));
    return made;
  }

  function forget(made: Promise<Link>): void {
    if (linking === made) linking = null;
  }

  const connection: McpConnection = {
    client: async () => (await link()).client,
    async doubt() {
      const made = linking;
      if (made === null || isDoubted) return;
      isDoubted = true;
      try {
        const { client } = await made;
        await client.ping({ timeout: toolLimits.mcpPingMs }).catch(() => {
          forget(made);
          return client.close();
        });
      } catch {
        // It could not be connected to; whoever asked for that has been told.
      } finally {
        isDoubted = false;
      }
    },
    async close() {
      closing.abort();
      const last = await linking?.catch(() => null);
      if (last) await unlink(last);
    },
  };
  return connection;
}

async function connect(
  server: McpServer,
  closing: AbortSignal,
  on: { lost(): void; doubted(): void },
): Promise<Link> {
  // No capabilities: a server may neither ask our model nor our people.
  const client = new Client({ name: "runwire", version: "0.1.0" }, { capabilities: {} });
  client.onclose = on.lost;
  client.onerror = on.doubted;
  const transport = transportTo(server);
  const { connectMs = toolLimits.mcpConnectMs } = server;
  try {
    const connected = client.connect(transport as Transport, { timeout: connectMs });
    await until(AbortSignal.any([closing, AbortSignal.timeout(connectMs)]), connected);
  } catch (error) {
    await client.close();
    throw error;
  }
  return { client, transport };
}

function transportTo(server: McpServer): Link["transport"] {
  if ("url" in server) {
    const { url, headers = {}, connectMs = toolLimits.mcpConnectMs, callMs = toolLimits.mcpCallMs } = server;
    const transport = new StreamableHTTPClientTransport(new URL(url), {
      requestInit: { headers: { ...headers } },
      fetch: mcpFetch({
        answerMs: Math.max(connectMs, callMs),
        // As on stdio: whoever waits for an answer on this connection is told.
        tooLarge: () => void transport.close(),
      }),
    });
    return transport;
  }
  const { command, args = [], env = {}, cwd } = server;
  return new StdioClientTransport({
    command,
    args: [...args],
    env: { ...nothingInherited(), PATH: systemPath, ...env },
    stderr: "ignore",
    maxBufferSize: toolLimits.mcpMessageBytesMax,
    ...(cwd === undefined ? {} : { cwd }),
  });
}

/** The SDK adds some of our environment to what it is given. A name without a value is not passed on by Node. */
function nothingInherited(): { [name: string]: string } {
  const names = Object.keys(getDefaultEnvironment());
  return Object.fromEntries(names.map((name) => [name, undefined])) as unknown as { [name: string]: string };
}

async function unlink({ client, transport }: Link): Promise<void> {
  if ("terminateSession" in transport) {
    // A server that does not end its session now will do so by itself.
    await until(AbortSignal.timeout(toolLimits.mcpCloseMs), transport.terminateSession()).catch(() => {});
  }
  await client.close();
}
