// Hot rows on their way to the thread that writes them: one text for all of a commit's, because a thread is handed a text
// for a fraction of what lists of columns cost. A row is a line of its columns, and its checksum is that of the line.
//
//   row ⏎ id ⏎ ts ⏎ type ⏎ tenant ⏎ by_run ⏎ payload ⏎ scope ⏎ places ⏎ covers ⏎ producer
//
// No column holds a line break or a control character: JSON escapes them, and ids have none. What is null is empty.

import { crc32 } from "node:zlib";

type Column = string | number | null;

const rowEnd = "\x1e";

export function hotLine(columns: readonly Column[]): string {
  return columns.join("\n");
}

export function joinHotLines(lines: readonly string[]): string {
  return lines.join(rowEnd);
}

export function hotLines(text: string): readonly string[] {
  return text.split(rowEnd);
}

/** The columns of a line, and its checksum, as they are stored. */
export function hotColumns(line: string): readonly Column[] {
  const columns: Column[] = line.split("\n");
  for (const at of [7, 9, 10]) if (columns[at] === "") columns[at] = null;
  columns[0] = Number(columns[0]);
  if (columns[9] !== null) columns[9] = Number(columns[9]);
  columns.push(hotChecksum(line));
  return columns;
}

export function hotChecksum(line: string): number {
  return crc32(line);
}
