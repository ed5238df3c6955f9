// Where lines go. Into a pipe they go as they are; on a terminal, what goes on stays at the bottom and is drawn again.

import type { WriteStream } from "node:tty";
import { type Line, layOut } from "./line.js";
import { widthOf } from "./width.js";

export interface Screen {
  /** Null where nobody counts. */
  readonly columns: number | null;
  /** These lines for good, and below them what goes on; the cursor shows where a person may type. */
  draw(lines: readonly Line[], live: readonly Line[], typing: boolean): void;
  /** Takes away what goes on. */
  clear(): void;
}

/** That of this process, and whether what goes on can be drawn on it. */
export function ownScreen(): { readonly screen: Screen; readonly live: boolean } {
  const { stdout, env } = process;
  const live = stdout.isTTY === true && env.TERM !== "dumb";
  const screen = live
    ? terminalScreen(stdout, (env.NO_COLOR ?? "") === "")
    : pipeScreen((text) => stdout.write(text));
  return { screen, live };
}

export function pipeScreen(write: (text: string) => void): Screen {
  return {
    columns: null,
    draw(lines) {
      const rows = lines.flatMap((line) => layOut(line, { columns: null, colour: false }));
      if (rows.length > 0) write(`${rows.join("\n")}\n`);
    },
    clear() {},
  };
}

const hideCursor = "\u001b[?25l";
const showCursor = "\u001b[?25h";
const eraseBelow = "\u001b[J";
// biome-ignore lint/suspicious/noControlCharactersInRegex: this is what is looked for
const styling = /\u001b\[[0-9;]*m/g;

export function terminalScreen(
  out: Pick<WriteStream, "columns" | "rows" | "write">,
  colour: boolean,
): Screen {
  let drawn: readonly string[] = [];
  let text = "";
  /** A terminal that was not told how wide it is. */
  const columns = (): number => out.columns || 80;

  /** Back to where what goes on began. If the terminal was made narrower since, its rows have become more. */
  function erasure(): string {
    if (drawn.length === 0) return "";
    const rows = drawn.reduce((sum, row) => sum + Math.max(1, Math.ceil(rowWidth(row) / columns())), 0);
    return `\r${rows > 1 ? `\u001b[${rows - 1}A` : ""}${eraseBelow}`;
  }

  return {
    get columns() {
      return columns();
    },
    draw(lines, live, typing) {
      const look = { columns: columns(), colour };
      const put = lines.flatMap((line) => layOut(line, look)).map((row) => `${row}\n`);
      const rows = live.flatMap((line) => layOut(line, look)).slice(1 - (out.rows || 24));
      const next = rows.join("\n") + (typing ? showCursor : hideCursor);
      if (put.length === 0 && next === text) return;
      out.write(`${erasure()}${put.join("")}${next}`);
      drawn = rows;
      text = next;
    },
    clear() {
      out.write(`${erasure()}${showCursor}`);
      drawn = [];
      text = "";
    },
  };
}

function rowWidth(row: string): number {
  return widthOf(row.replace(styling, ""));
}
