// What is written for people. Colours only on terminals; into a pipe or a file goes plain text.

import { widthOf } from "./watch/width.js";

/** A stream that people may be reading. */
export interface Terminal {
  readonly isTTY?: boolean;
}

const codes = { red: 31, green: 32, yellow: 33, grey: 90, bold: 1 } as const;
export type Colour = keyof typeof codes;
export type Paint = (colour: Colour, text: string) => string;

export interface Look {
  /** Of each row. A listing that has colours has bold names of columns, too. */
  readonly colourOf?: (row: number) => Colour | undefined;
  /** What of a line is shown. */
  readonly fit?: (line: string) => string;
  readonly to?: Terminal;
  readonly env?: NodeJS.ProcessEnv;
}

export function paintFor(stream: Terminal, env: NodeJS.ProcessEnv): Paint {
  // https://no-color.org
  if (!stream.isTTY || (env.NO_COLOR ?? "") !== "") return (_colour, text) => text;
  return (colour, text) => `\u001b[${codes[colour]}m${text}\u001b[0m`;
}

/** What a command has found: one object a line where that was asked for, else a list, or why there is none. */
export function writeFound(
  found: readonly object[],
  { json = false }: { readonly json?: boolean },
  none: string,
  list: () => string,
): void {
  if (json) for (const one of found) process.stdout.write(`${JSON.stringify(one)}\n`);
  else if (found.length === 0) process.stderr.write(`${none}\n`);
  else process.stdout.write(`${list()}\n`);
}

/** A table where a person reads it, tabs where a program does. */
export function listing(
  names: readonly string[],
  rows: readonly (readonly string[])[],
  { colourOf, fit = (line) => line, to = process.stdout, env = process.env }: Look = {},
): string {
  if (!to.isTTY) return tabbed(names, rows);
  const [head = "", ...lines] = table(names, rows).split("\n").map(fit);
  if (colourOf === undefined) return [head, ...lines].join("\n");
  const paint = paintFor(to, env);
  const painted = lines.map((line, row) => {
    const colour = colourOf(row);
    return colour === undefined ? line : paint(colour, line);
  });
  return [paint("bold", head), ...painted].join("\n");
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

// A joiner between two signs that it may join, and the tags that make a region's flag of a black one.
const joined =
  /((?<=[\p{L}\p{M}\p{Extended_Pictographic}\p{Emoji_Modifier}])[\u200c\u200d](?=[\p{L}\p{Extended_Pictographic}])|\u{1f3f4}[\u{e0030}-\u{e0039}\u{e0061}-\u{e007a}]{1,6}\u{e007f})|\p{C}/gu;

/** Control characters could tell a terminal to do things, and others hide what is there. */
export function printable(text: string): string {
  return text.replace(joined, (_, kept: string | undefined) => kept ?? "�");
}
