// What is wrong with an input, line by line, for people and for programs that read `FILE:LINE:`.

import { RunwireError, type Violation } from "@runwire/protocol";
import { paintFor } from "../terminal.js";
import { oneLine } from "../watch/harmless.js";

export interface BadLines {
  readonly count: number;
  tell(line: number, wrong: Violation): void;
}

const whatCharsMax = 400;

export function badLines(
  file: string | undefined,
  to: NodeJS.WriteStream,
  before: () => void = () => {},
): BadLines {
  const name = nameOf(file);
  const paint = paintFor(to, process.env);
  let count = 0;
  let last = 0;
  return {
    get count() {
      return count;
    },
    tell(line, { rule, what }) {
      // Several things may be wrong with one line.
      if (line !== last) count += 1;
      last = line;
      before();
      to.write(`${name}:${line}: ${paint("red", rule)}: ${oneLine(what).slice(0, whatCharsMax)}\n`);
    },
  };
}

/** Throws whatever is no fault of the line. */
export function violationOf(error: unknown): Violation {
  if (!(error instanceof RunwireError)) throw error;
  return { rule: error.code, what: error.message };
}

export function nameOf(file: string | undefined): string {
  return file === undefined || file === "-" ? "stdin" : oneLine(file);
}

export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}
