// The tools that need nobody else's program.

import type { Tool } from "../tool.js";
import { fileListTool } from "./file-list.js";
import { fileReadTool } from "./file-read.js";
import { fileWriteTool } from "./file-write.js";
import { shellTool } from "./shell.js";
import { type WebFetchOptions, webFetchTool } from "./web-fetch.js";

export interface BuiltInOptions {
  readonly web?: WebFetchOptions;
  /** Empty. There is no shell without it: a command may do whatever the user may that this process runs as. */
  readonly shell?: Readonly<Record<string, never>>;
}

export function builtInTools({ web, shell }: BuiltInOptions = {}): readonly Tool[] {
  const shells = shell === undefined ? [] : [shellTool()];
  return [fileListTool, fileReadTool, fileWriteTool, webFetchTool(web), ...shells];
}
