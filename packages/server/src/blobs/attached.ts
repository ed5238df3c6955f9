// Bytes that a draft of this process brings along. Each becomes a blob, whatever its size, and the member of its name
// holds the ref. Nobody else can send such a draft: what comes over a wire is parsed, and has members only.

import type { Draft, Facts } from "@runwire/protocol";
import { newBlob, type Spilled, spill } from "./spill.js";

export interface Attachment {
  readonly content: Buffer;
  readonly media_type: string;
}

export interface AttachingDraft extends Draft {
  readonly attached?: { readonly [member: string]: Attachment };
}

/** What leaves a draft: its attachments, and its large members. Undefined where nothing does. */
export function spillDraft({ type, payload, attached = {} }: AttachingDraft): Spilled | undefined {
  const blobs = Object.entries(attached).map(
    ([member, { content, media_type }]) => [member, newBlob(content, media_type)] as const,
  );
  if (blobs.length === 0) return spill(type, payload as Facts);
  const named = { ...payload, ...Object.fromEntries(blobs.map(([member, { ref }]) => [member, ref])) };
  const large = spill(type, named);
  return {
    payload: large?.payload ?? named,
    blobs: [...(large?.blobs ?? []), ...blobs.map(([, blob]) => blob)],
  };
}
