// CODEC: what is encoded decodes to itself, and text that is spliced is the text that would be made.

import {
  type Dialect,
  type Event,
  isCore,
  koder,
  koderText,
  runwire,
  runwireText,
  StoredEvent,
} from "@runwire/protocol";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { arbitraryEvent } from "../arbitraries.js";

const coreEvent = arbitraryEvent.filter((e) => isCore(e.type));

describe("CODEC", () => {
  it("a runwire message decodes to the event it was made of [RW-ENV-1] [RW-ENV-3]", () => {
    fc.assert(
      fc.property(arbitraryEvent, (e) => {
        for (const form of [e, storedForm(e)]) {
          expect(roundTrip(runwire, form)).toBe(JSON.stringify(inOrder(e)));
        }
      }),
    );
  });

  it("a koder message decodes to the seven members it says [RW-ENV-2] [RW-ENV-3]", () => {
    fc.assert(
      fc.property(coreEvent, (e) => {
        const { pos: _pos, scope: _scope, ...said } = inOrder(e);
        for (const form of [e, storedForm(e)]) {
          expect(roundTrip(koder, form)).toBe(JSON.stringify(said));
        }
      }),
    );
  });

  it("koder says core events and no others, each under its seq [RW-KODER-1]", () => {
    fc.assert(
      fc.property(arbitraryEvent, (e) => {
        const [, messages] = koder.step(null, e);
        expect(messages.map(({ id }) => id)).toEqual(isCore(e.type) ? [String(e.seq)] : []);
      }),
    );
  });

  it("an event's text is the same spliced from a store and made from its members [RW-ENV-1] [RW-ENV-2]", () => {
    fc.assert(
      fc.property(arbitraryEvent, (e) => {
        const { pos: _pos, scope: _scope, ...seven } = inOrder(e);
        for (const form of [e, storedForm(e)]) {
          expect(runwireText(form)).toBe(JSON.stringify(inOrder(e)));
          expect(koderText(form)).toBe(JSON.stringify(seven));
        }
      }),
    );
  });

  it("survives UTF-8: no text holds a surrogate that stands alone [RW-ENV-3]", () => {
    fc.assert(
      fc.property(arbitraryEvent, (e) => {
        const text = runwireText(e);
        expect(new TextDecoder().decode(new TextEncoder().encode(text))).toBe(text);
      }),
    );
  });
});

/** The event as its own dialect lays it out. */
function inOrder({ id, ts, type, run_id, child_id, seq, payload, pos, scope }: Event) {
  return { id, ts, type, run_id, child_id, seq, payload, pos, ...(scope === undefined ? {} : { scope }) };
}

/** Text of what came back, its members in the order of the wire: texts differ where `toEqual` is lenient. */
function roundTrip(dialect: Dialect<null>, e: Event): string {
  const [, messages] = dialect.step(dialect.first, e);
  const decoder = dialect.decoder();
  const drafts = [...messages.flatMap((message) => decoder.decode(message)), ...decoder.end()];
  expect(drafts).toHaveLength(1);
  const { pos, ...back } = inOrder({ child_id: null, ...drafts[0] } as Event);
  const { scope, ...seven } = back as typeof back & { scope?: unknown };
  return JSON.stringify({
    ...seven,
    ...(pos === undefined ? {} : { pos }),
    ...(scope === undefined ? {} : { scope }),
  });
}

function storedForm(e: Event): StoredEvent {
  const scopeText = e.scope === undefined ? null : JSON.stringify(e.scope);
  return new StoredEvent(
    e.id,
    e.ts,
    e.type,
    e.run_id,
    e.child_id,
    e.pos,
    e.seq,
    JSON.stringify(e.payload),
    scopeText,
  );
}
