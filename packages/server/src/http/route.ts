// Routes are data: a method, a path and a handler. The table is what tests, documents and the gate walk through.

import type { IncomingMessage, ServerResponse } from "node:http";
import { RunwireError } from "@runwire/protocol";
import type { RunKey } from "../store.js";

export interface Call {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly query: URLSearchParams;
  readonly tenant: string;
  /** A path parameter, checked to be an id. */
  param(name: string): string;
  /** The run that the path names. */
  readonly run: RunKey;
}

/** What a handler answers; nothing where it has answered itself, as streams do. */
export interface Reply {
  readonly status: number;
  readonly body?: unknown;
  /** A JSON text, where the body is one already. */
  readonly text?: string;
  readonly headers?: { readonly [name: string]: string };
}

export interface Route {
  readonly method: "GET" | "POST" | "DELETE";
  /** `/v1/agent/runs/:id` — a segment that begins with `:` is a parameter. */
  readonly path: string;
  /** One line for the documents. */
  readonly does: string;
  handle(call: Call): Promise<Reply | undefined>;
}

export interface Found {
  readonly route: Route;
  readonly params: ReadonlyMap<string, string>;
}

/** Finds a route, or throws 404 for an unknown path and 405, with what is allowed, for another method. */
export function router(routes: readonly Route[]): (method: string, path: string) => Found {
  const byLength = new Map<number, { readonly route: Route; readonly pattern: readonly string[] }[]>();
  for (const route of routes) {
    const pattern = route.path.split("/");
    byLength.set(pattern.length, [...(byLength.get(pattern.length) ?? []), { route, pattern }]);
  }
  return (method, path) => {
    const segments = path.split("/");
    const allowed = new Set<string>();
    for (const { route, pattern } of byLength.get(segments.length) ?? []) {
      if (!matches(pattern, segments)) continue;
      if (route.method === method) return { route, params: paramsOf(pattern, segments) };
      allowed.add(route.method);
    }
    if (allowed.size > 0) throw new MethodNotAllowed([...allowed].join(", "));
    throw new RunwireError("KAI-REQUEST-PATH-0001");
  };
}

export class MethodNotAllowed extends RunwireError {
  constructor(readonly allow: string) {
    super("KAI-REQUEST-METHOD-0001", `this route takes ${allow}`);
  }
}

function matches(pattern: readonly string[], segments: readonly string[]): boolean {
  return pattern.every((part, i) => (part.startsWith(":") ? segments[i] !== "" : part === segments[i]));
}

/** A segment as it was before it was put into an address; one that never was is nobody's id. */
function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return "";
  }
}

function paramsOf(pattern: readonly string[], segments: readonly string[]): ReadonlyMap<string, string> {
  const params = new Map<string, string>();
  for (const [i, part] of pattern.entries())
    if (part.startsWith(":")) params.set(part.slice(1), decoded(segments[i] ?? ""));
  return params;
}
