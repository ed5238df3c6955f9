// Load over plain sockets, so that the measuring side costs little and counts exactly.

import { connect, type Socket } from "node:net";

/** How a server is spoken to. */
export interface Speech {
  /** Opens a stream. */
  subscribe(host: string, path: string): string;
  request(method: string, host: string, path: string, body: string): string;
  /** The body of a whole answer; undefined where more must come. Throws on a refusal. */
  answer(text: string): string | undefined;
}

export const http: Speech = {
  subscribe: (host, path) => `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nAccept: text/event-stream\r\n\r\n`,
  request: (method, host, path, body) =>
    `${method} ${path} HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/json\r\n` +
    `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  answer(text) {
    const head = text.indexOf("\r\n\r\n");
    if (head < 0) return undefined;
    const length = Number(/content-length: (\d+)/i.exec(text)?.[1] ?? 0);
    if (text.length < head + 4 + length) return undefined;
    if (!text.startsWith("HTTP/1.1 2")) throw new Error(text.slice(0, 500));
    return text.slice(head + 4);
  },
};

export interface Reader {
  readonly events: number;
  readonly bytes: number;
  /** Resolves once this many events have come. */
  reached(events: number): Promise<void>;
  /** The response is complete. */
  readonly ended: Promise<void>;
  close(): void;
}

export interface ReaderOptions {
  readonly hear?: (chunk: Buffer) => void;
  /** Not where counting would be what is measured. */
  readonly counts?: boolean;
}

/** What every event of the benchmark holds once, whatever is said around it. */
const frameStart = Buffer.from('"note"');

function countStarts(chunk: Buffer): number {
  let count = 0;
  for (let at = chunk.indexOf(frameStart); at >= 0; at = chunk.indexOf(frameStart, at + frameStart.length))
    count += 1;
  return count;
}

/** Resolves with the first bytes. */
export function openReader(
  url: URL,
  subscribe: string,
  { hear, counts = true }: ReaderOptions = {},
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
      hear?.(chunk);
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
    socket.write(subscribe);
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
export function poster(url: URL, speech: Speech, connections: number): Poster {
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
      return postSocket(url, speech);
    }
    return new Promise((resolve) => waiting.push(resolve));
  }

  async function send(method: string, path: string, body: string): Promise<string> {
    const socket = await take();
    const answer = await socket.ask(speech.request(method, url.host, path, body));
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

function postSocket(url: URL, speech: Speech): PostSocket {
  const socket = connect(Number(url.port), url.hostname);
  let text = "";
  let asked: { resolve(body: string): void; reject(error: unknown): void } | undefined;
  socket.on("error", (error) => asked?.reject(error));
  socket.on("close", () => asked?.reject(new Error("the server closed the connection")));
  socket.on("data", (chunk: Buffer) => {
    text += chunk.toString("latin1");
    try {
      const body = speech.answer(text);
      if (body === undefined) return;
      asked?.resolve(body);
    } catch (error) {
      asked?.reject(error);
    }
    text = "";
  });
  return {
    isOpen: () => socket.writable && socket.readable,
    ask(request) {
      return new Promise((resolve, reject) => {
        asked = { resolve, reject };
        socket.write(request);
      });
    },
    close: () => socket.destroy(),
  };
}

/** One connection that appends all the time, and hears how much is safe. */
export interface Session {
  send(events: readonly string[]): void;
  readonly acked: number;
  /** Resolves once this many events are safe. */
  reached(events: number): Promise<void>;
  close(): void;
}

export interface SessionSpeech {
  readonly begin: string;
  chunk(events: readonly string[]): string;
  /** How many events the whole of the answers so far says are safe, and what of it must be kept to go on. */
  acked(text: string, before: number): { readonly events: number; readonly rest: string };
}

export function openSession(url: URL, speech: SessionSpeech): Session {
  const socket = connect(Number(url.port), url.hostname);
  let acked = 0;
  let text = "";
  let waiting: { readonly events: number; resolve(): void; reject(error: Error): void } | undefined;
  const fail = (error: Error): void => waiting?.reject(error);
  socket.on("error", fail);
  socket.on("close", () => fail(new Error("the server closed the session")));
  socket.on("data", (chunk: Buffer) => {
    const heard = speech.acked(text + chunk.toString("latin1"), acked);
    acked = heard.events;
    text = heard.rest;
    if (waiting !== undefined && acked >= waiting.events) {
      const { resolve } = waiting;
      waiting = undefined;
      resolve();
    }
  });
  socket.write(speech.begin);
  return {
    send: (events) => void socket.write(speech.chunk(events)),
    get acked() {
      return acked;
    },
    reached: (events) =>
      new Promise((resolve, reject) => {
        if (acked >= events) resolve();
        else waiting = { events, resolve, reject };
      }),
    close: () => socket.destroy(),
  };
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
