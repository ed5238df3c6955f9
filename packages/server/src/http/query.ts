// Query parameters that several routes share, and the cursors they carry.

import type { IncomingMessage } from "node:http";
import { type Dialect, dialects, koder, loom, loomExport, type View } from "@runwire/protocol";
import { z } from "zod";
import { badParam } from "./check.js";
import { id } from "./shapes.js";

export const dialectParam = (fallback: string) =>
  z
    .enum([...dialects.keys()])
    .default(fallback)
    .transform((name) => dialects.get(name) as Dialect)
    .describe("the wire protocol");

export const detailParam = z
  .enum(["default", "full"])
  .optional()
  .describe("`full` for every delta as it was produced");

export const limitParam = (fallback: number, max: number) =>
  z.coerce.number().int().min(1).max(max).default(fallback).describe("how many at most");

/** Where a list of runs goes on. */
export const nextParam = id
  .startsWith("run_", { error: "takes the `next` of a page" })
  .optional()
  .describe("the `next` of the page before");

export const flagParam = z
  .enum(["0", "1"])
  .default("0")
  .transform((value) => value === "1");

/** These have no word for a snapshot: without the name that SSE gives it, it would be taken for a message of theirs. */
const wordless: ReadonlySet<string> = new Set([koder.name, loom.name, loomExport.name]);

export function checkSnapshot(
  { snapshot, dialect: { name } }: { readonly snapshot: boolean; readonly dialect: Dialect },
  framing: "NDJSON" | "WebSocket",
): void {
  if (snapshot && wordless.has(name))
    throw badParam("`snapshot`", `must be 0 on ${framing} of dialect ${name}`);
}

/** A ticket is taken by the gate; the handlers need not know it. */
export const ticketParam = z.string().optional().describe("a stream ticket, instead of a header");

const cursorNames = ["after", "last_event_id", "after_seq"] as const;

/** The parameters of every stream. */
export const streamParams = {
  dialect: dialectParam("koder"),
  detail: detailParam,
  backpressure: z
    .enum(["drop", "lossless"])
    .optional()
    .describe("whether deltas are skipped when the reader falls behind; the dialect's own habit by default"),
  ticket: ticketParam,
};

/** Where a stream begins. */
export const cursorParams = {
  after: z.string().optional().describe("resume after this number; wins over `Last-Event-ID`"),
  last_event_id: z.string().optional().describe("the same as `after`"),
  after_seq: z.string().optional().describe("the same as `after`"),
};

export type Cursors = { readonly [N in (typeof cursorNames)[number]]?: string | undefined };

/** The view that is asked for; on a WebSocket a header may say so too. */
export function viewOf({ detail }: { readonly detail?: View | undefined }, req?: IncomingMessage): View {
  const view = detail ?? req?.headers.detail ?? "default";
  if (view !== "full" && view !== "default") throw badParam("the header `Detail`", "takes full or default");
  return view;
}

/** A dialect that numbers its messages says all of them, or the numbers would mean nothing. */
export function backpressureOf({
  backpressure,
  dialect,
}: {
  readonly backpressure?: Dialect["backpressure"] | undefined;
  readonly dialect: Dialect;
}): Dialect["backpressure"] {
  if (backpressure === "drop" && typeof dialect.cursor === "object")
    throw badParam("`backpressure`", `takes lossless in dialect ${dialect.name}`);
  return backpressure ?? dialect.backpressure;
}

/** Whether the address itself has one; `EventSource` says its own in a header. */
export function hasCursor(query: Cursors): boolean {
  return cursorNames.some((name) => query[name] !== undefined);
}

/** The cursor that a client sent: the query wins over the header, even where it is unusable. */
export function cursorText(query: Cursors, req: IncomingMessage): string | undefined {
  for (const name of cursorNames) if (query[name] !== undefined) return query[name];
  const header = req.headers["last-event-id"];
  return Array.isArray(header) ? header[0] : header;
}

export function framingOf(req: IncomingMessage): "sse" | "ndjson" {
  return (req.headers.accept ?? "").includes("application/x-ndjson") ? "ndjson" : "sse";
}
