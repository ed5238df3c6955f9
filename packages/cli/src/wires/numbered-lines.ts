// Lines of a file or a pipe, each with its number. What is wrong with a line is told of that line alone: one that is too
// long is skipped to its end, and memory holds one piece and one line whatever comes.

import { isUtf8 } from "node:buffer";
import { limits, RunwireError } from "@runwire/protocol";

/** Counted from 1; blank lines count and are left out. */
export type NumberedLine =
  | { readonly number: number; readonly text: string }
  | { readonly number: number; readonly error: RunwireError };

/** What one piece of the input completed. */
export interface Lines {
  readonly lines: readonly NumberedLine[];
  /** Of the input, so far. */
  readonly bytes: number;
  readonly count: number;
}

const lineFeed = 0x0a;

export async function* numberedLines(
  input: AsyncIterable<Uint8Array>,
  lineBytesMax: number = limits.lineBytesMax,
): AsyncGenerator<Lines, void> {
  let parts: Uint8Array[] = [];
  let held = 0;
  let bytes = 0;
  let count = 0;

  /** The rest of a line that is too long is counted and not kept. */
  function hold(part: Uint8Array): void {
    held += part.length;
    if (held > lineBytesMax + 1) parts = [];
    else if (part.length > 0) parts.push(part);
  }

  function complete(): NumberedLine | undefined {
    const line = lineOf(parts, held, count, lineBytesMax);
    parts = [];
    held = 0;
    return line;
  }

  for await (const piece of input) {
    const lines: NumberedLine[] = [];
    let from = 0;
    for (let at = piece.indexOf(lineFeed); at !== -1; at = piece.indexOf(lineFeed, from)) {
      hold(piece.subarray(from, at));
      count += 1;
      const line = complete();
      if (line !== undefined) lines.push(line);
      from = at + 1;
    }
    hold(piece.subarray(from));
    bytes += piece.length;
    yield { lines, bytes, count };
  }
  if (held === 0) return;
  // A last line without its line break counts: someone wrote it by hand.
  count += 1;
  const last = complete();
  yield { lines: last === undefined ? [] : [last], bytes, count };
}

function lineOf(
  parts: readonly Uint8Array[],
  held: number,
  number: number,
  lineBytesMax: number,
): NumberedLine | undefined {
  if (held > lineBytesMax + 1) return { number, error: tooLong(lineBytesMax) };
  const whole = Buffer.concat(parts);
  if (!isUtf8(whole)) return { number, error: new RunwireError("KAI-STREAM-PROTO-0001", "it is not UTF-8") };
  const raw = whole.toString("utf8");
  const line = raw.endsWith("\r") ? raw.slice(0, -1) : raw;
  const text = number === 1 && line.startsWith("\uFEFF") ? line.slice(1) : line;
  return text.trim() === "" ? undefined : { number, text };
}

function tooLong(lineBytesMax: number): RunwireError {
  return new RunwireError("KAI-REQUEST-SIZE-0001", `the line is longer than ${lineBytesMax} bytes`);
}
