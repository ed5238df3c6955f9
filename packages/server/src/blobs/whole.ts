import { buffer } from "node:stream/consumers";
import type { CountedBlobs } from "./counted.js";

/** All of a blob at once: an event's members are bounded, and so is what was spilled of them. */
export async function wholeBlob(
  blobs: CountedBlobs,
  tenant: string,
  ref: string,
): Promise<Buffer | undefined> {
  const opened = await blobs.open(tenant, ref);
  return opened === undefined ? undefined : buffer(opened.body);
}
