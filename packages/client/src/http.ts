// One request to a gateway. Sources, control and the producer all go through here, so that they agree on
// what a refusal is and whether asking again may help.

import { linkedAbort, unlessAborted } from "./abort.js";
import { type Clock, systemClock } from "./clock.js";
import { limits } from "./limits.js";
import { type Refusal, refusalOf, unreachable, unsendable } from "./refusal.js";

export type { Refusal } from "./refusal.js";

export interface HeaderFields {
  readonly [name: string]: string;
}

/** Where a gateway is and how to speak to it. */
export interface Endpoint {
  /** `https://host:port`, or empty for the page's own origin. */
  readonly base: string;
  /** Sent with every request; a function is asked each time, so that a token can be renewed. */
  readonly headers?: HeaderFields | (() => HeaderFields | Promise<HeaderFields>);
  readonly fetch?: typeof fetch;
  readonly clock?: Clock;
}

export interface Call {
  readonly method?: "GET" | "POST" | "DELETE";
  /** Path and query, from `/v1`. */
  readonly path: string;
  readonly headers?: HeaderFields;
  /** JSON text. */
  readonly body?: string;
  readonly signal?: AbortSignal | undefined;
}

export type Answer<T> = { readonly ok: true; readonly value: T } | Refusal;

/** The answer's head; its body is the caller's to read. Throws only when the caller's signal aborts. */
export async function ask(endpoint: Endpoint, call: Call): Promise<Answer<Response>> {
  const { signal } = call;
  try {
    const { headers } = endpoint;
    const own = typeof headers === "function" ? await unlessAborted(headers(), signal) : headers;
    const fields = {
      ...own,
      ...(call.body === undefined ? {} : { "content-type": "application/json" }),
      ...call.headers,
    };
    const unsent = Object.entries(fields).find((field) => !isSendable(field));
    if (unsent !== undefined) return unsendable(unsent[0]);
    // Called unbound: a browser's fetch refuses any other `this`.
    const send = endpoint.fetch ?? fetch;
    const sent = send(urlOf(endpoint, call.path), {
      method: call.method ?? "GET",
      headers: fields,
      cache: "no-store",
      ...(call.body === undefined ? {} : { body: call.body }),
      ...(signal === undefined ? {} : { signal }),
    });
    const response = await headOf(sent, signal);
    if (response.ok) return { ok: true, value: response };
    return await unlessAborted(refusalOf(response, clockOf(endpoint).nowMs()), signal);
  } catch (cause) {
    signal?.throwIfAborted();
    return unreachable(urlOf(endpoint, call.path), cause);
  }
}

/** What fetch would throw for looks like a server that is away, and says the value, which may be a secret. */
function isSendable(field: [name: string, value: string]): boolean {
  try {
    // White space around a value, as of a file's last line, is not sent.
    return /^[\t\x20-\x7e\x80-\xff]*$/.test(new Headers([field]).get(field[0]) ?? "");
  } catch {
    // What is wrong with it is told with its value.
    return false;
  }
}

/** A fetch that was given need not know the signal: what it brings after that aborted is let go of. */
function headOf(sent: Promise<Response>, signal: AbortSignal | undefined): Promise<Response> {
  sent
    .then((late) => (signal?.aborted ? late.body?.cancel() : undefined))
    // Nobody waits for it any more, and whoever does hears of it below.
    .catch(() => {});
  return unlessAborted(sent, signal);
}

/** The whole answer as parsed JSON (undefined where it is empty), within `answerMsMax`. */
export async function askJson(endpoint: Endpoint, call: Call): Promise<Answer<unknown>> {
  const deadline = linkedAbort(call.signal);
  const late = new Error(`no answer within ${limits.answerMsMax} ms`);
  const cancel = clockOf(endpoint).after(limits.answerMsMax, () => deadline.abort(late));
  try {
    const answer = await ask(endpoint, { ...call, signal: deadline.signal });
    if (!answer.ok) return answer;
    const text = await unlessAborted(answer.value.text(), deadline.signal);
    return { ok: true, value: text === "" ? undefined : JSON.parse(text) };
  } catch (cause) {
    // Late, cut off, or not JSON: in each case the answer was lost on its way.
    call.signal?.throwIfAborted();
    return unreachable(urlOf(endpoint, call.path), cause);
  } finally {
    cancel();
    deadline.unlink();
  }
}

export function urlOf(endpoint: Endpoint, path: string): string {
  return `${endpoint.base.replace(/\/+$/, "")}${path}`;
}

export function runPath(run_id: string, rest = ""): string {
  return `/v1/agent/runs/${encodeURIComponent(run_id)}${rest}`;
}

/** `?a=1&b=2` of the members that are there. */
export function queryOf(members: { readonly [name: string]: string | number | undefined }): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(members)) {
    if (value !== undefined) query.set(name, String(value));
  }
  return query.size === 0 ? "" : `?${query}`;
}

export function clockOf(endpoint: Endpoint): Clock {
  return endpoint.clock ?? systemClock;
}
