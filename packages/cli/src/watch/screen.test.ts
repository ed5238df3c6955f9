import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { printable } from "../terminal.js";
import { growing, harmless, oneLine } from "./harmless.js";
import { type Line, layOut } from "./line.js";
import { cutLine, textLine } from "./lines.js";
import { pipeScreen, terminalScreen } from "./screen.js";
import { widthOf } from "./width.js";

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
const said = /\u001b\[(\d+)A|(\u001b\[J)|(\u001b\[\?25[hl])|(.)/gsu;

/** As much of a terminal as the screen uses. */
function terminal(columns: number) {
  const rows: string[] = [""];
  let row = 0;
  let column = 0;
  const put = (letter: string): void => {
    if (column === columns) {
      row += 1;
      column = 0;
    }
    rows[row] = (rows[row] ?? "").slice(0, column).padEnd(column) + letter;
    column += 1;
  };
  return {
    columns,
    rows: 24,
    shown: () => rows.join("\n").trimEnd(),
    write(text: string): boolean {
      for (const [, up, erase, seen, letter] of text.matchAll(said)) {
        if (up !== undefined) row -= Number(up);
        else if (erase !== undefined) {
          rows.length = row + 1;
          rows[row] = (rows[row] ?? "").slice(0, column);
        } else if (seen !== undefined) continue;
        else if (letter === "\r") column = 0;
        else if (letter === "\n") {
          row += 1;
          column = 0;
          rows[row] ??= "";
        } else put(letter ?? "");
      }
      return true;
    },
  };
}

const words = fc.array(fc.string({ unit: fc.constantFrom("a", "b", " "), minLength: 1, maxLength: 40 }), {
  maxLength: 3,
});

describe("a terminal", () => {
  it("shows all that was put out and below it only what goes on now", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(words, words), { minLength: 1, maxLength: 8 }), (draws) => {
        const out = terminal(20);
        const screen = terminalScreen(out as never, false);
        for (const [lines, live] of draws) {
          screen.draw(
            lines.map((text) => textLine("", text, 0)),
            live.map((text) => cutLine("", { text })),
            false,
          );
        }
        screen.clear();
        const expected: string[] = [];
        const paper = terminalScreen(
          { columns: 20, rows: 24, write: (text: string) => expected.push(text) > 0 } as never,
          false,
        );
        for (const [lines] of draws)
          paper.draw(
            lines.map((text) => textLine("", text, 0)),
            [],
            false,
          );
        const plain = expected.join("").replaceAll("\u001b[?25l", "").trimEnd();
        expect(out.shown()).toBe(plain);
      }),
    );
  });

  it("never draws more than fits on it, so that it can take everything back", () => {
    let written = "";
    const out = {
      columns: 20,
      rows: 5,
      write(text: string) {
        written += text;
      },
    };
    const many = Array.from({ length: 9 }, (_, i) => cutLine("", { text: `${i}` }));
    terminalScreen(out as never, false).draw([], many, true);
    expect(written).toBe("5\n6\n7\n8\u001b[?25h");
  });
});

describe("a pipe", () => {
  it("gets whole lines and nothing else", () => {
    let written = "";
    const screen = pipeScreen((text) => {
      written += text;
    });
    screen.draw([textLine("1", "a".repeat(200), 0)], [cutLine("", { text: "live", style: "red" })], false);
    screen.clear();
    expect(written).toBe(`  1 │ ${"a".repeat(200)}\n`);
  });
});

describe("text that comes from elsewhere", () => {
  it.each([
    ["\u001b[31mred\u001b[0m", "red"],
    ["\u001b]0;title\u0007x\u001b]8;;http://a\u001b\\link", "xlink"],
    ["\u001bPq#0\u001b\\x\u009b2Jy\u001bcz", "xyz"],
    ["\u001b]52;c;never ends", "52;c;never ends"],
    ["a\r\nb\rc\u2028d", "a\nb\nc\nd"],
    ["a\u202eb\u0000c\tđ", "ab�c    đ"],
    ["👩‍💻 नमस्ते", "👩‍💻 नमस्ते"],
    ["\u{1f3f4}\u{e0067}\u{e0062}\u{e007f}", "\u{1f3f4}\u{e0067}\u{e0062}\u{e007f}"],
    ["a\u{e0067}\u{e007f}", "a��"],
  ])("%j is shown as %j", (given, shown) => {
    expect(harmless(given)).toBe(shown);
  });

  it.each([
    ["👩‍💻 ❤️‍🔥 👩🏽‍🚀", "👩‍💻 ❤️‍🔥 👩🏽‍🚀"],
    ["\u{1f3f4}\u{e0067}\u{e0062}\u{e007f}", "\u{1f3f4}\u{e0067}\u{e0062}\u{e007f}"],
    ["می\u200cخواهم", "می\u200cخواهم"],
    ["a\u200d b\u200d\u200d\u200b\u202e\u001b[m\u{e0067}", "a� b�����[m�"],
  ])("%j is in a table as %j", (given, shown) => {
    expect(printable(given)).toBe(shown);
  });

  it("has no controls left, and stays as it is when looked at again", () => {
    const text = fc.string({
      unit: fc.oneof(
        fc.constantFrom("\u001b", "[", "]", "\u009d", "\u0007", "1", "m"),
        fc.string({ unit: "binary", maxLength: 1 }),
      ),
    });
    fc.assert(
      fc.property(text, (given) => {
        const safe = harmless(given);
        expect(safe.replaceAll("\n", "")).not.toMatch(/\p{Cc}/u);
        expect(harmless(safe)).toBe(safe);
        expect(oneLine(given)).not.toContain("\n");
        const { safe: begun, open } = growing(given);
        expect(begun + harmless(open)).toBe(safe);
      }),
    );
  });

  it("takes as many columns as it does on a terminal", () => {
    for (const [text, columns] of [
      ["abc", 3],
      ["図表", 4],
      ["é", 1],
      ["👩‍💻", 2],
      ["🇩🇪", 2],
      ["☐", 1],
      ["", 0],
      ["한", 2],
    ] as const) {
      expect(widthOf(text), text).toBe(columns);
    }
  });

  it("is looked at in time that grows with its length only", () => {
    const before = process.cpuUsage();
    for (const nasty of ["\u009d", "\u001b]", "\u001b ", "\u001b[1", "\u001bP"])
      harmless(nasty.repeat(200_000));
    const line = (text: string): Line => ({ gutter: [], spans: [{ text }], fit: "wrap", hang: 2 });
    for (const long of ["é".repeat(100_000), "e\u0301".repeat(50_000), `e${"\u0301".repeat(100_000)}`]) {
      expect(layOut(line(long), { columns: 80, colour: false }).join("").replaceAll(" ", "")).toBe(long);
      expect(layOut(line(long), { columns: null, colour: false })).toEqual([long]);
    }
    expect(process.cpuUsage(before).user / 1000).toBeLessThan(5000);
  });
});
