// Servers under measurement run as processes of their own; their CPU time and memory are read from /proc.

import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { cpuMsOf, rssBytesOf } from "../proc.js";
import {
  http,
  openReader,
  openSession,
  type Poster,
  poster,
  type Reader,
  type ReaderOptions,
  type Session,
  type SessionSpeech,
  type Speech,
} from "./load.js";

/** Where to append to something new, and where to read it. */
export interface Target {
  readonly append: string;
  readonly stream: string;
}

export interface Server {
  readonly name: string;
  readonly url: URL;
  readonly pid: number;
  /** How much of a load it is put under: all, but for one that is so slow that its connections would time out. */
  readonly share: number;
  open(post: Poster): Promise<Target>;
  poster(connections: number): Poster;
  reader(stream: string, options?: ReaderOptions): Promise<Reader>;
  session(append: string): Session;
  /** User and system time so far. */
  cpuMs(): number;
  rssBytes(): number;
  files(): number;
  stop(): Promise<void>;
}

/** What is a server's own. */
export interface Manners {
  readonly speech?: Speech;
  readonly open?: (post: Poster) => Promise<Target>;
  readonly session?: (append: string) => SessionSpeech;
  readonly share?: number;
  /** Goes with the server. */
  readonly folder?: string;
}

export function startRunwire(): Promise<Server> {
  const folder = mkdtempSync(join(tmpdir(), "runwire-bench-"));
  // `npm run bench` runs at the root of the repository.
  const bin = resolve("packages/cli/bin/runwire.js");
  // Of 10,000 readers the one who appends would be the one too many.
  const room = ["--connections-per-tenant-max", "20000"];
  return start("runwire", process.execPath, [bin, "serve", "--port", "0", "--data", folder, ...room], {
    folder,
    async open(post) {
      const id = await createRun(post);
      return { append: `/v1/agent/runs/${id}/events`, stream: `/v1/agent/runs/${id}/stream?after=1` };
    },
    session: (append) => ({
      begin:
        `POST ${append} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-ndjson\r\n` +
        "Producer-Id: bench\r\nProducer-Seq: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
      chunk(events) {
        const lines = `${events.join("\n")}\n`;
        return `${Buffer.byteLength(lines).toString(16)}\r\n${lines}\r\n`;
      },
      acked(text, before) {
        const at = text.lastIndexOf('"last_producer_seq":');
        const found = /^"last_producer_seq":(\d+)\D/.exec(text.slice(at));
        return { events: found === null ? before : Number(found[1]), rest: text.slice(Math.max(at, 0)) };
      },
    }),
  });
}

export async function createRun(post: Poster, more: object = {}): Promise<string> {
  const asked = { prompt: "bench", producer: "external", lease_ms: 3_600_000, ...more };
  const text = await post.post("/v1/agent/runs", JSON.stringify(asked));
  return (JSON.parse(text) as { run_id: string }).run_id;
}

/** One of the servers beside this file. */
export function startOwn(name: string, file: string, manners: Manners = {}): Promise<Server> {
  const folder = mkdtempSync(join(tmpdir(), "runwire-bench-"));
  const path = fileURLToPath(new URL(`./${file}`, import.meta.url));
  return start(name, process.execPath, [path, folder], { ...manners, folder });
}

/** A program that says its address on stdout. */
export async function start(
  name: string,
  program: string,
  args: readonly string[],
  { speech = http, open, session, share = 1, folder }: Manners = {},
): Promise<Server> {
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "inherit"] });
  const url = await firstUrl(child);
  const pid = child.pid as number;
  return {
    name,
    url,
    pid,
    share,
    open: open ?? (async () => ({ append: "/append", stream: "/stream" })),
    poster: (connections) => poster(url, speech, connections),
    reader: (stream, options) => openReader(url, speech.subscribe(url.host, stream), options),
    session(append) {
      if (session === undefined) throw new Error(`${name} has no append sessions`);
      return openSession(url, session(append));
    },
    cpuMs: () => sumOf(pid, cpuMsOf),
    rssBytes: () => sumOf(pid, rssBytesOf),
    files: () => readdirSync(`/proc/${pid}/fd`).length,
    async stop() {
      const exited = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGTERM");
      await exited;
      if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
    },
  };
}

function firstUrl(child: ChildProcess): Promise<URL> {
  return new Promise((resolve, reject) => {
    let text = "";
    child.stdout?.on("data", (chunk: Buffer) => {
      text += chunk.toString();
      const found = /http:\/\/[^\s,]+/.exec(text);
      if (found !== null) resolve(new URL(found[0]));
    });
    child.once("exit", (code) => reject(new Error(`the server exited with ${code} before it listened`)));
  });
}

/** Of a process and those that it has started: some servers work in a child. */
function sumOf(pid: number, of: (pid: number) => number): number {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8")
    .trim()
    .split(" ")
    .filter(Boolean);
  return [pid, ...children.map(Number)].reduce((sum, one) => sum + of(one), 0);
}
