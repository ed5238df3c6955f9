// Where the bytes of blobs are kept. Who may read one, and whether anyone still refers to it, is decided elsewhere
// (counted.ts): this knows no runs, so that a bucket is as easily one as a folder.

import type { Readable } from "node:stream";

export interface BlobKey {
  readonly tenant: string;
  /** `blob_` and the SHA-256 of its bytes in hex. */
  readonly ref: string;
}

/** Both ends are included. */
export interface ByteRange {
  readonly first: number;
  readonly last: number;
}

export interface Blobs {
  /** Resolves once it is durable; the same again costs nothing. Nothing of one that is refused stays. */
  put(key: BlobKey, content: Uint8Array): Promise<void>;
  /** Its size and its bytes, or those of a range; undefined where it is not there. */
  open(key: BlobKey, range?: ByteRange): Promise<OpenBlob | undefined>;
  /** Once removed, or never there, is the same. */
  remove(key: BlobKey): Promise<void>;
  /**
   * Every blob there is. What unfinished puts of a server that died have left is not, and goes. What cannot be read or
   * removed hides no other: it throws when those have been listed.
   */
  list(): AsyncIterable<BlobKey>;
}

export interface OpenBlob {
  /** Of the whole blob. */
  readonly bytes: number;
  readonly body: Readable;
}

const refPattern = /^blob_[0-9a-f]{64}$/;

export function isBlobRef(ref: string): boolean {
  return refPattern.test(ref);
}
