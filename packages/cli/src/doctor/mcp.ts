// MCP servers: each can be reached, and gives tools.

import type { McpServer } from "@runwire/engine";
import { messageOf } from "@runwire/protocol";
import { type Check, doubtful, type Finding, right } from "./finding.js";

export const mcp: Check = ({ settings }) => Promise.all(settings.mcp.map(look));

async function look(server: McpServer): Promise<Finding> {
  try {
    const { openMcp } = await import("@runwire/engine");
    const { tools, close } = await openMcp(server);
    await close();
    return right("mcp", `${server.name} gives ${tools.length === 1 ? "one tool" : `${tools.length} tools`}`);
  } catch (error) {
    const todo = "mend it, or take it out of the settings; until then runs go on without its tools";
    return doubtful("mcp", messageOf(error), todo);
  }
}
