// Load over plain sockets, so that the measuring side costs little and counts exactly.

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

/** What every event of the benchmark holds once, whatever is said around it. */
const frameStart = Buffer.from('"note"');

function countStarts(chunk: Buffer): number {
  let count = 0;
  for (let at = chunk.indexOf(frameStart); at >= 0; at = chunk.indexOf(frameStart, at + frameStart.length))
    count += 1;
  return count;
}

/** An SSE reader that counts frames, or only bytes where counting would be what is measured. */
export function openReader(
  url: URL,
  path: string,
  stamp?: (chunk: Buffer) => void,
  counts = true,
): Promise<Reader> {
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
      if (counts) {
        events +=
          countStarts(chunk) +
          (tail.length > 0
            ? countStarts(Buffer.concat([tail, chunk.subarray(0, frameStart.length - 1)]))
            : 0);
        tail = chunk.subarray(1 - frameStart.length);
      }
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
  /** The answer's body; throws on any status but success. */
  post(path: string, body: string): Promise<string>;
  put(path: string): Promise<string>;
  close(): void;
}

/** Requests over a fixed number of kept connections, one at a time on each. */
export function poster(url: URL, connections: number): Poster {
  const idle: PostSocket[] = [];
  const waiting: ((socket: PostSocket) => void)[] = [];
  let open = 0;

  async function take(): Promise<PostSocket> {
    for (let free = idle.pop(); free !== undefined; free = idle.pop()) {
      if (free.isOpen()) return free;
      // A server closes what was idle for some seconds.
      open -= 1;
    }
    if (open < connections) {
      open += 1;
      return postSocket(url);
    }
    return new Promise((resolve) => waiting.push(resolve));
  }

  async function send(method: string, path: string, body: string): Promise<string> {
    const socket = await take();
    const answer = await socket.ask(
      `${method} ${path} HTTP/1.1\r\nHost: ${url.host}\r\nContent-Type: application/json\r\n` +
        `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    );
    const next = waiting.shift();
    if (next === undefined) idle.push(socket);
    else next(socket);
    return answer;
  }

  return {
    post: (path, body) => send("POST", path, body),
    put: (path) => send("PUT", path, ""),
    close() {
      for (const socket of idle) socket.close();
    },
  };
}

interface PostSocket {
  isOpen(): boolean;
  ask(request: string): Promise<string>;
  close(): void;
}

function postSocket(url: URL): PostSocket {
  const socket = connect(Number(url.port), url.hostname);
  let text = "";
  let answer: { resolve(body: string): void; reject(error: Error): void } | undefined;
  socket.on("error", (error) => answer?.reject(error));
  socket.on("close", () => answer?.reject(new Error("the server closed the connection")));
  socket.on("data", (chunk: Buffer) => {
    text += chunk.toString("latin1");
    const head = text.indexOf("\r\n\r\n");
    if (head < 0) return;
    const length = Number(/content-length: (\d+)/i.exec(text)?.[1] ?? 0);
    if (text.length < head + 4 + length) return;
    const body = text.slice(head + 4);
    const { resolve, reject } = answer as NonNullable<typeof answer>;
    if (text.startsWith("HTTP/1.1 2")) resolve(body);
    else reject(new Error(text.slice(0, 500)));
    text = "";
  });
  return {
    isOpen: () => socket.writable && socket.readable,
    ask(request) {
      return new Promise((resolve, reject) => {
        answer = { resolve, reject };
        socket.write(request);
      });
    },
    close: () => socket.destroy(),
  };
}

export async function createRun(post: Poster): Promise<string> {
  const text = await post.post(
    "/v1/agent/runs",
    '{"prompt":"bench","producer":"external","lease_ms":3600000}',
  );
  return (JSON.parse(text) as { run_id: string }).run_id;
}

/** Calls `task` `count` times, `width` at a time. */
export async function inParallel(
  count: number,
  width: number,
  task: (i: number) => Promise<unknown>,
): Promise<void> {
  let next = 0;
  await Promise.all(
    Array.from({ length: Math.min(width, count) }, async () => {
      while (next < count) await task(next++);
    }),
  );
}
