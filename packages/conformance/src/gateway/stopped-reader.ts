// A reader that comes to the head of its log, stops reading, and later reads on. It keeps what it is sent and nothing
// else, so that there may be a hundred megabytes of it.

import { get, type IncomingMessage } from "node:http";
import { WebSocket } from "ws";
import type { WireName } from "./readers.js";

export interface StoppedReader {
  /** Stops once it has been sent `sign` so many times. */
  stop(sign: string, times: number): Promise<void>;
  /** Reads on to the end of the connection, or until it has what it waits for: the messages since the beginning. */
  readOn(has?: Has): Promise<readonly string[]>;
  /** What it had read when it stopped; its connection is over. */
  hangUp(): readonly string[];
  /** Whether the other side has said that the connection ends. */
  readonly ended: Promise<boolean>;
}

type Has = (messages: readonly string[]) => boolean;

export async function stoppedReader(wire: WireName, url: string, path: string): Promise<StoppedReader> {
  const source = wire === "websocket" ? socketSource(url + path) : httpSource(url + path, wire);
  await source.opened;
  const until = (has: Has): Promise<void> =>
    new Promise((resolve) => {
      const look = (): void => {
        if (has(source.messages())) resolve();
      };
      source.onMore(look);
      look();
    });
  return {
    ended: source.ended,
    async stop(sign, times) {
      await until((messages) => messages.join().split(sign).length > times);
      source.onMore(() => {});
      source.pause();
    },
    async readOn(has) {
      source.resume();
      await Promise.race(has === undefined ? [source.ended] : [source.ended, until(has)]);
      return source.messages();
    },
    hangUp() {
      source.destroy();
      return source.messages();
    },
  };
}

interface Source {
  readonly opened: Promise<void>;
  readonly ended: Promise<boolean>;
  messages(): readonly string[];
  onMore(look: () => void): void;
  pause(): void;
  resume(): void;
  destroy(): void;
}

function httpSource(address: string, wire: "sse" | "ndjson"): Source {
  const chunks: Buffer[] = [];
  let look = (): void => {};
  const accept = wire === "sse" ? "text/event-stream" : "application/x-ndjson";
  const request = get(address, { agent: false, headers: { Accept: accept } });
  const answered = new Promise<IncomingMessage>((resolve, reject) => {
    request.once("error", reject);
    request.once("response", resolve);
  });
  let response: IncomingMessage | undefined;
  const ended = answered.then((res) => {
    response = res;
    res.on("data", (bytes: Buffer) => {
      chunks.push(bytes);
      look();
    });
    res.on("error", () => {});
    return new Promise<boolean>((resolve) => res.once("close", () => resolve(res.complete)));
  });
  const head = wire === "sse" ? "data: " : "{";
  const headLength = wire === "sse" ? head.length : 0;
  return {
    opened: answered.then(() => {}),
    ended,
    messages: () =>
      Buffer.concat(chunks)
        .toString()
        .split("\n")
        .slice(0, -1)
        .filter((line) => line.startsWith(head))
        .map((line) => line.slice(headLength)),
    onMore(on) {
      look = on;
    },
    pause: () => void response?.pause(),
    resume: () => void response?.resume(),
    destroy: () => void request.destroy(),
  };
}

function socketSource(address: string): Source {
  const messages: string[] = [];
  let look = (): void => {};
  const ws = new WebSocket(address.replace(/^http/, "ws"));
  const opened = new Promise<void>((resolve, reject) => {
    ws.once("open", resolve);
    ws.once("error", reject);
  });
  ws.on("message", (data) => {
    messages.push(String(data));
    look();
  });
  ws.on("error", () => {});
  return {
    opened,
    ended: new Promise((resolve) => ws.once("close", (code) => resolve(code !== 1006))),
    messages: () => messages,
    onMore(on) {
      look = on;
    },
    pause: () => ws.pause(),
    resume: () => ws.resume(),
    destroy: () => ws.terminate(),
  };
}
