// A real nats-server in a folder of its own, on a port that it chooses.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";

export interface NatsServer {
  readonly url: string;
  kill(signal?: NodeJS.Signals): Promise<void>;
  /** Again, on the same port and folder. */
  start(): Promise<void>;
}

export async function natsServer(
  program: string,
  folder: string,
  ...flags: readonly string[]
): Promise<NatsServer> {
  mkdirSync(folder, { recursive: true });
  let child: ChildProcess | undefined;
  let port = "-1";
  let url = "";

  async function start(): Promise<void> {
    for (const file of portsFiles(folder)) rmSync(file);
    const args = [
      "-a",
      "127.0.0.1",
      "-p",
      port,
      "--ports_file_dir",
      folder,
      "-sd",
      join(folder, "js"),
      ...flags,
    ];
    const started = spawn(program, args, { stdio: ["ignore", "ignore", "pipe"] });
    child = started;
    await new Promise<void>((resolve, reject) => {
      let log = "";
      started.once("error", reject);
      started.once("exit", () => reject(new Error(`nats-server has ended:\n${log}`)));
      // It says so once it takes connections.
      started.stderr?.setEncoding("utf8").on("data", (text: string) => {
        log += text;
        if (log.includes("Server is ready")) resolve();
      });
    });
    url = await listening(folder);
    port = new URL(url.replace(/^\w+:/, "http:")).port;
  }

  await start();
  return {
    get url() {
      return url;
    },
    start,
    async kill(signal = "SIGKILL") {
      if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, "exit");
      child.kill(signal);
      await ended;
    },
  };
}

/** The file is written a moment after the log says that it listens. */
async function listening(folder: string): Promise<string> {
  for (;;) {
    for (const file of portsFiles(folder)) {
      try {
        const { nats } = JSON.parse(readFileSync(file, "utf8")) as { nats: readonly string[] };
        if (nats[0] !== undefined) return nats[0];
      } catch {
        // Half of it is written.
      }
    }
    await new Promise((resolve) => setImmediate(resolve));
  }
}

function portsFiles(folder: string): readonly string[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith(".ports"))
    .map((name) => join(folder, name));
}
