// What a command reads: messages in any dialect, one a line, of a file or a pipe. Of lines that are wrong it is told what
// is, and they are left out.

import { createReadStream } from "node:fs";
import type { Event, LogReader } from "@runwire/protocol";
import { type BadLines, badLines, counted, nameOf, violationOf } from "./bad-lines.js";
import { type NumberedLine, numberedLines } from "./numbered-lines.js";
import type { Progress } from "./progress.js";

export interface Input {
  readonly bad: BadLines;
  /** Of what was read so far; blank lines count. */
  readonly lineCount: number;
  /** How many lines there were, and how many of them bad, in words. */
  readonly summary: string;
  /** The lines that each piece of it completed. */
  pieces(): AsyncIterable<readonly NumberedLine[]>;
}

interface InputOptions {
  /** Where it is told what is wrong. */
  readonly tell?: NodeJS.WriteStream;
  readonly shown?: Progress;
}

const pieceBytes = 256 * 1024;
const unseen: Progress = { at() {}, clear() {} };

/** Of stdin, where there is no file. */
export function openInput(
  file: string | undefined,
  { tell = process.stderr, shown = unseen }: InputOptions = {},
): Input {
  const bad = badLines(file, tell, shown.clear);
  let lineCount = 0;
  return {
    bad,
    get lineCount() {
      return lineCount;
    },
    get summary() {
      return `${nameOf(file)}: ${counted(lineCount, "line")}, ${bad.count.toLocaleString("en")} bad`;
    },
    async *pieces() {
      try {
        for await (const { lines, bytes, count } of numberedLines(bytesOf(file))) {
          lineCount = count;
          yield lines;
          shown.at(bytes);
        }
      } catch (error) {
        throw inWords(error, file);
      } finally {
        shown.clear();
      }
    },
  };
}

/** Nothing where the line is wrong. */
export function readLine(reader: LogReader, line: NumberedLine, bad: BadLines): readonly Event[] {
  try {
    if ("error" in line) throw line.error;
    return reader.read(line.text);
  } catch (error) {
    bad.tell(line.number, violationOf(error));
    return [];
  }
}

function bytesOf(file: string | undefined): AsyncIterable<Uint8Array> {
  if (file === undefined || file === "-") return process.stdin;
  return createReadStream(file, { highWaterMark: pieceBytes });
}

/** A file that cannot be read. */
function inWords(error: unknown, file: string | undefined): unknown {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  const why = { ENOENT: "there is no such file", EISDIR: "it is a folder", EACCES: "it may not be read" }[
    String(code)
  ];
  return why === undefined ? error : new Error(`${nameOf(file)}: ${why}`, { cause: error });
}
