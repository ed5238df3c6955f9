// One JSON text a line over fetch. Blank lines are keep-alives.

import { lineSplitter } from "@runwire/protocol";
import { limits } from "../limits.js";
import { readBody } from "./body.js";
import { dialectOf, pagesOf, type RunStreamOptions, runStreamPath } from "./run-stream.js";
import type { Batches, Source } from "./source.js";

export function ndjsonSource(stream: RunStreamOptions): Source {
  return {
    dialect: dialectOf(stream),
    runs: [stream.run_id],
    silenceMsMax: limits.silenceMsMax,
    open: (at, signal) => readNdjson(stream, runStreamPath(stream, at), signal),
    page: pagesOf(stream),
  };
}

// The splitter's rest is never asked for: a line that the end cut off may be half a line, and comes again.
function readNdjson(stream: RunStreamOptions, path: string, signal: AbortSignal): Batches {
  const lines = lineSplitter(limits.frameCharsMax);
  return readBody(stream, { path, accept: "application/x-ndjson", signal }, (text) =>
    lines.push(text).map((data) => ({ data })),
  );
}
