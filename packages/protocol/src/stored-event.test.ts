import { describe, expect, it } from "vitest";
import type { Event } from "./events.js";
import { koderText, runwireText, StoredEvent } from "./stored-event.js";

const envelope = {
  id: "evt_01HZ7K4PXA8QJ2M5V0T3RC6NBW",
  ts: "2026-05-14T19:42:13.124Z",
  type: "text.delta",
  run_id: "run_01HZ7K3M000000000000000000",
  child_id: null,
  seq: 127,
  payload: { text: 'I\'ll compare\r\n"the three"' },
} as const;

const plain: Event = { ...envelope, pos: 204 };
const stored = new StoredEvent(
  envelope.id,
  envelope.ts,
  envelope.type,
  envelope.run_id,
  null,
  204,
  127,
  JSON.stringify(envelope.payload),
  null,
);

describe("an event's text", () => {
  it("in koder is the seven members of the envelope, in their order [RW-ENV-2]", () => {
    const names = ["id", "ts", "type", "run_id", "child_id", "seq", "payload"];
    for (const e of [plain, stored]) {
      expect(koderText(e)).toBe(JSON.stringify(envelope));
      expect(Object.keys(JSON.parse(koderText(e)))).toEqual(names);
    }
  });

  it("in runwire has its place after them, and its scope if there is one [RW-ENV-1]", () => {
    for (const e of [plain, stored]) expect(runwireText(e)).toBe(JSON.stringify({ ...envelope, pos: 204 }));
    const scoped = { ...plain, child_id: "run_2", scope: { turn_id: "turn_1" } };
    expect(runwireText(scoped)).toBe(
      JSON.stringify({ ...envelope, child_id: "run_2", pos: 204, scope: scoped.scope }),
    );
  });
});

describe("a stored event", () => {
  it("reads like the event it was made of", () => {
    expect(stored.payload).toEqual(plain.payload);
    expect(stored.payload).toBe(stored.payload);
    expect(stored.scope).toBeUndefined();
    expect(JSON.parse(JSON.stringify(stored))).toEqual(plain);
  });

  it("is not parsed until someone reads its payload", () => {
    const broken = new StoredEvent(
      "evt_1",
      envelope.ts,
      "custom",
      "run_1",
      null,
      1,
      0,
      "{not json",
      "{nor this",
    );
    expect(runwireText(broken)).toContain('"payload":{not json,"pos":1,"scope":{nor this}');
    expect(() => broken.payload).toThrow(SyntaxError);
    expect(() => broken.scope).toThrow(SyntaxError);
  });
});
