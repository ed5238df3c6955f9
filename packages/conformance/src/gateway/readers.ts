// Small readers of one stream each, independent of the SDK: node:http with eventsource-parser, and `ws`. A
// reading keeps what it heard and how its connection ended; tests wait on it instead of sleeping.

import { get, type IncomingMessage } from "node:http";
import { type Event, endsRun, errorTable } from "@runwire/protocol";
import { createParser } from "eventsource-parser";
import { WebSocket } from "ws";
import { refusalIn } from "./refusal-in.js";

export const wireNames = ["sse", "ndjson", "websocket"] as const;
export type WireName = (typeof wireNames)[number];

export interface Heard {
  readonly id?: string;
  readonly event?: string;
  readonly data: string;
}

export interface Ending {
  /** The transport's own end came through: the last chunk, or a close frame. */
  readonly clean: boolean;
  /** WebSocket's close code. */
  readonly code: number | null;
}

export interface Reading {
  /** Of a WebSocket that was opened only to say why it cannot be read, the status that others are told it with. */
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  /** What has been heard so far, and the same parsed. */
  readonly heard: readonly Heard[];
  readonly events: readonly Event[];
  /** The body as it came, on SSE and NDJSON; why a WebSocket cannot be read. */
  readonly text: string;
  readonly retryMs: number | null;
  readonly ended: Promise<Ending>;
  /** Settles when the condition holds; fails when the stream ends without. */
  until(holds: (reading: Reading) => boolean): Promise<void>;
  /** WebSocket only. */
  send(message: unknown): void;
  stop(): void;
}

export interface StreamAddress {
  readonly run_id: string;
  readonly dialect?: string;
  readonly detail?: string;
  readonly after?: number | string;
  readonly snapshot?: 1;
  readonly backpressure?: "drop" | "lossless";
}

export function streamPath({ run_id, ...query }: StreamAddress): string {
  const texts = Object.entries(query).map(([name, value]): [string, string] => [name, String(value)]);
  return `/v1/agent/runs/${run_id}/stream?${new URLSearchParams(texts)}`;
}

export function openReading(
  wire: WireName,
  url: string,
  path: string,
  headers: { readonly [name: string]: string } = {},
): Promise<Reading> {
  return wire === "websocket" ? openSocket(url + path, headers) : openHttp(wire, url + path, headers);
}

/** Opens and reads to the end. */
export async function readAll(
  wire: WireName,
  url: string,
  path: string,
  headers: { readonly [name: string]: string } = {},
): Promise<Reading & { readonly ending: Ending }> {
  const reading = await openReading(wire, url, path, headers);
  const ending = await reading.ended;
  return Object.assign(reading, { ending });
}

/** An EventSource's last event id: the last `id:` line of a finished block, whether or not it dispatches. */
export function lastEventId({ text }: Reading): string | undefined {
  const blocks = text.split("\n\n").slice(0, -1).join("\n");
  return blocks
    .match(/^id: .*$/gm)
    ?.at(-1)
    ?.slice("id: ".length);
}

/** How the stream ended, as a reader may conclude it. */
export function closeOf({ events, ending }: Reading & { readonly ending: Ending }): string {
  const last = events.at(-1);
  if (!ending.clean) return "broken";
  if (ending.code !== null && ending.code !== 1000) return ending.code === 1012 ? "leaving" : "broken";
  return last !== undefined && endsRun(last) ? "finished" : "leaving";
}

interface Keeper {
  readonly reading: Reading;
  hear(message: Heard): void;
  take(text: string): void;
  retry(ms: number): void;
  turnedAway(status: number, reason: string): void;
  end(ending: Ending): void;
}

