// JSON-RPC 2.0: what a line asks, and what is answered. https://www.jsonrpc.org/specification

import { isObject, RunwireError } from "@runwire/protocol";

export type Id = string | number | null;

/** Without an id it is a notification, which is obeyed and not answered. */
export interface Request {
  readonly id?: Id;
  readonly method: string;
  readonly params: unknown;
}

export interface Answer {
  readonly jsonrpc: "2.0";
  readonly id: Id;
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

export const codes = {
  parse: -32700,
  request: -32600,
  method: -32601,
  params: -32602,
  internal: -32603,
  /** The server refused; `data.code` says what. */
  refused: -32000,
} as const;

/** What is wrong with a request. */
export class RpcError extends Error {
  constructor(
    readonly code: number,
    message: string,
    readonly data?: unknown,
  ) {
    super(message);
  }
}

export function wrongParams(detail: string): RpcError {
  return new RpcError(codes.params, `Invalid params: ${detail}`);
}

/** Throws an RpcError where a value is no request. */
export function requestIn(value: unknown): Request {
  if (!isObject(value)) throw new RpcError(codes.request, "Invalid Request: a request is an object");
  const { jsonrpc, method, params } = value;
  if (jsonrpc !== "2.0") throw new RpcError(codes.request, 'Invalid Request: `jsonrpc` must be "2.0"');
  if (typeof method !== "string")
    throw new RpcError(codes.request, "Invalid Request: `method` must be a string");
  if (!Object.hasOwn(value, "id")) return { method, params };
  if (!isId(value.id))
    throw new RpcError(codes.request, "Invalid Request: `id` must be a string, a number or null");
  return { id: value.id, method, params };
}

/** The id to answer with, as far as one can be made out. */
export function idIn(value: unknown): Id {
  return isObject(value) && isId(value.id) ? value.id : null;
}

function isId(id: unknown): id is Id {
  return id === null || typeof id === "string" || (typeof id === "number" && Number.isFinite(id));
}

export function answered(id: Id, result: unknown): Answer {
  return { jsonrpc: "2.0", id, result: result ?? null };
}

export function refused(id: Id, error: unknown): Answer {
  return { jsonrpc: "2.0", id, error: errorOf(error) };
}

export function errorOf(error: unknown): NonNullable<Answer["error"]> {
  if (error instanceof RpcError) {
    const { code, message, data } = error;
    return data === undefined ? { code, message } : { code, message, data };
  }
  if (error instanceof RunwireError) {
    const { code, message, row } = error;
    return { code: codes.refused, message, data: { code, retry: row.retry } };
  }
  return { code: codes.internal, message: `Internal error: ${String(error)}` };
}
