import type { Tool } from "../tool.js";
import { checkedTool } from "./input.js";
import { toolLimits } from "./limits.js";
import { type Entry, entriesOf, inFolder, namesOf, toFailure, workspaceSandbox } from "./workspace.js";

interface Input {
  readonly path?: string;
  readonly depth?: number;
}

export const fileListTool: Tool = checkedTool<Input>({
  name: "file.list",
  description:
    "List the files and folders of the workspace, or of a folder in it. Links are named, not followed.",
  effect: "read-only",
  sandbox: workspaceSandbox("read"),
  input_schema: {
    type: "object",
    additionalProperties: false,
    properties: {
      path: { type: "string", description: "relative to the workspace; all of it if not given" },
      depth: { type: "integer", minimum: 1, maximum: toolLimits.pathNamesMax, description: "1 if not given" },
    },
  },
  async run({ path = "", depth = 1 }, { workspace, signal }) {
    const names = namesOf(path);
    const entries: Entry[] = [];
    let truncated = false;
    try {
      await inFolder(workspace, names, false, async (folder) => {
        for await (const entry of entriesOf(folder, depth)) {
          signal.throwIfAborted();
          truncated = entries.length === toolLimits.listEntriesMax;
          if (truncated) return;
          entries.push(entry);
        }
      });
    } catch (error) {
      throw toFailure(error);
    }
    entries.sort((a, b) => (a.path < b.path ? -1 : 1));
    return { entries, truncated };
  },
});
