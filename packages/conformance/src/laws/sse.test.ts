// What a producer sends comes out of a real SSE parser as one event that equals it, wherever the bytes are cut.

import { keepalive, koder, type Message, runwire, sseCursor, sseFrame, sseRetry } from "@runwire/protocol";
import { createParser } from "eventsource-parser";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { arbitraryEvent } from "../arbitraries.js";

const between = fc.constantFrom("", keepalive, sseRetry(50));

describe("server-sent events", () => {
  it("are one per message and equal to it, wherever they are cut [RW-SSE-2] [RW-SSE-3]", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(koder, runwire),
        fc.array(fc.tuple(arbitraryEvent, between), { maxLength: 4 }),
        fc.array(fc.nat(), { maxLength: 10 }),
        (dialect, list, places) => {
          const messages = list.flatMap(([e]) => dialect.step(null, e)[1]);
          const text = list
            .map(([e, noise]) => noise + dialect.step(null, e)[1].map(sseFrame).join(""))
            .join("");
          expect(parsed(pieces(text, places))).toEqual(messages);
        },
      ),
    );
  });

  it("have no line of their own but id and data [RW-SSE-2]", () => {
    fc.assert(
      fc.property(arbitraryEvent, (e) => {
        for (const message of runwire.step(null, e)[1]) {
          const frame = sseFrame(message);
          expect(frame.split(/\r\n|\r|\n/)).toEqual([`id: ${e.pos}`, `data: ${message.data}`, "", ""]);
        }
      }),
    );
  });

  it("can set the cursor without an event [RW-SSE-3]", () => {
    expect(parsed([sseCursor("a:12,b:40"), sseRetry(50), keepalive])).toEqual([]);
  });
});

function parsed(input: readonly string[]): readonly Message[] {
  const messages: Message[] = [];
  const parser = createParser({
    onEvent: ({ id, event, data }) =>
      messages.push({
        ...(id === undefined ? {} : { id }),
        ...(event === undefined ? {} : { event }),
        data,
      }),
    onError: (failure) => {
      throw failure;
    },
  });
  for (const text of input) parser.feed(text);
  return messages;
}

function pieces(text: string, places: readonly number[]): readonly string[] {
  const ends = [...places.map((place) => place % (text.length + 1)), text.length].sort((a, b) => a - b);
  return ends.map((end, i) => text.slice(ends[i - 1] ?? 0, end));
}
