import { Readable } from "node:stream";
import { type Dialect, dialects, type Event } from "@runwire/protocol";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { sampleLines } from "../testing/sample.js";
import { numberedLines } from "./numbered-lines.js";
import { fileEvents } from "./recorded.js";

const recordingIn = (dialect: Dialect): Buffer =>
  Buffer.from(["Starting …", ...sampleLines(dialect)].map((line) => `${line}\n`).join(""));

async function read(...pieces: readonly Uint8Array[]) {
  const bad: number[] = [];
  const input = {
    bad: { count: 0, tell: (line: number) => void bad.push(line) },
    async *pieces() {
      for await (const { lines } of numberedLines(Readable.from(pieces))) yield lines;
    },
  };
  const events: Event[] = [];
  for await (const event of fileEvents(input, undefined)) events.push(event);
  return { events, bad };
}

describe("a recording that is known by its looks", () => {
  const spoken = [...dialects.values()];

  it.each(spoken)(
    "is the same in whatever pieces $name comes, also after something else",
    async (dialect) => {
      const bytes = recordingIn(dialect);
      const whole = await read(bytes);
      expect(whole).toMatchObject({ bad: [1], events: expect.arrayContaining([expect.anything()]) });
      await fc.assert(
        fc.asyncProperty(fc.nat({ max: bytes.length }), async (at) => {
          expect(await read(bytes.subarray(0, at), bytes.subarray(at))).toEqual(whole);
        }),
      );
    },
  );

  it("is refused where nothing in it is known, and is nothing where it is empty", async () => {
    await expect(read(Buffer.from("a\n"), Buffer.from("b\n"))).rejects.toThrow(
      "nothing in it is of a dialect",
    );
    expect(await read(Buffer.from("\n"))).toEqual({ events: [], bad: [] });
  });
});
