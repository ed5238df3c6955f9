// A workspace as a stream of bytes:
//
//   "runwire workspace 1\n"
//   for each entry, a folder before what is in it:
//     u32 length, JSON {path, kind, mode, target?}
//     of a file, its content: u32 length, bytes; …; u32 0
//
// Content comes in pieces, not after its length: a file that a command writes to meanwhile does not break the rest. It
// is no tar, because of what that would bring along (owners, times, devices, four ways to write a long name) without
// being wanted here. Whether it is whole, the gzip around it says. `unpack.ts` is the way back.

import { type FileHandle, readlink } from "node:fs/promises";
import { at, openFile, openFolder } from "../tools/workspace.js";
import { checkpointLimits as limits } from "./limits.js";
import { type Found, walk } from "./walk.js";

export const magic = Buffer.from("runwire workspace 1\n");

export interface Header {
  readonly path: string;
  readonly kind: Found["kind"];
  readonly mode: number;
  /** Of a link: where it leads. Nobody looks there. */
  readonly target?: string;
}

/** `saw` is told of every entry before it is read. Throws where the workspace cannot be packed whole. */
export async function* pack(workspace: string, saw: (found: Found) => void): AsyncGenerator<Buffer> {
  const folder = await openFolder(workspace);
  let bytes = 0;
  try {
    yield magic;
    for await (const found of walk(folder)) {
      saw(found);
      yield framed(Buffer.from(JSON.stringify(await headerOf(found))));
      if (found.kind !== "file") continue;
      for await (const piece of contentOf(found)) {
        bytes += piece.length;
        if (bytes > limits.bytesMax)
          throw new Error(`the workspace holds more than ${limits.bytesMax} bytes`);
        yield framed(piece);
      }
      yield framed(Buffer.alloc(0));
    }
  } finally {
    await folder.close();
  }
}

async function headerOf({ path, kind, stat, folder, name }: Found): Promise<Header> {
  const header = { path, kind, mode: Number(stat.mode & 0o777n) };
  if (kind !== "link") return header;
  const bytes = await readlink(at(folder, name), { encoding: "buffer" });
  const target = bytes.toString();
  if (!Buffer.from(target).equals(bytes)) throw new Error("a link leads to a name that is no text");
  return { ...header, target };
}

async function* contentOf({ folder, name }: Found): AsyncGenerator<Buffer> {
  const file: FileHandle = await openFile(folder, name);
  try {
    for (;;) {
      const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(limits.chunkBytes), 0);
      if (bytesRead === 0) return;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    await file.close();
  }
}

function framed(bytes: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.length);
  return Buffer.concat([length, bytes]);
}
