// Plain requests to a gateway under test. It is judged from outside, so nothing here knows its code.

import type { Draft, Event, Facts } from "@runwire/protocol";

export interface Reply {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The parsed body; `{}` where there is none. */
  readonly body: Facts;
}

export interface Claim {
  readonly id: string;
  readonly epoch: number;
  readonly seq: number;
}

export async function call(
  url: string,
  method: string,
  path: string,
  body?: unknown,
  headers: { readonly [name: string]: string } = {},
): Promise<Reply> {
  const response = await fetch(url + path, {
    method,
    headers: { ...(body === undefined ? {} : { "Content-Type": "application/json" }), ...headers },
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  const isJson = response.headers.get("content-type")?.startsWith("application/json") ?? false;
  const parsed = isJson ? (JSON.parse(text) as Facts) : {};
  return { status: response.status, headers: response.headers, text, body: parsed };
}

/** Of the agent's, unless it says otherwise. */
export async function startRun(url: string, asked: Facts): Promise<string> {
  const { status, body, text } = await call(url, "POST", "/v1/agent/runs", asked);
  if (status !== 201) throw new Error(`create: ${status} ${text}`);
  return body.run_id as string;
}

/** That the test itself writes. */
export function createRun(url: string, asked: Facts = {}): Promise<string> {
  return startRun(url, { prompt: "go", producer: "external", lease_ms: 600_000, ...asked });
}

export async function getRun(url: string, run_id: string): Promise<Facts> {
  return (await call(url, "GET", `/v1/agent/runs/${run_id}`)).body;
}

export function tryAppend(
  url: string,
  run_id: string,
  drafts: readonly Draft[],
  claim?: Claim,
): Promise<Reply> {
  return call(url, "POST", runPath(run_id, "events"), drafts, claim === undefined ? {} : claimHeaders(claim));
}

export async function append(url: string, run_id: string, ...drafts: readonly Draft[]): Promise<void> {
  const { status, text } = await tryAppend(url, run_id, drafts);
  if (status !== 200) throw new Error(`append: ${status} ${text}`);
}

export function claimHeaders({ id, epoch, seq }: Claim): { readonly [name: string]: string } {
  return { "Producer-Id": id, "Producer-Epoch": String(epoch), "Producer-Seq": String(seq) };
}

export function runPath(run_id: string, rest: string): string {
  return `/v1/agent/runs/${run_id}/${rest}`;
}

/** A control or an answer to a request: `pause`, `approvals/appr_1`. */
export function control(url: string, run_id: string, action: string, body: Facts = {}): Promise<Reply> {
  return call(url, "POST", runPath(run_id, action), body);
}

export function codeOf({ body }: Reply): string | undefined {
  return (body.error as { code?: string } | undefined)?.code;
}

export function messageOf({ body }: Reply): string {
  return (body.error as { message?: string } | undefined)?.message ?? "";
}

export function say<T extends Draft["type"]>(type: T, payload: Facts, child_id?: string): Draft {
  return { type, payload, ...(child_id === undefined ? {} : { child_id }) } as Draft;
}

export const text = (words: string, child_id?: string): Draft => say("text.delta", { text: words }, child_id);
export const reasoning = (words: string, child_id?: string): Draft =>
  say("reasoning.delta", { text: words }, child_id);
export const lifecycle = (state: string, child_id?: string): Draft =>
  say("run.lifecycle", { state }, child_id);

/** Drafts as lines, and the header that says so. */
export const lines = (drafts: readonly unknown[]): string =>
  drafts.map((draft) => `${JSON.stringify(draft)}\n`).join("");
export const ndjson = { "Content-Type": "application/x-ndjson" };

export async function eventsOf(url: string, run_id: string, type: string): Promise<readonly Event[]> {
  return (await allEvents(url, run_id)).filter((e) => e.type === type);
}

/** Every event of a log, page by page. */
export async function allEvents(
  url: string,
  run_id: string,
  { dialect = "runwire", detail = "full", pageEvents = 1000 } = {},
): Promise<readonly Event[]> {
  const events: Event[] = [];
  for (let after = 0; ; ) {
    const path = `events?dialect=${dialect}&detail=${detail}&limit=${pageEvents}&after=${after}`;
    const { status, body, text } = await call(url, "GET", runPath(run_id, path));
    if (status !== 200) throw new Error(`events: ${status} ${text}`);
    events.push(...(body.events as readonly Event[]));
    if (body.next === null) return events;
    after = body.next as number;
  }
}
