// W3C Trace Context: whoever asks for a run may name the trace that it is a part of.

import type { IncomingMessage } from "node:http";
import type { Scope } from "@runwire/protocol";

export const traceHeader = { traceparent: "the trace that the run is a part of (W3C Trace Context)" };

const pattern = /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(?:-|$)/;

/** What is malformed is ignored, as the standard says: a trace is never worth a refusal. */
export function traceOf({ headers }: IncomingMessage): { readonly scope?: Scope } {
  const given = headers.traceparent;
  const [, trace_id, span_id] = (typeof given === "string" && pattern.exec(given)) || [];
  if (trace_id === undefined || span_id === undefined || given?.slice(0, 2) === "ff") return {};
  if (/^0+$/.test(trace_id) || /^0+$/.test(span_id)) return {};
  return { scope: { trace_id, span_id } };
}
