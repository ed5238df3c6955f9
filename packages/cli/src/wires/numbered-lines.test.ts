import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type NumberedLine, numberedLines } from "./numbered-lines.js";

async function read(pieces: readonly Uint8Array[], lineBytesMax?: number): Promise<readonly NumberedLine[]> {
  async function* input(): AsyncGenerator<Uint8Array> {
    yield* pieces;
  }
  const found: NumberedLine[] = [];
  for await (const { lines } of numberedLines(input(), lineBytesMax)) found.push(...lines);
  return found;
}

function cutAt(bytes: Uint8Array, cuts: readonly number[]): readonly Uint8Array[] {
  const at = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
  return at.slice(1).map((end, i) => bytes.subarray(at[i], end));
}

const texts = (lines: readonly NumberedLine[]): readonly unknown[] =>
  lines.map((line) => ("text" in line ? [line.number, line.text] : [line.number, line.error.code]));

describe("lines with their numbers", () => {
  it("are the same however the input is cut", () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(fc.string({ unit: "binary", maxLength: 12 }), { maxLength: 8 }),
        fc.array(fc.nat(), { maxLength: 6 }),
        fc.constantFrom("\n", "\r\n"),
        async (given, cuts, lineBreak) => {
          const lines = given.map((line) => line.replace(/[\r\n\uFEFF]/g, ""));
          const pieces = cutAt(Buffer.from(lines.join(lineBreak)), cuts);
          const expected = lines
            .map((text, i) => [i + 1, text])
            .filter(([, text]) => `${text}`.trim() !== "");
          expect(texts(await read(pieces))).toEqual(expected);
        },
      ),
      { numRuns: 300 },
    ));

  it("tell of a line that is too long, at any cut, and go on after it", () =>
    fc.assert(
      fc.asyncProperty(fc.array(fc.nat(), { maxLength: 6 }), async (cuts) => {
        const pieces = cutAt(Buffer.from(`ab\n${"x".repeat(40)}\n\ncd`), cuts);
        expect(texts(await read(pieces, 10))).toEqual([
          [1, "ab"],
          [2, "KAI-REQUEST-SIZE-0001"],
          [4, "cd"],
        ]);
      }),
    ));

  it("take a line of exactly the limit, with CRLF too", async () => {
    expect(texts(await read([Buffer.from(`${"x".repeat(10)}\r\n`)], 10))).toEqual([[1, "x".repeat(10)]]);
  });

  it("tell of bytes that are no UTF-8, and leave a byte order mark out", async () => {
    const bytes = Buffer.concat([
      Buffer.from("\uFEFFa\n"),
      Buffer.from([0xff, 0x0a]),
      Buffer.from("\uFEFFb"),
    ]);
    expect(texts(await read([bytes]))).toEqual([
      [1, "a"],
      [2, "KAI-STREAM-PROTO-0001"],
      [3, "\uFEFFb"],
    ]);
  });
});
