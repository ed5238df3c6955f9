// The files of a workspace, as they can be told apart without being read: by inode, size and times. Small ones are read all
// the same, while there is room, so that a change can be shown as a difference.

import type { BigIntStats } from "node:fs";
import { walk } from "../checkpoints/walk.js";
import { openFile, openFolder, readWhole } from "../tools/workspace.js";
import { artifactLimits as limits } from "./limits.js";

export interface ListedFile {
  readonly mark: string;
  readonly bytes: number;
  /** Null where it was not read. */
  readonly content: Buffer | null;
}

export type Listing = ReadonlyMap<string, ListedFile>;

/** `before` is what was listed last: what has not changed since is not read again. Throws where it holds too much. */
export async function listFiles(workspace: string, before: Listing = new Map()): Promise<Listing> {
  const files = new Map<string, ListedFile>();
  let roomBytes: number = limits.oldsBytesMax;
  const folder = await openFolder(workspace);
  try {
    for await (const found of walk(folder)) {
      if (found.kind !== "file") continue;
      const mark = markOf(found.stat);
      const bytes = Number(found.stat.size);
      const isKept = bytes <= limits.comparedBytesMax && bytes <= roomBytes;
      const known = before.get(found.path);
      const content = !isKept
        ? null
        : known?.mark === mark && known.content !== null
          ? known.content
          : await openFile(found.folder, found.name)
              .then(async (file) => readWhole(file).finally(() => file.close()))
              // Gone or replaced since it was named; the next look tells.
              .catch(() => null);
      roomBytes -= content?.length ?? 0;
      files.set(found.path, { mark, bytes, content });
    }
  } finally {
    await folder.close();
  }
  return files;
}

function markOf({ ino, size, mtimeNs, ctimeNs }: BigIntStats): string {
  return `${ino}:${size}:${mtimeNs}:${ctimeNs}`;
}
