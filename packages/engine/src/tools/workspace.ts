// Paths inside a workspace. Node has no openat(2), but on Linux `/proc/self/fd/<n>/<name>` is the same thing: the kernel
// goes from the open folder itself, whatever has become of its path. So a path is walked name by name, each opened
// from the folder before it and never through a link; there is nothing left to be swapped between a check and a use.
// Where there is no /proc, every path fails: better no file tool than one that can be led outside.

import { constants, type Dirent } from "node:fs";
import { type FileHandle, lstat, mkdir, open, opendir } from "node:fs/promises";
import { type SandboxProfile, ToolFailure, type Violation } from "../tool.js";
import { toolLimits } from "./limits.js";

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK, O_NOCTTY } = constants;

/** What the functions below keep a file tool to. */
export function workspaceSandbox(access: "read" | "write"): SandboxProfile {
  return {
    name: "workspace-files",
    filesystem: { root: "workspace", access, links: "refused", fileBytesMax: toolLimits.fileBytesMax },
    network: { access: "none" },
    process: { access: "none" },
  };
}

/** The names that a path is made of. Throws for one that could mean anything outside. */
export function namesOf(path: string): readonly string[] {
  const refuse = (why: string, violation?: Violation): never => {
    throw new ToolFailure("refused", `The path ${why}.`, violation === undefined ? {} : { violation });
  };
  if (path.length > toolLimits.pathCharsMax) refuse("is too long");
  if (path.includes("\0")) refuse("has a NUL in it");
  if (path.startsWith("/")) refuse("is absolute; give it relative to the workspace", "outside-workspace");
  const names = path.split("/").filter((name) => name !== "" && name !== ".");
  if (names.includes("..")) refuse("has .. in it; give it relative to the workspace", "outside-workspace");
  if (names.length > toolLimits.pathNamesMax) refuse("is too deep");
  return names;
}

/** Opens a folder of the workspace, hands it on, and closes it. `isMade` makes those that are missing. */
export async function inFolder<T>(
  workspace: string,
  names: readonly string[],
  isMade: boolean,
  use: (folder: FileHandle) => Promise<T>,
): Promise<T> {
  let folder = await openFolder(workspace);
  try {
    for (const name of names) {
      const next = await openNext(folder, name, isMade);
      await folder.close();
      folder = next;
    }
    return await use(folder);
  } finally {
    await folder.close();
  }
}

/** A name in an open folder, as a path. Only for names from `namesOf` or from the folder itself. */
export function at(folder: FileHandle, name: string): string {
  return `/proc/self/fd/${folder.fd}/${name}`;
}

/** Opens an ordinary file to be read. Not to block keeps a FIFO from hanging the open; it is refused right after. */
export async function openFile(folder: FileHandle, name: string): Promise<FileHandle> {
  const file = await open(at(folder, name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  try {
    if (!(await file.stat()).isFile()) throw new ToolFailure("refused", "This is not an ordinary file.");
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** All of a file, unless it is larger than a file may be here; also when it grows while it is read. */
export async function readWhole(file: FileHandle): Promise<Buffer> {
  const { size } = await file.stat();
  const buffer = Buffer.alloc(Math.min(size, toolLimits.fileBytesMax) + 1);
  let bytes = 0;
  while (bytes < buffer.length) {
    const { bytesRead } = await file.read(buffer, bytes, buffer.length - bytes, bytes);
    if (bytesRead === 0) return buffer.subarray(0, bytes);
    bytes += bytesRead;
  }
  throw new ToolFailure(
    "too-large",
    `This file is larger than ${toolLimits.fileBytesMax} bytes, or growing.`,
  );
}

export interface Entry {
  /** Relative to the folder that was asked for. */
  readonly path: string;
  readonly kind: "file" | "folder" | "link" | "other";
  /** 0 for all but files. */
  readonly bytes: number;
}

/** What a folder holds, down to a depth. A link is named, and neither followed nor read. */
export async function* entriesOf(folder: FileHandle, depth: number, prefix = ""): AsyncGenerator<Entry> {
  for await (const found of await opendir(`/proc/self/fd/${folder.fd}`)) {
    const path = `${prefix}${found.name}`;
    const kind = kindOf(found);
    yield { path, kind, bytes: kind === "file" ? await bytesOf(folder, found.name) : 0 };
    if (kind !== "folder" || depth <= 1) continue;
    const inner = await openFolder(at(folder, found.name)).catch(() => null);
    // Gone or replaced since it was named: then there is nothing in it to tell of.
    if (inner === null) continue;
    try {
      yield* entriesOf(inner, depth - 1, `${path}/`);
    } finally {
      await inner.close();
    }
  }
}

/** What went wrong, without a word about where on this machine. */
export function toFailure(error: unknown): unknown {
  if (!(error instanceof Error) || !("code" in error) || typeof error.code !== "string") return error;
  const [kind, message] = failures[error.code] ?? ["failed", `The file system said ${error.code}.`];
  const violation = error.code === "ELOOP" ? { violation: "link" as const } : {};
  return new ToolFailure(kind, message, { cause: error, ...violation });
}

const failures: { readonly [code: string]: readonly [string, string] } = {
  ENOENT: ["not-found", "There is nothing at this path."],
  ENOTDIR: ["refused", "A part of this path is not a folder."],
  EISDIR: ["refused", "This is a folder."],
  ELOOP: ["refused", "A part of this path is a link, and links are not followed."],
  ENAMETOOLONG: ["refused", "A name in this path is too long."],
  ENXIO: ["refused", "This is not an ordinary file."],
  EACCES: ["refused", "This may not be opened."],
  EPERM: ["refused", "This may not be changed."],
  ENOSPC: ["full", "The disk is full."],
  EDQUOT: ["full", "The disk quota is used up."],
};

/** Never through a link. */
export function openFolder(path: string): Promise<FileHandle> {
  return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
}

async function openNext(folder: FileHandle, name: string, isMade: boolean): Promise<FileHandle> {
  const path = at(folder, name);
  try {
    return await openFolder(path);
  } catch (error) {
    if (!isMade || (error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
  await mkdir(path, { mode: 0o755 }).catch((error: NodeJS.ErrnoException) => {
    // Somebody else made it first; what it is, the open says.
    if (error.code !== "EEXIST") throw error;
  });
  return openFolder(path);
}

function kindOf(found: Dirent): Entry["kind"] {
  if (found.isFile()) return "file";
  if (found.isDirectory()) return "folder";
  return found.isSymbolicLink() ? "link" : "other";
}

async function bytesOf(folder: FileHandle, name: string): Promise<number> {
  const stat = await lstat(at(folder, name)).catch(() => null);
  return stat?.isFile() ? stat.size : 0;
}
