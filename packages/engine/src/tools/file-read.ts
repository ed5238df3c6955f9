import type { Tool } from "../tool.js";
import { ToolFailure } from "../tool.js";
import { checkedTool } from "./input.js";
import { toolLimits } from "./limits.js";
import { inFolder, namesOf, openFile, readWhole, toFailure, workspaceSandbox } from "./workspace.js";

interface Input {
  readonly path: string;
  readonly from?: number;
  readonly lines?: number;
}

export const fileReadTool: Tool = checkedTool<Input>({
  name: "file.read",
  description: "Read a text file of the workspace, or some lines of it. Lines count from 1.",
  effect: "read-only",
  sandbox: workspaceSandbox("read"),
  input_schema: {
    type: "object",
    required: ["path"],
    additionalProperties: false,
    properties: {
      path: { type: "string", minLength: 1, description: "relative to the workspace" },
      from: { type: "integer", minimum: 1, description: "the first line; 1 if not given" },
      lines: { type: "integer", minimum: 1, description: "how many lines; all if not given" },
    },
  },
  async run({ path, from = 1, lines }, { workspace, signal }) {
    signal.throwIfAborted();
    const names = namesOf(path);
    const name = names.at(-1);
    if (name === undefined) throw new ToolFailure("refused", "This is a folder.");
    try {
      const all = await inFolder(workspace, names.slice(0, -1), false, async (folder) => {
        const file = await openFile(folder, name);
        try {
          return linesOf(await readWhole(file));
        } finally {
          await file.close();
        }
      });
      return excerpt(all, from, lines ?? all.length);
    } catch (error) {
      throw toFailure(error);
    }
  },
});

/** Each with the line break that it ends in: put together, they are the file. */
function linesOf(bytes: Buffer): readonly string[] {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    return text === "" ? [] : text.split(/(?<=\n)/);
  } catch (error) {
    throw new ToolFailure("not-text", "This file is not UTF-8 text.", { cause: error });
  }
}

function excerpt(all: readonly string[], from: number, linesMax: number): unknown {
  const asked = all.slice(from - 1, from - 1 + linesMax);
  let bytes = 0;
  const tooMany = asked.findIndex((line) => {
    bytes += Buffer.byteLength(line);
    return bytes > toolLimits.readBytesMax;
  });
  if (tooMany === 0) {
    throw new ToolFailure("too-large", `Line ${from} is longer than ${toolLimits.readBytesMax} bytes.`);
  }
  const given = tooMany === -1 ? asked : asked.slice(0, tooMany);
  return {
    content: given.join(""),
    from,
    lines: given.length,
    lines_total: all.length,
    truncated: tooMany !== -1,
  };
}
