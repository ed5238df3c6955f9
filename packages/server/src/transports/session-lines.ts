// The lines of a body that comes in chunks. Only whole lines are looked at, so that a chunk which holds a bad one
// still gives those before it.

import { lineSplitter, RunwireError } from "@runwire/protocol";
import { gatheredBytes } from "../http/gathered.js";

export interface SessionLines {
  readonly lines: readonly string[];
  /** Why the line after them is none. */
  readonly bad?: RunwireError;
}

export interface SessionLineReader {
  /** The lines that this chunk completes. */
  push(chunk: Buffer): SessionLines;
  /** What is left when the input ends: a last line without its line break. */
  end(): SessionLines;
}

const lineFeed = 10;

export function sessionLines(lineBytesMax: number): SessionLineReader {
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  const splitter = lineSplitter(lineBytesMax);
  /** A line whose end has not come. */
  const torn = gatheredBytes();

  function decode(bytes: Buffer): string {
    try {
      return decoder.decode(bytes);
    } catch (cause) {
      throw new RunwireError("KAI-REQUEST-BODY-0001", "it is not valid UTF-8", { cause });
    }
  }

  function read(bytes: Buffer): SessionLines {
    try {
      return { lines: [...splitter.push(decode(bytes)), ...splitter.end()] };
    } catch {
      return readToBad(bytes);
    }
  }

  /** Line by line: the whole has been tried. */
  function readToBad(bytes: Buffer): SessionLines {
    const again = lineSplitter(lineBytesMax);
    const lines: string[] = [];
    try {
      for (let at = 0; at < bytes.length; ) {
        const lineEnd = bytes.indexOf(lineFeed, at);
        const next = lineEnd < 0 ? bytes.length : lineEnd + 1;
        lines.push(...again.push(decode(bytes.subarray(at, next))), ...again.end());
        at = next;
      }
    } catch (error) {
      if (error instanceof RunwireError) return { lines, bad: error };
      throw error;
    }
    return { lines };
  }

  function take(bytes: Buffer): Buffer {
    if (torn.length === 0) return bytes;
    torn.add(bytes);
    return torn.take();
  }

  return {
    push(chunk) {
      const wholeEnd = chunk.lastIndexOf(lineFeed) + 1;
      const found = wholeEnd === 0 ? { lines: [] } : read(take(chunk.subarray(0, wholeEnd)));
      torn.add(chunk.subarray(wholeEnd));
      // One more than the limit: the last may be the CR of a line break that is cut in two.
      if (found.bad !== undefined || torn.length <= lineBytesMax + 1) return found;
      const detail = `a line is longer than ${lineBytesMax} bytes`;
      return { lines: found.lines, bad: new RunwireError("KAI-REQUEST-SIZE-0001", detail) };
    },
    end: () => read(take(Buffer.alloc(0))),
  };
}
