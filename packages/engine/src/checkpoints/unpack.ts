// What `pack` has made becomes a workspace again, in a folder that is empty. It goes the guarded way too: no path leads
// outside, and no link that it makes is ever gone through.

import { constants } from "node:fs";
import { type FileHandle, mkdir, open, symlink } from "node:fs/promises";
import { at, inFolder, namesOf } from "../tools/workspace.js";
import { checkpointLimits as limits } from "./limits.js";
import { type Header, magic } from "./pack.js";

const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;

/** With `isSynced`, all of it is on disk when this resolves. */
export async function unpack(
  bytes: AsyncIterable<Buffer>,
  workspace: string,
  isSynced: boolean,
): Promise<void> {
  const reading = readerOf(bytes);
  if (!(await reading.take(magic.length)).equals(magic)) throw new Error("this is no packed workspace");
  const folders: Header[] = [];
  while (!(await reading.isOver())) {
    const header = JSON.parse((await reading.frame(limits.headerBytesMax)).toString()) as Header;
    if (header.kind === "folder") folders.push(header);
    await make(workspace, header, reading, isSynced);
  }
  // From the inside out, and only now: a folder that may not be written to has to be filled first.
  for (const { path, mode } of folders.reverse()) {
    await inFolder(workspace, namesOf(path), false, async (folder) => {
      await folder.chmod(mode);
      if (isSynced) await folder.sync();
    });
  }
  if (isSynced) await inFolder(workspace, [], false, (folder) => folder.sync());
}

async function make(workspace: string, header: Header, reading: Reading, isSynced: boolean): Promise<void> {
  const names = namesOf(header.path);
  const name = names.at(-1);
  if (name === undefined) throw new Error("a packed workspace has an entry without a name");
  await inFolder(workspace, names.slice(0, -1), false, async (folder) => {
    switch (header.kind) {
      case "folder":
        return mkdir(at(folder, name), { mode: 0o700 });
      case "link":
        return symlink(header.target ?? "", at(folder, name));
      case "file":
        return write(folder, name, header.mode, reading, isSynced);
    }
  });
}

async function write(
  folder: FileHandle,
  name: string,
  mode: number,
  reading: Reading,
  isSynced: boolean,
): Promise<void> {
  const file = await open(at(folder, name), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
  try {
    for (;;) {
      const piece = await reading.frame(limits.chunkBytes);
      if (piece.length === 0) break;
      await file.writeFile(piece);
    }
    await file.chmod(mode);
    if (isSynced) await file.sync();
  } finally {
    await file.close();
  }
}

interface Reading {
  isOver(): Promise<boolean>;
  /** So many bytes; throws where there are fewer. */
  take(count: number): Promise<Buffer>;
  /** A length, and then as many bytes. */
  frame(bytesMax: number): Promise<Buffer>;
}

function readerOf(bytes: AsyncIterable<Buffer>): Reading {
  const source = bytes[Symbol.asyncIterator]();
  let held: Buffer = Buffer.alloc(0);

  /** Whether there is more than before. */
  async function more(): Promise<boolean> {
    const { done, value } = await source.next();
    if (done === true) return false;
    held = held.length === 0 ? value : Buffer.concat([held, value]);
    return true;
  }

  async function take(count: number): Promise<Buffer> {
    while (held.length < count) if (!(await more())) throw new Error("a packed workspace breaks off");
    const taken = held.subarray(0, count);
    held = held.subarray(count);
    return taken;
  }

  return {
    take,
    async isOver() {
      while (held.length === 0) if (!(await more())) return true;
      return false;
    },
    async frame(bytesMax) {
      const length = (await take(4)).readUInt32BE();
      if (length > bytesMax) throw new Error("a packed workspace has a piece that is too long");
      return take(length);
    },
  };
}
