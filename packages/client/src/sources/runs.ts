// Several runs on one SSE connection. Its id-only blocks are for EventSource; here every event brings its
// own run and number, so the cursors are known without them.

import { RunwireError, limits as wire } from "@runwire/protocol";
import { queryOf } from "../http.js";
import { limits } from "../limits.js";
import { dialectOf, pagesOf, type StreamOptions, streamQuery } from "./run-stream.js";
import type { Cursors, Source } from "./source.js";
import { readSse } from "./sse.js";

export interface RunsStreamOptions extends StreamOptions {
  readonly runs: readonly string[];
}

export function runsSource(stream: RunsStreamOptions): Source {
  if (stream.runs.length > wire.runsPerStreamMax) {
    throw new RunwireError(
      "KAI-STREAM-PARAM-0001",
      `at most ${wire.runsPerStreamMax} runs on one connection`,
    );
  }
  return {
    dialect: dialectOf(stream),
    runs: stream.runs,
    silenceMsMax: limits.silenceMsMax,
    open: (at, signal) => readSse(stream, runsPath(stream, at), signal),
    page: pagesOf(stream),
  };
}

function runsPath(stream: RunsStreamOptions, at: Cursors): string {
  // Always with its number: a run id may itself hold a colon.
  const runs = [...at].map(([run_id, after]) => `${run_id}:${after}`);
  return `/v1/agent/stream${queryOf({ ...streamQuery(stream), runs: runs.join(",") })}`;
}
