// Blobs in a folder:
//
//   blobs/<tenant>/<first two hex digits>/<sha256>
//   blobs/<tenant>/<first two hex digits>/new-<server>-<n>   while it is written
//
// A file gets its name after its bytes are on disk, so what has a name is whole.

import { randomBytes } from "node:crypto";
import { type FileHandle, mkdir, open, readdir, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { RunwireError } from "@runwire/protocol";
import { isTenant } from "../auth/caller.js";
import type { Durability } from "../store.js";
import { type BlobKey, type Blobs, isBlobRef } from "./store.js";

export interface FolderOptions {
  readonly path: string;
  readonly durability: Durability;
}

export function folderBlobs({ path, durability }: FolderOptions): Blobs {
  // One server owns a data folder: files in the making that have another name than its own are a dead one's.
  const mine = `new-${randomBytes(6).toString("hex")}-`;
  let made = 0;

  function fileOf({ tenant, ref }: BlobKey): string {
    if (!isBlobRef(ref) || !isTenant(tenant)) throw new Error("not a blob's name");
    const hex = ref.slice("blob_".length);
    return join(path, tenant, hex.slice(0, 2), hex);
  }

  /**
   * Makes the names that lead to a file durable: a rename, and a new folder, is a change of the folder above. Always
   * all of them, for another put may just have made one and not flushed it yet; what has not changed costs little.
   */
  async function flushNames(folder: string): Promise<void> {
    if (durability === "os") return;
    for (const above of [folder, dirname(folder), path, dirname(path)]) {
      const handle = await open(above);
      try {
        await handle.sync();
      } finally {
        await handle.close();
      }
    }
  }

  async function write(file: string, content: Uint8Array): Promise<void> {
    const folder = dirname(file);
    made += 1;
    const unfinished = join(folder, `${mine}${made}`);
    try {
      await mkdir(folder, { recursive: true });
      const handle = await open(unfinished, "wx", 0o600);
      try {
        await handle.writeFile(content);
        if (durability === "fsync") await handle.sync();
      } finally {
        await handle.close();
      }
      await rename(unfinished, file);
      await flushNames(folder);
    } catch (error) {
      // Whether it has its name already or not, nobody was told of it.
      for (const left of [unfinished, file]) await rm(left, { force: true }).catch(() => {});
      throw error;
    }
  }

  return {
    async put(key, content) {
      const file = fileOf(key);
      try {
        // A file of another size is what a power cut left where nobody waited for the disk.
        if ((await sizeOf(file)) !== content.length) await write(file, content);
      } catch (cause) {
        throw refusal(cause);
      }
    },

    async open(key, range) {
      const handle = await opened(fileOf(key));
      if (handle === undefined) return undefined;
      try {
        const { size: bytes } = await handle.stat();
        const part = range === undefined ? {} : { start: range.first, end: range.last };
        return { bytes, body: handle.createReadStream(part) };
      } catch (error) {
        await handle.close();
        throw error;
      }
    },

    async remove(key) {
      const file = fileOf(key);
      try {
        await rm(file, { force: true });
      } catch (cause) {
        throw refusal(cause);
      }
    },

    async *list() {
      let failure: unknown;
      const failed = (error: unknown): void => {
        failure ??= error;
      };
      const namesOf = async (folder: string): Promise<readonly string[]> =>
        (await namesIn(folder).catch(failed)) ?? [];
      for (const tenant of await namesOf(path)) {
        if (!isTenant(tenant)) continue;
        for (const part of await namesOf(join(path, tenant))) {
          const folder = join(path, tenant, part);
          for (const name of await namesOf(folder)) {
            if (name.startsWith("new-")) {
              if (!name.startsWith(mine)) await rm(join(folder, name), { force: true }).catch(failed);
            } else if (isBlobRef(`blob_${name}`)) yield { tenant, ref: `blob_${name}` };
          }
        }
      }
      if (failure !== undefined) throw failure;
    },
  };
}

async function sizeOf(file: string): Promise<number | undefined> {
  try {
    return (await stat(file)).size;
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

async function opened(file: string): Promise<FileHandle | undefined> {
  try {
    return await open(file);
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw refusal(error);
  }
}

async function namesIn(folder: string): Promise<readonly string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // Before the first blob there is no folder, and a file among the folders is not ours.
    if (code === "ENOENT" || code === "ENOTDIR") return [];
    throw error;
  }
}

function isMissing(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === "ENOENT";
}

function refusal(cause: unknown): RunwireError {
  const { code } = cause as NodeJS.ErrnoException;
  const isFull = code === "ENOSPC" || code === "EDQUOT";
  return new RunwireError(isFull ? "KAI-SERVER-STORE-0002" : "KAI-SERVER-STORE-0001", `a blob: ${code}`, {
    cause,
  });
}