function keeper(
  answered: number,
  headers: IncomingMessage["headers"],
  act: { send(message: unknown): void; stop(): void },
): Keeper {
  const heard: Heard[] = [];
  const events: Event[] = [];
  const texts: string[] = [];
  let status = answered;
  let retryMs: number | null = null;
  let ending: Ending | undefined;
  let finish: (ending: Ending) => void = () => {};
  const ended = new Promise<Ending>((resolve) => {
    finish = resolve;
  });
  const waiting = new Set<() => void>();
  const look = (): void => {
    for (const one of [...waiting]) one();
  };
  const reading: Reading = {
    get status() {
      return status;
    },
    headers,
    heard,
    events,
    ended,
    get text() {
      return texts.join("");
    },
    get retryMs() {
      return retryMs;
    },
    until: (holds) =>
      new Promise((resolve, reject) => {
        const one = (): void => {
          if (holds(reading)) resolve();
          else if (ending !== undefined)
            reject(new Error(`the stream ended first, after ${heard.length} messages`));
          else return;
          waiting.delete(one);
        };
        waiting.add(one);
        one();
      }),
    ...act,
  };
  return {
    reading,
    hear(message) {
      heard.push(message);
      if (message.event === undefined) events.push(JSON.parse(message.data) as Event);
      look();
    },
    take(text) {
      texts.push(text);
      look();
    },
    retry(ms) {
      retryMs = ms;
    },
    turnedAway(known, reason) {
      status = known;
      texts.push(reason);
    },
    end(how) {
      if (ending !== undefined) return;
      ending = how;
      finish(how);
      look();
    },
  };
}

function openHttp(
  wire: "sse" | "ndjson",
  address: string,
  headers: { readonly [name: string]: string },
): Promise<Reading> {
  const accept = wire === "sse" ? "text/event-stream" : "application/x-ndjson";
  return new Promise((resolve, reject) => {
    // A connection of its own, so that ending it ends nothing else.
    const request = get(address, { agent: false, headers: { Accept: accept, ...headers } });
    request.once("error", reject);
    request.once("response", (response) => {
      const stop = (): void => void request.destroy();
      const keep = keeper(response.statusCode ?? 0, response.headers, { send: () => {}, stop });
      const take = wire === "sse" ? sseTaker(keep) : lineTaker(keep);
      const isStream = response.statusCode === 200;
      response.setEncoding("utf8");
      response.on("data", (text: string) => {
        keep.take(text);
        if (isStream) take(text);
      });
      request.on("error", () => keep.end({ clean: false, code: null }));
      response.on("error", () => keep.end({ clean: false, code: null }));
      response.on("close", () => keep.end({ clean: response.complete, code: null }));
      resolve(keep.reading);
    });
  });
}

function sseTaker(keep: Keeper): (text: string) => void {
  const parser = createParser({
    onEvent({ id, event, data }) {
      keep.hear({ ...(id === undefined ? {} : { id }), ...(event === undefined ? {} : { event }), data });
    },
    onRetry: keep.retry,
  });
  return (text) => parser.feed(text);
}

function lineTaker(keep: Keeper): (text: string) => void {
  let rest = "";
  return (text) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const data of lines) if (data !== "") keep.hear({ data });
  };
}

function openSocket(address: string, headers: { readonly [name: string]: string }): Promise<Reading> {
  return new Promise((resolve, reject) => {
    const ws = new WebSocket(address.replace(/^http/, "ws"), { headers });
    ws.once("error", reject);
    ws.once("unexpected-response", (_request, response) => {
      const keep = keeper(response.statusCode ?? 0, response.headers, { send: () => {}, stop: () => {} });
      response.setEncoding("utf8");
      response.on("data", keep.take);
      response.on("close", () => keep.end({ clean: response.complete, code: null }));
      resolve(keep.reading);
    });
    ws.once("upgrade", (response) => {
      const keep = keeper(101, response.headers, {
        send: (message) => ws.send(typeof message === "string" ? message : JSON.stringify(message)),
        stop: () => ws.terminate(),
      });
      ws.on("message", (data) => keep.hear({ data: String(data) }));
      ws.on("error", () => {});
      ws.on("close", (code, reason) => {
        const told = refusalIn(reason);
        if (told !== undefined) keep.turnedAway(errorTable[told].status, String(reason));
        keep.end({ clean: code !== 1006, code });
      });
      ws.once("open", () => resolve(keep.reading));
    });
  });
}
