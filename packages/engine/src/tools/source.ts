// Tools that come from elsewhere, and may not be there: an MCP server starts late, falls over, comes back. Runs do without
// them until then.

import type { AgentHost } from "@runwire/server";
import type { Tool } from "../tool.js";
import { toolLimits } from "./limits.js";
import type { McpServer, McpTools } from "./mcp.js";

export interface ToolSource {
  /** What the names of its tools begin with, up to the dot. */
  readonly name: string;
  /** Its tools. Rejects where they cannot be had now; to ask again is not to wait again for a while. */
  tools(): Promise<readonly Tool[]>;
  close(): Promise<void>;
}

export function mcpSource(
  server: McpServer,
  { monotonic }: Pick<AgentHost["clock"], "monotonic">,
  /** Hears of every try that failed. */
  failed: (server: string, error: unknown) => void,
  /** Names that its tools cannot have. */
  taken: ReadonlySet<string>,
): ToolSource {
  let opening: Promise<McpTools> | undefined;
  let againMs = 0;
  const closing = new AbortController();
  return {
    name: server.name,
    async tools() {
      if (opening === undefined || monotonic() >= againMs) {
        againMs = Number.POSITIVE_INFINITY;
        opening = openMcp(server, taken, closing.signal);
        opening.catch((error: unknown) => {
          againMs = monotonic() + toolLimits.mcpRetryMs;
          if (!closing.signal.aborted) failed(server.name, error);
        });
      }
      const opened = await opening;
      if (closing.signal.aborted) throw new Error(`the MCP server ${server.name} has been closed`);
      return opened.tools;
    },
    async close() {
      closing.abort();
      const opened = await opening?.catch(() => undefined);
      await opened?.close();
    },
  };
}

/** Most servers have none of them: what speaks to one is loaded for the first. */
export async function openMcp(
  server: McpServer,
  taken?: ReadonlySet<string>,
  signal?: AbortSignal,
): Promise<McpTools> {
  const { mcpTools } = await import("./mcp.js");
  return mcpTools([server], taken, signal);
}

/** All that can be had, and the names of the sources that cannot. */
export async function gathered(
  sources: readonly ToolSource[],
): Promise<{ readonly tools: readonly Tool[]; readonly missing: readonly string[] }> {
  const missing: string[] = [];
  const lists = await Promise.all(
    sources.map((source) =>
      source.tools().catch(() => {
        missing.push(source.name);
        return [];
      }),
    ),
  );
  return { tools: lists.flat(), missing };
}
