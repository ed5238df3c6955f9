// Bytes that a draft of this process brings along. Each becomes a blob, whatever its size, and the member of its name
// holds the ref. Nobody else can send such a draft: what comes over a wire is parsed, and has members only.

import { createHash } from "node:crypto";
import type { Draft, Facts } from "@runwire/protocol";
import { type NewBlob, type Spilled, spill } from "./spill.js";

export interface Attachment {
  readonly content: Buffer;
  readonly media_type: string;
}

export interface AttachingDraft extends Draft {
  readonly attached?: { readonly [member: string]: Attachment };
}

/** What leaves a draft: its attachments, and its large members. Undefined where nothing does. */
export function spillDraft({ type, payload, attached = {} }: AttachingDraft): Spilled | undefined {
  const blobs = Object.entries(attached).map(([member, given]) => [member, blobOf(given)] as const);
  if (blobs.length === 0) return spill(type, payload as Facts);
  const named = { ...payload, ...Object.fromEntries(blobs.map(([member, { ref }]) => [member, ref])) };
  const large = spill(type, named);
  return {
    payload: large?.payload ?? named,
    blobs: [...(large?.blobs ?? []), ...blobs.map(([, blob]) => blob)],
  };
}

function blobOf({ content, media_type }: Attachment): NewBlob {
  const ref = `blob_${createHash("sha256").update(content).digest("hex")}`;
  return { ref, media_type, bytes: content.length, content };
}
