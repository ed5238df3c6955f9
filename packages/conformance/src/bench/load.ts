// Load over plain sockets, so that the measuring side costs little and counts exactly.

import { Agent, request } from "node:http";
import { connect, type Socket } from "node:net";

export interface Reader {
  readonly events: number;
  readonly bytes: number;
  /** Resolves once this many events have come. */
  reached(events: number): Promise<void>;
  /** The response is complete. */
  readonly ended: Promise<void>;
  close(): void;
}

const frameStart = Buffer.from("data: ");

function countStarts(chunk: Buffer): number {
  let count = 0;
  for (let at = chunk.indexOf(frameStart); at >= 0; at = chunk.indexOf(frameStart, at + frameStart.length)) count += 1;
  return count;
}

/** An SSE reader that counts frames. `stamp` hears each chunk. */
export function openReader(url: URL, path: string, stamp?: (chunk: Buffer) => void): Promise<Reader> {
  return new Promise((resolve, reject) => {
    const socket: Socket = connect(Number(url.port), url.hostname);
    let events = 0;
    let bytes = 0;
    let opened = false;
    // A frame's start may be cut in two.
    let tail: Buffer = Buffer.alloc(0);
    let waiting: { readonly events: number; resolve(): void } | undefined;
    let end: () => void = () => {};
    const ended = new Promise<void>((done) => {
      end = done;
    });
    const reader: Reader = {
      get events() {
        return events;
      },
      get bytes() {
        return bytes;
      },
      reached: (wanted) =>
        new Promise((done) => {
          if (events >= wanted) done();
          else waiting = { events: wanted, resolve: done };
        }),
      ended,
      close: () => socket.destroy(),
    };
    socket.on("error", reject);
    socket.on("close", () => end());
    socket.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      events += countStarts(chunk) + (tail.length > 0 ? countStarts(Buffer.concat([tail, chunk.subarray(0, 5)])) : 0);
      tail = chunk.subarray(-5);
      stamp?.(chunk);
      if (!opened) {
        opened = true;
        resolve(reader);
      }
      if (waiting !== undefined && events >= waiting.events) {
        const { resolve: done } = waiting;
        waiting = undefined;
        done();
      }
      if (chunk.length >= 5 && chunk.subarray(-5).equals(lastChunk)) socket.end();
    });
    socket.write(`GET ${path} HTTP/1.1\r\nHost: ${url.host}\r\nAccept: text/event-stream\r\n\r\n`);
  });
}

const lastChunk = Buffer.from("0\r\n\r\n");

export interface Poster {
  post(path: string, body: string, type?: string): Promise<string>;
  close(): void;
}

export function poster(url: URL, connections: number): Poster {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  return {
    post: (path, body, type = "application/json") =>
      new Promise((resolve, reject) => {
        const headers = { "Content-Type": type, "Content-Length": Buffer.byteLength(body) };
        const req = request({ agent, host: url.hostname, port: url.port, path, method: "POST", headers }, (res) => {
          let text = "";
          res.setEncoding("utf8");
          res.on("data", (chunk: string) => {
            text += chunk;
          });
          res.on("end", () => {
            if (res.statusCode !== undefined && res.statusCode < 300) resolve(text);
            else reject(new Error(`${path}: ${res.statusCode} ${text}`));
          });
        });
        req.on("error", reject);
        req.end(body);
      }),
    close: () => agent.destroy(),
  };
}

export async function createRun(post: Poster): Promise<string> {
  const text = await post.post("/v1/agent/runs", '{"prompt":"bench","producer":"external","lease_ms":3600000}');
  return (JSON.parse(text) as { run_id: string }).run_id;
}

/** Calls `task` `count` times, `width` at a time. */
export async function inParallel(count: number, width: number, task: (i: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  await Promise.all(
    Array.from({ length: Math.min(width, count) }, async () => {
      while (next < count) await task(next++);
    }),
  );
}
