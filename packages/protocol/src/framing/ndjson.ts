// One JSON text a line. Lines end with LF; one CR before it is dropped; blank lines (keep-alives) and a
// byte order mark at the start are ignored.

import { RunwireError } from "../errors.js";

export interface LineSplitter {
  /** The lines that this text completes. Throws SIZE-0001 when a line grows over the limit. */
  push(text: string): readonly string[];
  /** What is left when the input ends: a last line without its line break. */
  end(): readonly string[];
}

export function lineSplitter(lineCharsMax: number): LineSplitter {
  let rest = "";
  let begun = false;

  function take(lines: readonly string[]): readonly string[] {
    const taken: string[] = [];
    for (const raw of lines) {
      const line = raw.endsWith("\r") ? raw.slice(0, -1) : raw;
      if (line.length > lineCharsMax) throw tooLong(lineCharsMax);
      if (line.trim() !== "") taken.push(line);
    }
    return taken;
  }

  return {
    push(text) {
      let input = text;
      if (!begun && input !== "") {
        begun = true;
        if (input.startsWith("\uFEFF")) input = input.slice(1);
      }
      // Only the new text is searched: a long line that comes in many pieces stays linear.
      const lines = input.split("\n");
      lines[0] = rest + lines[0];
      rest = lines.pop() ?? "";
      // One more than the limit: the last character may be the CR of a line break that is cut in two.
      if (rest.length > lineCharsMax + 1) throw tooLong(lineCharsMax);
      return take(lines);
    },
    end() {
      const last = rest;
      rest = "";
      return take([last]);
    },
  };
}

function tooLong(lineCharsMax: number): RunwireError {
  return new RunwireError("KAI-REQUEST-SIZE-0001", `a line is longer than ${lineCharsMax} characters`);
}
