// Large members leave their event. What stays is a preview of the same type, so that whoever reads the member
// still reads one, and `spilled` says by member where the rest is:
//
//   {"call_id":"c","input":"first 1,024 characters",
//    "spilled":{"input":{"blob_ref":"blob_9f…","bytes":70210,"media_type":"text/plain; charset=utf-8","preview":"…"}}}
//
// A `tool.end` is the exception: its `output` is left out, and `blob_ref` stands beside it, as its readers expect.

import { createHash } from "node:crypto";
import { beginningOf, type EventType, type Facts, flowOf, limits, typeRow } from "@runwire/protocol";
import type { BlobRef } from "../log/record.js";
import { tooLarge } from "../log/split.js";

export interface NewBlob extends BlobRef {
  readonly content: Buffer;
}

export interface Spilled {
  readonly payload: Facts;
  readonly blobs: readonly NewBlob[];
}

/** The payload without its large members, and these as blobs; undefined where it has none. */
export function spill(type: EventType, payload: Facts): Spilled | undefined {
  if (flowOf(type) !== "control" || wholeTypes.has(type)) return undefined;
  if (roomAfter(payload, limits.memberBytesMax) >= 0) return undefined;
  const blobs = new Map<string, NewBlob>();
  for (const [member, value] of Object.entries(payload)) {
    if (isLarge(value) && mayLeave(type, member, value)) blobs.set(member, blobOf(value));
  }
  if (blobs.size === 0) return undefined;
  if (Buffer.byteLength(JSON.stringify(payload)) > limits.eventBytesMax) throw tooLarge();
  // A member that its producer called `spilled` goes with the rest: no reader shall take it for this one.
  if (Object.hasOwn(payload, "spilled")) blobs.set("spilled", blobOf(payload.spilled));
  const largestFirst = [...blobs].sort(([, a], [, b]) => b.bytes - a.bytes);
  return {
    payload: { ...previewed(type, payload, blobs), spilled: Object.fromEntries(largestFirst.map(entryOf)) },
    blobs: largestFirst.map(([, blob]) => blob),
  };
}

/** What was asked and how the run moves is what other runs and lists are made of. */
const wholeTypes: ReadonlySet<EventType> = new Set<EventType>(["turn.submitted", "run.lifecycle"]);

/**
 * What is left of `room` after a value's JSON text, were each of its characters escaped; below 0 where it may not
 * fit. Most payloads are small, and need not be made a text to know it.
 */
function roomAfter(value: unknown, room: number): number {
  if (typeof value === "string") return room - 6 * value.length - 2;
  if (typeof value !== "object" || value === null) return room - numberCharsMax;
  let left = room - 2;
  if (Array.isArray(value)) {
    // Not by entries: a pair for each of millions of items would be made to look at a few thousand.
    for (const item of value) {
      left = roomAfter(item, left - 1);
      if (left < 0) return left;
    }
    return left;
  }
  for (const [name, item] of Object.entries(value)) {
    left = roomAfter(item, left - 6 * name.length - 4);
    if (left < 0) return left;
  }
  return left;
}

const numberCharsMax = 25;

function isLarge(value: unknown): boolean {
  if (roomAfter(value, limits.memberBytesMax) >= 0) return false;
  return Buffer.byteLength(JSON.stringify(value)) > limits.memberBytesMax;
}

function mayLeave(type: EventType, member: string, value: unknown): boolean {
  if (type === "message.settled" && member === "text") return false;
  // The name stays in the event; one that is itself the bulk of it would be there twice.
  if (member.length > limits.previewCharsMax) return false;
  // An object that its type asks members of is not that without them: a plan, an error.
  const members = typeRow(type)?.members ?? {};
  const kind = Object.hasOwn(members, member) ? members[member]?.replace("?", "") : undefined;
  return typeof value === "string" || (kind !== "plan" && kind !== "failure");
}

function blobOf(value: unknown): NewBlob {
  const isText = typeof value === "string" && !loneSurrogate.test(value);
  const content = Buffer.from(isText ? value : JSON.stringify(value));
  return newBlob(content, isText ? "text/plain; charset=utf-8" : "application/json");
}

/** Named by what it holds. */
export function newBlob(content: Buffer, media_type: string): NewBlob {
  const ref = `blob_${createHash("sha256").update(content).digest("hex")}`;
  return { ref, media_type, bytes: content.length, content };
}

/** UTF-8 has no word for it; JSON has. */
const loneSurrogate = /\p{Surrogate}/u;

function previewed(type: EventType, payload: Facts, blobs: ReadonlyMap<string, NewBlob>): Facts {
  const output = type === "tool.end" ? blobs.get("output") : undefined;
  const kept = Object.fromEntries(
    Object.entries(payload)
      .filter(([member]) => output === undefined || member !== "output")
      .map(([member, value]) => [member, blobs.has(member) ? previewOf(value) : value]),
  );
  return output === undefined ? kept : { ...kept, blob_ref: kept.blob_ref ?? output.ref };
}

function previewOf(value: unknown): unknown {
  if (typeof value === "string") return beginningOf(value, limits.previewCharsMax);
  return Array.isArray(value) ? [] : {};
}

function entryOf([member, { ref, bytes, media_type, content }]: readonly [string, NewBlob]) {
  // Three bytes hold a UTF-16 unit at least, so what is cut in two here is behind the preview.
  const text = content.subarray(0, limits.previewCharsMax * 4).toString();
  return [
    member,
    { blob_ref: ref, bytes, media_type, preview: beginningOf(text, limits.previewCharsMax) },
  ] as const;
}
