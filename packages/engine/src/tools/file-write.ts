// A file is written beside its place and then moved there: whoever reads it meanwhile sees the old one or the new one,
// and a link or another name of the old one is replaced, never written through.

import { randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { type FileHandle, lstat, open, rename, unlink } from "node:fs/promises";
import { nullIfMissing } from "../missing.js";
import type { Tool } from "../tool.js";
import { ToolFailure } from "../tool.js";
import { checkedTool } from "./input.js";
import { toolLimits } from "./limits.js";
import { inTurn } from "./turns.js";
import {
  at,
  entriesOf,
  inFolder,
  namesOf,
  openFile,
  readWhole,
  toFailure,
  workspaceSandbox,
} from "./workspace.js";

const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;

interface Input {
  readonly path: string;
  readonly content: string;
  readonly append?: boolean;
}

export const fileWriteTool: Tool = checkedTool<Input>({
  name: "file.write",
  description:
    "Write a text file of the workspace, with the folders it is in. It replaces what is there, or adds to it.",
  effect: "destructive",
  sandbox: workspaceSandbox("write"),
  input_schema: {
    type: "object",
    required: ["path", "content"],
    additionalProperties: false,
    properties: {
      path: { type: "string", minLength: 1, description: "relative to the workspace" },
      content: { type: "string" },
      append: { type: "boolean", description: "add to the end of the file that is there" },
    },
  },
  async run({ path, content, append = false }, { workspace, signal }) {
    const names = namesOf(path);
    const name = names.at(-1);
    if (name === undefined || path.endsWith("/")) throw new ToolFailure("refused", "This is a folder.");
    const added = Buffer.from(content);
    if (added.length > toolLimits.fileBytesMax) throw tooLarge();
    const write = async (): Promise<unknown> => {
      signal.throwIfAborted();
      const folders = names.slice(0, -1);
      const old = await inFolder(workspace, folders, false, (folder) => oldFile(folder, name)).catch(
        nullIfMissing,
      );
      const keptBytes = append && old !== null ? old.size : 0;
      if (keptBytes + added.length > toolLimits.fileBytesMax) throw tooLarge();
      await checkRoom(
        workspace,
        old === null ? names.length : 0,
        keptBytes + added.length - (old?.size ?? 0),
      );
      return inFolder(workspace, folders, true, async (folder) => {
        const bytes = append && old !== null ? Buffer.concat([await read(folder, name), added]) : added;
        await replace(folder, name, bytes, old === null ? 0o644 : old.mode & 0o777);
        return { path, bytes: bytes.length, created: old === null };
      });
    };
    // In turn: of two that add to one file at once, neither gets lost, and the room is counted right.
    return inTurn(workspace, () =>
      write().catch((error) => {
        throw toFailure(error);
      }),
    );
  },
});

/** Throws where so much more would not fit. What takes no more room always does. */
async function checkRoom(workspace: string, entries: number, bytes: number): Promise<void> {
  const spare = await inFolder(workspace, [], false, spareOf);
  if (entries > 0 && spare.entries < entries)
    throw full(`${toolLimits.workspaceEntriesMax} files and folders`);
  if (bytes > 0 && spare.bytes < bytes) throw full(`${toolLimits.workspaceBytesMax} bytes`);
}

async function spareOf(folder: FileHandle): Promise<{ entries: number; bytes: number }> {
  let entries = toolLimits.workspaceEntriesMax;
  let bytes: number = toolLimits.workspaceBytesMax;
  for await (const entry of entriesOf(folder, toolLimits.pathNamesMax)) {
    entries -= 1;
    bytes -= entry.bytes;
    if (entries < 0 || bytes < 0) break;
  }
  return { entries, bytes };
}

async function oldFile(folder: FileHandle, name: string): Promise<{ mode: number; size: number }> {
  const old = await lstat(at(folder, name));
  if (!old.isFile()) throw new ToolFailure("refused", "What is there is not an ordinary file.");
  return old;
}

async function read(folder: FileHandle, name: string): Promise<Buffer> {
  const file = await openFile(folder, name);
  try {
    return await readWhole(file);
  } finally {
    await file.close();
  }
}

async function replace(folder: FileHandle, name: string, bytes: Buffer, mode: number): Promise<void> {
  const beside = at(folder, `.runwire-${randomBytes(8).toString("hex")}.tmp`);
  const file = await open(beside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
  try {
    try {
      await file.writeFile(bytes);
      await file.chmod(mode);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(beside, at(folder, name));
  } catch (error) {
    // What cannot be removed either is no worse than the failure that is told.
    await unlink(beside).catch(() => {});
    throw error;
  }
}

function tooLarge(): ToolFailure {
  return new ToolFailure("too-large", `A file may have ${toolLimits.fileBytesMax} bytes at most.`);
}

function full(of: string): ToolFailure {
  return new ToolFailure("full", `The workspace may hold ${of} at most.`);
}
