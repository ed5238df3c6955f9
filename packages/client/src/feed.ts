// The list of runs as it changes: first what there is, then each change, across connections. A cursor that the server no
// longer keeps gets the list again, and is told so.

import { isObject, type Message, RunwireError } from "@runwire/protocol";
import type { RunRecord } from "./answers.js";
import { type Endpoint, queryOf } from "./http.js";
import { limits } from "./limits.js";
import { type Reader, type ReconnectOptions, reconnecting } from "./reconnect.js";
import { readSse } from "./sources/sse.js";

export type RunChange =
  /** The newest runs; `reset` where they take the place of changes that are no longer kept. */
  | {
      readonly kind: "snapshot";
      readonly pos: number;
      readonly reset: boolean;
      readonly runs: readonly RunRecord[];
    }
  | {
      readonly kind: "change";
      readonly pos: number;
      readonly run_id: string;
      readonly type: string;
      /** When it happened. */
      readonly ts: string;
    };

export interface FollowRunsOptions extends Endpoint, Omit<ReconnectOptions, "clock"> {
  /** The `pos` of the last change that was had. */
  readonly after?: number;
}

/** It has no end: it throws a RunwireError that no retry mends, or the signal's reason. */
export function followRuns(options: FollowRunsOptions): AsyncGenerator<readonly RunChange[], void> {
  let { after } = options;
  const reader: Reader<RunChange> = {
    at: () => new Map(),
    async *take(messages) {
      const changes = messages.filter(({ event }) => event !== "closing").map(changeOf);
      after = changes.at(-1)?.pos ?? after;
      if (changes.length > 0) yield changes;
      return changes.length < messages.length ? { close: "leaving" } : undefined;
    },
  };
  const source = {
    silenceMsMax: limits.silenceMsMax,
    open: (_at: unknown, aborted: AbortSignal) =>
      readSse(options, `/v1/agent/runs/stream${queryOf({ after })}`, aborted),
  };
  return reconnecting(source, reader, options);
}

function changeOf({ data }: Message): RunChange {
  const value: unknown = JSON.parse(data);
  if (isObject(value) && typeof value.pos === "number") {
    const { type, pos, reset, runs, run_id, ts } = value;
    if (type === "snapshot" && Array.isArray(runs))
      return { kind: "snapshot", pos, reset: reset === true, runs: runs as readonly RunRecord[] };
    if (typeof run_id === "string" && typeof type === "string" && typeof ts === "string")
      return { kind: "change", pos, run_id, type, ts };
  }
  throw new RunwireError(
    "KAI-STREAM-PROTO-0001",
    "a change of the run list needs `pos`, `run_id`, `type` and `ts`",
  );
}
