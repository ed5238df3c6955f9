import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { RunwireError } from "../errors.js";
import { lineSplitter } from "./ndjson.js";

/** Lines of JSON text: strings with every character that JSON leaves as it is. */
const line = fc.string({ unit: "binary", maxLength: 30 }).map((text) => JSON.stringify({ text }));
const lineBreak = fc.constantFrom("\n", "\r\n", "\n\n", "\n \t\n", "\r\n\r\n");
const cuts = fc.array(fc.nat(), { maxLength: 20 });

describe("lines", () => {
  it("are the same wherever the input is cut [RW-NDJSON-1] [RW-NDJSON-2]", () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(line, lineBreak)),
        fc.boolean(),
        fc.option(line, { nil: "" }),
        cuts,
        (lines, bom, last, places) => {
          const text = (bom ? "\uFEFF" : "") + lines.flat().join("") + last;
          const expected = [...lines.map(([content]) => content), ...(last === "" ? [] : [last])];
          expect(split(pieces(text, places))).toEqual(expected);
          expect(split([...text])).toEqual(expected);
        },
      ),
    );
  });

  it("are refused when they are too long, wherever the input is cut [RW-NDJSON-3]", () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.string({ unit: fc.constant("x"), maxLength: 6 }), lineBreak)),
        cuts,
        (lines, places) => {
          const text = lines.flat().join("");
          const tooLong = lines.some(([content]) => content.length > 5);
          const whole = lines.map(([content]) => content).filter((content) => content !== "");
          for (const input of [pieces(text, places), [...text]]) {
            const outcome = attempt(() => split(input, 5));
            if (tooLong) {
              expect(outcome).toBeInstanceOf(RunwireError);
              expect((outcome as RunwireError).code).toBe("KAI-REQUEST-SIZE-0001");
            } else {
              expect(outcome).toEqual(whole);
            }
          }
        },
      ),
    );
  });

  it("of exactly the limit pass, also when CR and LF come apart [RW-NDJSON-3]", () => {
    expect(split(["12345\r", "\n12345"], 5)).toEqual(["12345", "12345"]);
  });

  it("are refused before they end, so that a line without end costs no more than the limit [RW-NDJSON-3]", () => {
    const splitter = lineSplitter(5);
    splitter.push("12345");
    expect(() => splitter.push("67")).toThrow("too large");
  });

  it("end with the input, and the splitter is then empty", () => {
    const splitter = lineSplitter(100);
    expect(splitter.push('{"a":1}\n{"b"')).toEqual(['{"a":1}']);
    expect(splitter.end()).toEqual(['{"b"']);
    expect(splitter.end()).toEqual([]);
  });

  it("keep U+2028 and a byte order mark that is not at the start", () => {
    expect(split(['"\u2028\uFEFF"\n'])).toEqual(['"\u2028\uFEFF"']);
  });
});

function split(input: readonly string[], lineCharsMax = 1000): readonly string[] {
  const splitter = lineSplitter(lineCharsMax);
  return [...input.flatMap((text) => splitter.push(text)), ...splitter.end()];
}

function pieces(text: string, places: readonly number[]): readonly string[] {
  const ends = [...places.map((place) => place % (text.length + 1)), text.length].sort((a, b) => a - b);
  return ends.map((end, i) => text.slice(ends[i - 1] ?? 0, end));
}

function attempt<T>(action: () => T): T | unknown {
  try {
    return action();
  } catch (failure) {
    return failure;
  }
}
