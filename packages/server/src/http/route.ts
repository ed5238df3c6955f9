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
  const table = routes.map((route) => ({ route, segments: route.path.split("/") }));
  return (method, path) => {
    const segments = path.split("/");
    const allowed: string[] = [];
    for (const { route, segments: pattern } of table) {
      const params = match(pattern, segments);
      if (params === undefined) continue;
      if (route.method === method) return { route, params };
      allowed.push(route.method);
    }
    if (allowed.length > 0) throw new MethodNotAllowed([...new Set(allowed)].join(", "));
    throw new RunwireError("KAI-REQUEST-PATH-0001");
  };
}

export class MethodNotAllowed extends RunwireError {
  constructor(readonly allow: string) {
    super("KAI-REQUEST-METHOD-0001", `this route takes ${allow}`);
  }
}

function match(
  pattern: readonly string[],
  segments: readonly string[],
): ReadonlyMap<string, string> | undefined {
  if (pattern.length !== segments.length) return undefined;
  const params = new Map<string, string>();
  for (const [i, part] of pattern.entries()) {
    const segment = segments[i] ?? "";
    if (part.startsWith(":")) params.set(part.slice(1), segment);
    else if (part !== segment) return undefined;
  }
  return params;
}
