// Servers under measurement run as processes of their own; their CPU time and memory are read from /proc.

import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { createRun, type Poster } from "./load.js";

/** Where to append to something new, and where to read it. */
export interface Target {
  readonly append: string;
  readonly stream: string;
}

export interface Server {
  readonly name: string;
  open(post: Poster): Promise<Target>;
  readonly url: URL;
  readonly pid: number;
  /** User and system time so far. */
  cpuMs(): number;
  rssBytes(): number;
  stop(): Promise<void>;
}

const ticksPerSecond = 100;

export async function startRunwire(): Promise<Server> {
  const folder = mkdtempSync(join(tmpdir(), "runwire-bench-"));
  // `npm run bench` runs at the root of the repository.
  const bin = resolve("packages/cli/bin/runwire.js");
  const args = [bin, "serve", "--port", "0", "--data", folder];
  return {
    ...(await start("runwire", process.execPath, args, folder)),
    async open(post) {
      const id = await createRun(post);
      return { append: `/v1/agent/runs/${id}/events`, stream: `/v1/agent/runs/${id}/stream?after=1` };
    },
  };
}

export function startNull(): Promise<Server> {
  return start("node:http", process.execPath, [fileURLToPath(new URL("./null-server.js", import.meta.url))]);
}

/** A program that says its address on stdout. `folder` goes with it. */
export async function start(
  name: string,
  program: string,
  args: readonly string[],
  folder?: string,
): Promise<Server> {
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "inherit"] });
  const url = await firstUrl(child);
  const pid = child.pid as number;
  return {
    name,
    url,
    pid,
    open: async () => ({ append: "/append", stream: "/stream" }),
    cpuMs: () => sumOf(pid, cpuMsOf),
    rssBytes: () => sumOf(pid, rssBytesOf),
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

function cpuMsOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return ((Number(fields[11]) + Number(fields[12])) * 1000) / ticksPerSecond;
}

function rssBytesOf(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1] ?? 0) * 1024;
}
