// What the sources of `GET /v1/agent/runs/:id/stream` have in common: the address, and pages for repair.

import { isObject, koder, type LogDialect, type Message, runwire } from "@runwire/protocol";
import { askJson, type Endpoint, queryOf, type Refusal, runPath } from "../http.js";
import type { Cursors, Ending, Source } from "./source.js";

export interface StreamOptions extends Endpoint {
  /**
   * `runwire` (every type, cursor `pos`) unless told otherwise; `koder` has the eight core types, cursor `seq`.
   * The others have no numbers of the log, which following needs.
   */
  readonly dialect?: "runwire" | "koder";
  /** Every token boundary instead of the shaped log. */
  readonly detail?: "full";
  readonly backpressure?: "drop" | "lossless";
}

export interface RunStreamOptions extends StreamOptions {
  readonly run_id: string;
  /** Begin with a snapshot instead of the first event. */
  readonly snapshot?: boolean;
}

export function dialectOf(stream: StreamOptions): LogDialect {
  return stream.dialect === "koder" ? koder : runwire;
}

export function streamQuery(stream: StreamOptions): { readonly [name: string]: string | undefined } {
  return { dialect: dialectOf(stream).name, detail: stream.detail, backpressure: stream.backpressure };
}

export function runStreamPath(stream: RunStreamOptions, at: Cursors, ticket?: string): string {
  const after = at.get(stream.run_id) || undefined;
  const snapshot = stream.snapshot && after === undefined ? 1 : undefined;
  return runPath(stream.run_id, `/stream${queryOf({ ...streamQuery(stream), after, snapshot, ticket })}`);
}

/** `GET …/events`: the stored events that a stream left out. */
export function pagesOf(stream: StreamOptions): NonNullable<Source["page"]> {
  return async (run_id, after, eventsMax, signal): Promise<readonly Message[] | Ending> => {
    const query = queryOf({
      dialect: dialectOf(stream).name,
      detail: stream.detail,
      after,
      limit: eventsMax,
    });
    const answer = await askJson(stream, { path: runPath(run_id, `/events${query}`), signal });
    if (!answer.ok) return endingOf(answer);
    const events = isObject(answer.value) && Array.isArray(answer.value.events) ? answer.value.events : [];
    return events.map((event) => ({ data: JSON.stringify(event) }));
  };
}

/** A refusal is a broken connection where asking again may help, and an error where not. */
export function endingOf(refusal: Refusal): Ending {
  if (!refusal.again) throw refusal.error;
  return { close: "broken", retryMs: refusal.retryMs, cause: refusal.error };
}
