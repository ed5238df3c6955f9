// The workspace of a tree becomes a file, in turn with what the file tools write, so that it never holds half a write.
//
// What has not changed is not read again. Of each entry there is a mark: what kind, how large, which inode, and when it
// was last changed, which no program can set. The same marks are the same content, if none is so recent that a change
// right after the look could have left the time as it is; where one is, the content is read once more, and compared
// by its hash. All of this is remembered in memory only: after a restart each tree is read once.

import { createHash } from "node:crypto";
import { open, unlink } from "node:fs/promises";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import { inTurn } from "../tools/turns.js";
import { openFolder } from "../tools/workspace.js";
import { checkpointLimits as limits } from "./limits.js";
import { pack } from "./pack.js";
import type { Added, Shelf, TreeMember } from "./shelf.js";
import { type Found, walk } from "./walk.js";

interface Last {
  /** Null where it says too little: something had just been changed. */
  readonly mark: string | null;
  readonly content: string;
  readonly file: string;
}

export type Snapshot = (run: TreeMember, workspace: string) => Promise<string>;

/** Gives the checkpoint's id once it is on disk; throws where the workspace cannot be kept. */
export function snapshots(shelf: Shelf, isSynced: boolean, recentNs: bigint = limits.recentNs): Snapshot {
  const lasts = new Map<string, Last>();

  function remember(tree: string, last: Last): void {
    lasts.delete(tree);
    lasts.set(tree, last);
    for (const oldest of lasts.keys()) {
      if (lasts.size <= limits.treesRememberedMax) break;
      lasts.delete(oldest);
    }
  }

  return async (run, workspace) => {
    const last = lasts.get(workspace);
    const packed = await inTurn(workspace, async () => {
      if (last?.mark != null && (await markOf(workspace)) === last.mark) return null;
      return packTo(shelf.newFile(), workspace, isSynced, recentNs);
    });
    if (last !== undefined && (packed === null || packed.content === last.content)) {
      // It may be gone by now, or have as many names as a file can have.
      const again: Added | null = await shelf.add(run, last.file).catch(() => null);
      if (again !== null) {
        if (packed !== null) await unlink(packed.file);
        remember(workspace, { ...last, mark: packed === null ? last.mark : packed.mark, file: again.file });
        return again.checkpoint_id;
      }
    }
    const fresh =
      packed ?? (await inTurn(workspace, () => packTo(shelf.newFile(), workspace, isSynced, recentNs)));
    try {
      const { checkpoint_id, file } = await shelf.add(run, fresh.file);
      remember(workspace, { ...fresh, file });
      return checkpoint_id;
    } catch (error) {
      await unlink(fresh.file).catch(() => {});
      throw error;
    }
  };
}

async function packTo(file: string, workspace: string, isSynced: boolean, recentNs: bigint): Promise<Last> {
  const content = createHash("sha256");
  const marks = marking();
  const hashed = async function* (): AsyncGenerator<Buffer> {
    for await (const bytes of pack(workspace, marks.add)) {
      content.update(bytes);
      yield bytes;
    }
  };
  const handle = await open(file, "wx", 0o600);
  try {
    // By its own clock: that of the file system, on which everything else here is counted too.
    const { ctimeNs } = await handle.stat({ bigint: true });
    await pipeline(Readable.from(hashed()), createGzip({ level: 1 }), async (zipped) => {
      for await (const bytes of zipped) await handle.writeFile(bytes as Buffer);
    });
    if (isSynced) await handle.sync();
    const mark = marks.newestNs() + recentNs < ctimeNs ? marks.read() : null;
    return { mark, content: content.digest("hex"), file };
  } catch (error) {
    await unlink(file).catch(() => {});
    throw error;
  } finally {
    await handle.close();
  }
}

async function markOf(workspace: string): Promise<string> {
  const marks = marking();
  const folder = await openFolder(workspace);
  try {
    for await (const found of walk(folder)) marks.add(found);
  } finally {
    await folder.close();
  }
  return marks.read();
}

function marking() {
  const hash = createHash("sha256");
  let newestNs = 0n;
  return {
    add({ path, kind, stat }: Found): void {
      const { mode, size, ino, mtimeNs, ctimeNs } = stat;
      hash.update(`${[path, kind, mode, size, ino, mtimeNs, ctimeNs].join("\0")}\0`);
      if (ctimeNs > newestNs) newestNs = ctimeNs;
    },
    newestNs: () => newestNs,
    read: () => hash.digest("hex"),
  };
}
