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
import { nullIfMissing } from "../missing.js";
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
      // Before its header, which nothing takes back: it may be gone since it was named.
      const opened = await open(found).catch(nullIfMissing);
      if (opened === null) continue;
      const { header, file } = opened;
      try {
        yield framed(Buffer.from(JSON.stringify(header)));
        if (file === null) continue;
        for await (const piece of contentOf(file)) {
          bytes += piece.length;
          if (bytes > limits.bytesMax)
            throw new Error(`the workspace holds more than ${limits.bytesMax} bytes`);
          yield framed(piece);
        }
        yield framed(Buffer.alloc(0));
      } finally {
        await file?.close();
      }
    }
  } finally {
    await folder.close();
  }
}

interface Opened {
  readonly header: Header;
  /** Null for all but files. */
  readonly file: FileHandle | null;
}

async function open({ path, kind, stat, folder, name }: Found): Promise<Opened> {
  const header = { path, kind, mode: Number(stat.mode & 0o777n) };
  if (kind === "file") return { header, file: await openFile(folder, name) };
  if (kind === "folder") return { header, file: null };
  const bytes = await readlink(at(folder, name), { encoding: "buffer" });
  const target = bytes.toString();
  if (!Buffer.from(target).equals(bytes)) throw new Error("a link leads to a name that is no text");
  return { header: { ...header, target }, file: null };
}

async function* contentOf(file: FileHandle): AsyncGenerator<Buffer> {
  for (;;) {
    const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(limits.chunkBytes), 0);
    if (bytesRead === 0) return;
    yield buffer.subarray(0, bytesRead);
  }
}

function framed(bytes: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.length);
  return Buffer.concat([length, bytes]);
}
