// A conversation is a fold, as a transcript is: what forks and later turns begin with costs what the log is long.

import {
  type Conversation,
  converse,
  type Draft,
  type Event,
  emptyConversation,
  newFold,
} from "@runwire/protocol";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { arbitraryRun, eventsOf } from "../arbitrary-runs.js";

describe("a conversation", () => {
  it("is the same folded at once, and what it goes on from stays as it was", () => {
    fc.assert(
      fc.property(arbitraryRun(), fc.nat(40), ({ run_id, drafts }, at) => {
        const events = eventsOf(run_id, drafts);
        const before = events.slice(0, at).reduce((c, e) => converse(c, e), first());
        const was = structuredClone(before);
        const mine = newFold();
        const whole = events.slice(at).reduce((c, e) => converse(c, e, mine), before);
        expect(whole).toEqual(events.reduce((c, e) => converse(c, e), first()));
        expect(before).toEqual(was);
      }),
    );
  });

  // The square of these would be minutes.
  const much: { readonly [what: string]: (id: string) => readonly Draft[] } = {
    "calls of one answer": (call_id) => [{ type: "tool.call", payload: { call_id, tool: "look" } }],
    "answers with a call": (call_id) => [
      { type: "tool.start", payload: { call_id, tool: "look" } },
      { type: "tool.end", payload: { call_id, ok: true } },
    ],
    "words of people": (text) => [{ type: "steer.delivered", payload: { text } }],
  };
  it.each(Object.keys(much))("of many %s costs what its events cost, and not the square of that", (what) => {
    const mine = newFold();
    const told = much[what] ?? (() => []);
    const [event] = eventsOf("run_a", told("0")) as [Event];
    let conversation = first();
    for (let i = 0; i < 100_000; i++) {
      for (const draft of told(String(i)))
        conversation = converse(conversation, { ...event, ...draft } as Event, mine);
    }
    const { messages, calls } = conversation;
    expect(messages.length + calls.length).toBeGreaterThanOrEqual(100_000);
  });
});

const first = (): Conversation => structuredClone(emptyConversation);
