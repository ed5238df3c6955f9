// Servers under measurement run as processes of their own; their CPU time and memory are read from /proc.

import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

export interface Server {
  readonly name: string;
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
  const server = await start("runwire", [bin, "serve", "--port", "0", "--data", folder]);
  return {
    ...server,
    async stop() {
      await server.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

export function startNull(): Promise<Server> {
  return start("node:http", [fileURLToPath(new URL("./null-server.js", import.meta.url))]);
}

async function start(name: string, args: readonly string[]): Promise<Server> {
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  const url = await firstUrl(child);
  const pid = child.pid as number;
  return {
    name,
    url,
    pid,
    cpuMs() {
      const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
      return ((Number(fields[11]) + Number(fields[12])) * 1000) / ticksPerSecond;
    },
    rssBytes() {
      const status = readFileSync(`/proc/${pid}/status`, "utf8");
      return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1] ?? 0) * 1024;
    },
    async stop() {
      const exited = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGTERM");
      await exited;
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
