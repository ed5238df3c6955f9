// What is written for people. Colours only on terminals; into a pipe or a file goes plain text.

import { widthOf } from "./watch/width.js";

/** A stream that people may be reading. */
export interface Terminal {
  readonly isTTY?: boolean;
  readonly columns?: number;
}

const codes = { red: 31, green: 32, yellow: 33, grey: 90, bold: 1 } as const;
export type Paint = (colour: keyof typeof codes, text: string) => string;

export function paintFor(stream: Terminal, env: NodeJS.ProcessEnv): Paint {
  // https://no-color.org
  if (!stream.isTTY || (env.NO_COLOR ?? "") !== "") return (_colour, text) => text;
  return (colour, text) => `\u001b[${codes[colour]}m${text}\u001b[0m`;
}

/** Columns of equal width, under their names. */
export function table(names: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [names, ...rows].map((row) => row.map(printable));
  const widths = names.map((_, column) => Math.max(...lines.map((line) => widthOf(line[column] ?? ""))));
  return lines
    .map((line) =>
      line
        .map((cell, column) => cell + " ".repeat((widths[column] ?? 0) - widthOf(cell)))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

/** For programs: a line a row, a tab between cells. */
export function tabbed(names: readonly string[], rows: readonly (readonly string[])[]): string {
  return [names, ...rows].map((row) => row.map(printable).join("\t")).join("\n");
}

/** Control characters could tell a terminal to do things. */
export function printable(text: string): string {
  return text.replace(/\p{C}/gu, "�");
}
