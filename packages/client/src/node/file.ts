// A log on disk or on stdin, one JSON text a line: what `replay.jsonl` gives. It is read once and its end is
// the end, whether or not the run in it has ended.

import { createReadStream } from "node:fs";
import { addAbortSignal, type Readable } from "node:stream";
import { koder, lineSplitter, type Message, RunwireError, runwire } from "@runwire/protocol";
import { limits } from "../limits.js";
import type { Batches, Source } from "../sources/source.js";

export interface FileOptions {
  readonly dialect?: "runwire" | "koder";
}

export function fileSource(path: string, options: FileOptions = {}): Source {
  return linesFrom(() => createReadStream(path), options);
}

/** `lineSource(process.stdin)`. */
export function lineSource(input: Readable, options: FileOptions = {}): Source {
  return linesFrom(() => input, options);
}

function linesFrom(openInput: () => Readable, options: FileOptions): Source {
  let opened = false;
  return {
    dialect: options.dialect === "koder" ? koder : runwire,
    runs: [],
    // Whoever types or tails may take their time; this is the longest that timers know.
    silenceMsMax: 2 ** 31 - 1,
    open(_at, signal) {
      if (opened) throw new RunwireError("KAI-STREAM-PROTO-0001", "the input holds two logs of one run");
      opened = true;
      return readLines(addAbortSignal(signal, openInput()));
    },
  };
}

async function* readLines(input: Readable): Batches {
  const lines = lineSplitter(limits.frameCharsMax);
  const decoder = new TextDecoder();
  const messages = (texts: readonly string[]): readonly Message[] => texts.map((data) => ({ data }));
  for await (const piece of input as AsyncIterable<Uint8Array | string>) {
    yield messages(lines.push(typeof piece === "string" ? piece : decoder.decode(piece, { stream: true })));
  }
  // Here a last line without its line break counts: someone wrote it by hand.
  yield messages(lines.end());
  return { close: "finished" };
}
