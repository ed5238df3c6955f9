// Why there is no answer, as data: the error a caller may meet, and whether the same request may succeed
// later. The server's word on `retry` holds; where something else answered, the status decides.

import {
  type ErrorCode,
  errorTable,
  isErrorCode,
  isObject,
  messageOf,
  RunwireError,
} from "@runwire/protocol";
import { limits } from "./limits.js";

export interface Refusal {
  readonly ok: false;
  readonly error: RunwireError;
  /** Whether asking again may help. */
  readonly again: boolean;
  /** Not before this; 0 where the server named no time. */
  readonly retryMs: number;
}

/** Throws where the answer broke off: then nobody knows what it was. */
export async function refusalOf(response: Response, nowMs: number): Promise<Refusal> {
  const told = errorIn(parsed(await response.text()));
  const again = told?.again ?? (response.status === 408 || response.status === 429 || response.status >= 500);
  const error = told?.error ?? foreign(again, `HTTP ${response.status} from ${response.url}`);
  return { ok: false, error, again, retryMs: retryAfterMs(response.headers.get("retry-after"), nowMs) };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // A proxy's HTML, or nothing: the status says enough.
    return undefined;
  }
}

/** The error that `{"error":{code,message,retry}}` tells, or undefined. */
export function errorIn(
  body: unknown,
): { readonly error: RunwireError; readonly again: boolean } | undefined {
  if (!isObject(body) || !isObject(body.error)) return undefined;
  const { code, message, retry } = body.error;
  const again = retry === true;
  const text = typeof message === "string" ? message : "";
  if (!isErrorCode(code)) return { error: foreign(again, `${String(code)} ${text}`), again };
  return { error: new RunwireError(code, detailOf(code, text)), again };
}

export function unreachable(url: string, cause: unknown): Refusal {
  return { ok: false, error: foreign(true, `${url}: ${messageOf(cause)}`, cause), again: true, retryMs: 0 };
}

/** A header that no request can carry; its value is not said. */
export function unsendable(name: string): Refusal {
  const detail = `the header \`${name}\` cannot be sent: it takes visible characters on one line`;
  return { ok: false, error: new RunwireError("KAI-STREAM-PARAM-0001", detail), again: false, retryMs: 0 };
}

/** What is told by something that is not a Runwire server of this version. */
function foreign(again: boolean, detail: string, cause?: unknown): RunwireError {
  const code: ErrorCode = again ? "KAI-STREAM-CONN-0003" : "KAI-STREAM-CONN-0004";
  return new RunwireError(code, detail, { cause });
}

/** A message travels as `title: detail`, and the error puts its title in front again. */
export function detailOf(code: ErrorCode, message: string): string | undefined {
  const { title } = errorTable[code];
  if (message === "" || message === title) return undefined;
  return message.startsWith(`${title}: `) ? message.slice(title.length + 2) : message;
}

/** Retry-After in seconds or as a date. */
function retryAfterMs(field: string | null, nowMs: number): number {
  if (field === null) return 0;
  const ms = /^\d+$/.test(field.trim()) ? Number(field) * 1000 : Date.parse(field) - nowMs;
  return Number.isFinite(ms) ? Math.min(Math.max(ms, 0), limits.retryMsMax) : 0;
}
