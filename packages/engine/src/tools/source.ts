// Tools that come from elsewhere, and may not be there: an MCP server starts late, falls over, comes back. Runs do without
// them until then.

import type { AgentHost } from "@runwire/server";
import type { Tool } from "../tool.js";
import { toolLimits } from "./limits.js";
import type { McpServer, McpTools } from "./mcp.js";

export interface ToolSource {
  /** What the names of its tools begin with, up to the dot. */
  readonly name: string;
  /** Its tools. Rejects where they cannot be had now; who asks again does not wait again. */
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
  /** The try that is answered with: the last that is over, or the first. */
  let known: Promise<McpTools> | undefined;
  /** The one that was begun last. */
  let trying: Promise<McpTools> | undefined;
  let againMs = 0;
  const closing = new AbortController();

  /** Until a later try is over, the failure of the one before it is answered. */
  function tryNow(): Promise<McpTools> {
    againMs = Number.POSITIVE_INFINITY;
    const opening = openMcp(server, taken, closing.signal);
    trying = opening;
    const over = (): void => {
      known = opening;
    };
    opening.then(over, (error: unknown) => {
      over();
      againMs = monotonic() + toolLimits.mcpRetryMs;
      if (!closing.signal.aborted) failed(server.name, error);
    });
    return opening;
  }

  return {
    name: server.name,
    async tools() {
      if (known === undefined) known = tryNow();
      else if (monotonic() >= againMs) await overOrLate(tryNow());
      const opened = await known;
      if (closing.signal.aborted) throw new Error(`the MCP server ${server.name} has been closed`);
      return opened.tools;
    },
    async close() {
      closing.abort();
      const opened = await trying?.catch(() => undefined);
      await opened?.close();
    },
  };
}

/** One that is back has its tools soon, for whoever begins the try as well; one that hangs keeps nobody for long. */
function overOrLate(opening: Promise<unknown>): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, toolLimits.mcpAgainMsMax);
    const over = (): void => {
      clearTimeout(timer);
      resolve();
    };
    opening.then(over, over);
  });
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

export interface Gathered {
  readonly tools: readonly Tool[];
  /** The names of the sources whose tools cannot be had. */
  readonly missing: readonly string[];
}

/** All that can be had. */
export async function gathered(sources: readonly ToolSource[]): Promise<Gathered> {
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

/** What of two is known: a source that was there once stays, whichever was asked for first. */
export function moreOf(had: Gathered, now: Gathered): Gathered {
  return now.missing.every((name) => had.missing.includes(name)) ? now : had;
}
