// Query parameters and cursors of streams and pages.

import type { IncomingMessage } from "node:http";
import { type Dialect, dialects, RunwireError, type View } from "@runwire/protocol";
import type { Head } from "../log/head.js";
import type { RunKey, Store } from "../store.js";

export function dialectOf(query: URLSearchParams, fallback: string): Dialect {
  const name = query.get("dialect") ?? fallback;
  const dialect = dialects.get(name);
  if (dialect === undefined) throw badParam("dialect", `one of ${[...dialects.keys()].join(", ")}`);
  return dialect;
}

export function viewOf(query: URLSearchParams, req?: IncomingMessage): View {
  const detail = query.get("detail") ?? req?.headers.detail ?? "default";
  if (detail !== "full" && detail !== "default") throw badParam("detail", "`full` or `default`");
  return detail;
}

export function limitOf(query: URLSearchParams, fallback: number, max: number): number {
  const text = query.get("limit");
  if (text === null) return fallback;
  const limit = Number(text);
  if (!Number.isInteger(limit) || limit < 1 || limit > max) {
    throw badParam("limit", `a whole number from 1 to ${max}`);
  }
  return limit;
}

export function flagOf(query: URLSearchParams, name: string): boolean {
  const value = query.get(name);
  if (value === null || value === "0") return false;
  if (value === "1") return true;
  throw badParam(name, "0 or 1");
}

export function badParam(name: string, takes: string): RunwireError {
  return new RunwireError("KAI-STREAM-PARAM-0001", `\`${name}\` takes ${takes}`);
}

/** The cursor that a client sent: the query wins over the header, even where it is unusable. */
export function cursorText(query: URLSearchParams, req: IncomingMessage): string | undefined {
  for (const name of ["after", "last_event_id", "after_seq"]) {
    const value = query.get(name);
    if (value !== null) return value;
  }
  const header = req.headers["last-event-id"];
  return Array.isArray(header) ? header[0] : header;
}

export interface Resume {
  /** Position after which to read, and the same in the dialect's own number. */
  readonly after: number;
  readonly number: number;
  /** Whether the client has had everything there is. */
  readonly atEnd: boolean;
}

/**
 * Where a cursor points. A cursor is a number of the dialect and view it was read from; one that is empty,
 * unusable or ahead of the log means the start, because skipping silently would lose events.
 */
export async function resumeFrom(
  store: Store,
  head: Head,
  dialect: Dialect,
  view: View,
  cursor: string | undefined,
): Promise<Resume> {
  const start = { after: 0, number: 0, atEnd: false };
  if (cursor === undefined || !/^[0-9]{1,15}$/.test(cursor)) return start;
  const number = Number(cursor);
  const at = head.views[view];
  if (number === 0 || number > at[dialect.cursor]) return start;
  const atEnd = number === at[dialect.cursor];
  if (dialect.cursor === "pos") return { after: number, number, atEnd };
  const key: RunKey = { tenant: head.run.tenant, run_id: head.run.run_id };
  return { after: await store.posOfSeq(key, view, number), number, atEnd };
}

export function framingOf(req: IncomingMessage): "sse" | "ndjson" {
  return (req.headers.accept ?? "").includes("application/x-ndjson") ? "ndjson" : "sse";
}

export function backpressureOf(query: URLSearchParams, dialect: Dialect): "drop" | "lossless" {
  const value = query.get("backpressure");
  if (value === null) return dialect.backpressure;
  if (value === "drop" || value === "lossless") return value;
  throw badParam("backpressure", "`drop` or `lossless`");
}
