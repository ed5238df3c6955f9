// Spilling moves large members out of an event and changes nothing else: what is left is small and still of its
// type, and the event with its blobs is the event that was sent.

import { createHash } from "node:crypto";
import { type Draft, type Facts, flowOf, limits, parseDraft } from "@runwire/protocol";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type NewBlob, spill } from "../../../server/dist/blobs/spill.js";
import { arbitraryDraft } from "../arbitraries.js";
import { arbitraryFacts, arbitraryText, throughJson } from "../arbitrary-json.js";

interface Entry {
  readonly blob_ref: string;
  readonly bytes: number;
  readonly media_type: string;
  readonly preview: string;
}

const bytesOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value));
const { memberBytesMax, previewCharsMax } = limits;

/** How to make a large member: a recipe, so that a counterexample can be read. */
const recipe = fc.record({
  unit: fc.constantFrom("a", "é", "€", "👩‍💻", "\0", '"', "\uD800"),
  /** How many more of them than the limit takes. */
  more: fc.integer({ min: -4, max: 4 }),
  begin: arbitraryText,
  as: fc.constantFrom("text", "list", "object"),
  beside: arbitraryFacts,
});

function made({
  unit,
  more,
  begin,
  as,
  beside,
}: typeof recipe extends fc.Arbitrary<infer R> ? R : never): unknown {
  const each = bytesOf(unit) - 2;
  const fitting = Math.floor((memberBytesMax - 2 - bytesOf(begin)) / each);
  const text = begin + unit.repeat(fitting + more);
  if (as === "text") return text;
  return as === "list" ? [text] : throughJson({ ...beside, text });
}

const names = [
  "output",
  "input",
  "note",
  "spilled",
  "__proto__",
  "blob_ref",
  "error",
  "text",
  "title",
  "plan",
];
const members = fc.array(fc.tuple(fc.constantFrom(...names), recipe), { maxLength: 3 });

function isTaken(draft: Draft): boolean {
  try {
    parseDraft(draft);
    return true;
  } catch {
    return false;
  }
}

const entriesOf = (payload: Facts): readonly (readonly [string, Entry])[] =>
  Object.entries(payload.spilled as { [member: string]: Entry });

/** What a reader does who wants the whole event. */
function restored({ type }: Draft, payload: Facts, blobs: readonly NewBlob[]): Facts {
  const { spilled: _, ...left } = payload;
  const whole = entriesOf(payload).map(([member, { blob_ref }]): [string, unknown] => {
    const { media_type, content } = blobs.find(({ ref }) => ref === blob_ref) as NewBlob;
    return [member, media_type === "application/json" ? JSON.parse(content.toString()) : content.toString()];
  });
  const output = entriesOf(payload).find(([member]) => member === "output")?.[1];
  const isOurs = type === "tool.end" && output !== undefined && left.blob_ref === output.blob_ref;
  return Object.fromEntries([
    ...Object.entries(left).filter(([member]) => !isOurs || member !== "blob_ref"),
    ...whole,
  ]);
}

describe("spilling", () => {
  it("gives back the event that was sent, and leaves it small and of its type [RW-BLOB-1] [RW-BLOB-2]", () => {
    let spills = 0;
    fc.assert(
      fc.property(arbitraryDraft, members, (small, more) => {
        const large = more.map(([member, of]) => [member, made(of)] as const);
        const payload: Facts = Object.fromEntries([...Object.entries(small.payload), ...large]);
        const draft = { ...small, payload } as Draft;
        fc.pre(isTaken(draft));
        const before = JSON.stringify(payload);
        const spilled = spill(draft.type, payload);
        expect(JSON.stringify(payload)).toBe(before);
        const isWhole =
          flowOf(draft.type) !== "control" || ["turn.submitted", "run.lifecycle"].includes(draft.type);
        const mayStay = (member: string): boolean =>
          (draft.type === "message.settled" && member === "text") ||
          (draft.type === "plan.proposal" && member === "plan") ||
          (draft.type === "tool.end" && member === "error" && typeof payload.error !== "string");
        const tooLarge = Object.entries(payload)
          .filter(([member, value]) => bytesOf(value) > memberBytesMax && !mayStay(member))
          .map(([member]) => member);
        expect(spilled !== undefined).toBe(!isWhole && tooLarge.length > 0);
        if (spilled === undefined) return;
        spills += 1;
        expect(isTaken({ ...draft, payload: spilled.payload } as Draft)).toBe(true);
        expect(restored(draft, spilled.payload, spilled.blobs)).toEqual(payload);
        const moved = entriesOf(spilled.payload).map(([member]) => member);
        expect(new Set(moved)).toEqual(
          new Set([...tooLarge, ...(Object.hasOwn(payload, "spilled") ? ["spilled"] : [])]),
        );
        for (const [member, value] of Object.entries(spilled.payload)) {
          if (member === "spilled" || mayStay(member)) continue;
          if (moved.includes(member)) expect(bytesOf(value)).toBeLessThanOrEqual(previewCharsMax * 6 + 2);
          else if (!(draft.type === "tool.end" && member === "blob_ref")) expect(value).toBe(payload[member]);
        }
        if (draft.type === "tool.end" && moved.includes("output"))
          expect(Object.hasOwn(spilled.payload, "output")).toBe(false);
        const sizes = entriesOf(spilled.payload).map(([, { bytes }]) => bytes);
        expect(sizes).toEqual([...sizes].sort((a, b) => b - a));
        for (const [, { blob_ref, bytes, preview }] of entriesOf(spilled.payload)) {
          const { content } = spilled.blobs.find(({ ref }) => ref === blob_ref) as NewBlob;
          expect(blob_ref).toBe(`blob_${createHash("sha256").update(content).digest("hex")}`);
          expect(content.length).toBe(bytes);
          expect(content.toString().startsWith(preview)).toBe(true);
          expect(preview.length).toBeGreaterThanOrEqual(
            Math.min(content.toString().length, previewCharsMax - 1),
          );
          expect(preview.length).toBeLessThanOrEqual(previewCharsMax);
        }
      }),
      { numRuns: 300 },
    );
    expect(spills).toBeGreaterThan(20);
  });

  it("takes an event for what its producer sent: over 8 MiB it is refused [RW-APPEND-3]", () => {
    const half = "a".repeat(limits.eventBytesMax / 2);
    expect(spill("custom", { half })?.blobs).toHaveLength(1);
    expect(() => spill("custom", { half, more: half })).toThrow("too large");
  });

  it("cuts no character in two", () => {
    const text = `a${"👋".repeat(40_000)}`;
    const { payload } = spill("custom", { text }) ?? {};
    expect(payload?.text).toBe(text.slice(0, previewCharsMax - 1));
  });

  it("looks at no more of a list of millions than it must, and never lists its places", () => {
    const places = { asked: 0 };
    const list = new Proxy(
      Array.from({ length: 100_000 }, () => 1),
      {
        ownKeys(target) {
          places.asked += 1;
          return Reflect.ownKeys(target);
        },
      },
    );
    const { blobs } = spill("x.acme.list", { list }) ?? { blobs: [] };
    expect(blobs.map(({ bytes }) => bytes)).toEqual([200_001]);
    expect(places.asked).toBe(0);
  });
});
