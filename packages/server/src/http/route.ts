// Routes are data: what is asked, who may ask it, what is answered. The table is what the server, the gate, the
// documents and the tests walk through.

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { RunwireError } from "@runwire/protocol";
import { z } from "zod";
import type { Caller, Scope } from "../auth/caller.js";
import type { RunKey } from "../store.js";

/** What is asked, before it is known who asks. */
export interface Question<Query = unknown> {
  readonly req: IncomingMessage;
  readonly query: Query;
  /** A path parameter, checked to be an id. */
  param(name: string): string;
}

/** What a transport needs to know of who asks for what. */
export interface Asked<Query = unknown> extends Question<Query> {
  readonly requestId: string;
  readonly caller: Caller;
  readonly tenant: string;
  /** The run that the path names; nobody's where it names none. */
  readonly run: RunKey;
}

export interface Call<Query = unknown, Body = unknown> extends Asked<Query> {
  readonly res: ServerResponse;
  readonly body: Body;
  /** For handlers that answer themselves: the head, with what every answer carries. */
  begin(status: number, headers: { readonly [name: string]: string | number }): void;
}

export interface Upgrade<Query = unknown> extends Asked<Query> {
  readonly socket: Duplex;
  readonly head: Buffer;
  /** The connection has become a WebSocket. */
  accepted(): void;
}

/** What a handler answers; nothing where it has answered itself, as streams do. */
export interface Reply {
  readonly status: number;
  readonly body?: unknown;
  /** A text, where the body is one already: JSON unless the headers say otherwise. */
  readonly text?: string;
  readonly headers?: { readonly [name: string]: string };
}

/** An answer as the documents tell it. */
export interface Answer {
  readonly does: string;
  /** Media type → what it holds; nothing where there is no body. */
  readonly content?: { readonly [mediaType: string]: z.ZodType };
}

export interface Route {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** `/v1/agent/runs/:id` — a segment that begins with `:` is a parameter. */
  readonly path: string;
  /** One line for the documents. */
  readonly does: string;
  /** What the caller must hold; `any` takes every credential, `anyone` asks for none. */
  readonly scope: Scope | "any" | "anyone";
  readonly query: z.ZodObject;
  /** A JSON object that is read and checked before the handler is called. */
  readonly body: z.ZodType | null;
  /** Bodies that the handler reads itself. */
  readonly raw: { readonly [mediaType: string]: z.ZodType } | null;
  /** Request headers that change the answer, with what they do. */
  readonly headers: { readonly [name: string]: string };
  readonly answers: { readonly [status: number]: Answer };
  /** Answers for as long as its client listens. */
  readonly streams: boolean;
  /** What a stream ticket must be bound to; null where tickets are not taken. */
  readonly ticket: ((asked: Question) => readonly string[]) | null;
  handle(call: Call): Promise<Reply | undefined>;
  readonly upgrade: ((upgrade: Upgrade) => Promise<void>) | null;
}

interface Given<Q extends z.ZodObject, B extends z.ZodType>
  extends Pick<Route, "method" | "path" | "does" | "scope" | "answers">,
    Partial<Pick<Route, "raw" | "headers" | "streams">> {
  readonly query?: Q;
  readonly body?: B;
  ticket?(asked: Question<z.output<Q>>): readonly string[];
  handle(call: Call<z.output<Q>, z.output<B>>): Promise<Reply | undefined>;
  upgrade?(upgrade: Upgrade<z.output<Q>>): Promise<void>;
}

const nothing = z.strictObject({});

/** One row of the table. What is parsed by its schemas is what its handlers are typed to get. */
export function route<Q extends z.ZodObject = typeof nothing, B extends z.ZodType = z.ZodNull>(
  row: Given<Q, B>,
): Route {
  return {
    query: nothing,
    body: null,
    raw: null,
    headers: {},
    streams: false,
    ticket: null,
    upgrade: null,
    ...(row as unknown as Pick<Route, "method" | "path" | "does" | "scope" | "answers" | "handle">),
  };
}

export interface Found {
  readonly route: Route;
  readonly params: ReadonlyMap<string, string>;
}

export interface Router {
  /** Finds a route, or throws 404 for an unknown path and 405, with what is allowed, for another method. */
  find(method: string, path: string): Found;
  /** The methods of a path; empty where there is none. */
  methods(path: string): readonly string[];
}

export function router(routes: readonly Route[]): Router {
  const byLength = new Map<number, { readonly route: Route; readonly pattern: readonly string[] }[]>();
  for (const route of routes) {
    const pattern = route.path.split("/");
    byLength.set(pattern.length, [...(byLength.get(pattern.length) ?? []), { route, pattern }]);
  }

  function methods(path: string): readonly string[] {
    const segments = segmentsOf(path);
    const found = (byLength.get(segments.length) ?? []).filter(({ pattern }) => matches(pattern, segments));
    return [...new Set(found.flatMap(({ route }) => methodsOf(route)))];
  }

  return {
    methods,
    find(method, path) {
      const segments = segmentsOf(path);
      for (const { route, pattern } of byLength.get(segments.length) ?? []) {
        if (takesMethod(route, method) && matches(pattern, segments))
          return { route, params: paramsOf(pattern, segments) };
      }
      const allowed = methods(path);
      if (allowed.length > 0) throw new MethodNotAllowed(allowed.join(", "));
      throw new RunwireError("KAI-REQUEST-PATH-0001");
    },
  };
}

/** `split`, which is slower on a text that was never seen before. */
function segmentsOf(path: string): readonly string[] {
  const segments: string[] = [];
  let from = 0;
  for (let at = path.indexOf("/"); at >= 0; at = path.indexOf("/", from)) {
    segments.push(path.slice(from, at));
    from = at + 1;
  }
  segments.push(path.slice(from));
  return segments;
}

/** A GET may be asked for its head alone, but for streams, which have little else to say for themselves. */
function methodsOf({ method, streams }: Route): readonly string[] {
  return method === "GET" && !streams ? ["GET", "HEAD"] : [method];
}

function takesMethod(route: Route, method: string): boolean {
  return route.method === method || (method === "HEAD" && methodsOf(route).includes("HEAD"));
}

export class MethodNotAllowed extends RunwireError {
  constructor(readonly allow: string) {
    super("KAI-REQUEST-METHOD-0001", `this route takes ${allow}`);
  }
}

function matches(pattern: readonly string[], segments: readonly string[]): boolean {
  // From the end, where paths differ.
  for (let i = pattern.length - 1; i > 0; i--) {
    const part = pattern[i] as string;
    if (part.startsWith(":") ? segments[i] === "" : part !== segments[i]) return false;
  }
  return true;
}

/** A segment as it was before it was put into an address; one that never was is nobody's id. */
function decoded(segment: string): string {
  if (!segment.includes("%")) return segment;
  try {
    return decodeURIComponent(segment);
  } catch {
    return "";
  }
}

function paramsOf(pattern: readonly string[], segments: readonly string[]): ReadonlyMap<string, string> {
  const params = new Map<string, string>();
  for (let i = 1; i < pattern.length; i++) {
    const part = pattern[i] as string;
    if (part.startsWith(":")) params.set(part.slice(1), decoded(segments[i] as string));
  }
  return params;
}
