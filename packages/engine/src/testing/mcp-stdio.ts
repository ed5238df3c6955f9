// The test server as a program.

import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { mcpTestServer } from "./mcp-server.js";

switch (process.argv[2]) {
  case "silent":
    process.stdin.resume();
    break;
  case "twice":
    await mcpTestServer(["echo", "pid", "echo"]).connect(new StdioServerTransport());
    break;
  case "noisy":
    process.stdout.write("this is not JSON\n{}\n");
    await mcpTestServer().connect(new StdioServerTransport());
    break;
  default:
    await mcpTestServer().connect(new StdioServerTransport());
}
