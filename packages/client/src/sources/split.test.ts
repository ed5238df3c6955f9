// SPLIT: bytes cut anywhere parse to the same messages.

import { type Message, sseFrame } from "@runwire/protocol";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { run_id, saying } from "../testing/log.js";
import { messagesOf } from "../testing/scripted-source.js";
import { ndjsonSource } from "./ndjson.js";
import type { Source } from "./source.js";
import { sseSource } from "./sse.js";

const messages = messagesOf(saying(["plain", "žluťoučký 🐎", "\u2028 \r\n \u0000"]));
const sse = messages.map(sseFrame).join(": keepalive\n\n");
const ndjson = messages.map(({ data }) => `${data}\n`).join("\n");

const wires: readonly (readonly [string, (fetch: Fetch) => Source, string, readonly Message[]])[] = [
  ["SSE", (fetch) => sseSource({ base: "http://test", run_id, fetch }), sse, messages],
  [
    "NDJSON",
    (fetch) => ndjsonSource({ base: "http://test", run_id, fetch }),
    ndjson,
    messages.map(({ data }) => ({ data })),
  ],
];

type Fetch = typeof fetch;

/** A response whose body comes in exactly these pieces. */
function inPieces(bytes: Uint8Array, sizes: readonly number[]): Fetch {
  const pieces: Uint8Array[] = [];
  let from = 0;
  for (const size of [...sizes, bytes.length]) {
    pieces.push(bytes.subarray(from, from + size));
    from += size;
  }
  return async (_url, init) => {
    const type = new Headers(init?.headers).get("accept") ?? "";
    const body = new ReadableStream({
      start(controller) {
        for (const piece of pieces) if (piece.length > 0) controller.enqueue(piece);
        controller.close();
      },
    });
    return new Response(body, { headers: { "content-type": type } });
  };
}

async function readAll(source: Source) {
  const batches = source.open(new Map(), new AbortController().signal);
  const read: Message[] = [];
  for (;;) {
    const step = await batches.next();
    if (step.done) return { read, ending: step.value };
    read.push(...step.value);
  }
}

describe.each(wires)("%s", (_name, sourceOf, text, expected) => {
  test.each(["\n", "\r\n"])(
    "bytes cut anywhere give the same messages, with line ends %j",
    async (lineEnd) => {
      const bytes = new TextEncoder().encode(text.replaceAll("\n", lineEnd));
      await fc.assert(
        fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 300 }), { maxLength: 40 }), async (sizes) => {
          expect(await readAll(sourceOf(inPieces(bytes, sizes)))).toEqual({
            read: expected,
            ending: { close: "leaving" },
          });
        }),
      );
    },
  );

  test("bytes that come one by one give the same messages", async () => {
    const bytes = new TextEncoder().encode(text);
    const { read } = await readAll(
      sourceOf(
        inPieces(
          bytes,
          Array.from(bytes, () => 1),
        ),
      ),
    );
    expect(read).toEqual(expected);
  });

  test("a message that the end cuts off is not a message", async () => {
    const bytes = new TextEncoder().encode(text);
    const { read } = await readAll(sourceOf(inPieces(bytes.subarray(0, -3), [])));
    expect(read).toEqual(expected.slice(0, -1));
  });
});
