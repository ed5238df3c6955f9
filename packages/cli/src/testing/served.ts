// Servers as people start them, by the command: that of a test file, before the tests and gone after them, and others.

import { randomUUID } from "node:crypto";
import { mkdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Gateway, gateway } from "@runwire/client";
import { afterAll, beforeAll } from "vitest";
import { runwire, start } from "./command.js";

export interface Serving {
  readonly url: string;
  readonly port: string;
  stop(signal?: NodeJS.Signals): Promise<unknown>;
}

export async function serve(data: string, ...flags: readonly string[]): Promise<Serving> {
  const running = start(["serve", "--port", "0", "--data", data, ...flags]);
  const [, url = ""] = await running.until(/listening on (https?:\/\/[^\s,]+)/);
  return {
    url,
    port: new URL(url).port,
    stop: (signal = "SIGTERM") => running.kill(signal),
  };
}

export interface ServingKeyed extends Serving {
  /** Of one tenant. */
  readonly keys: readonly string[];
  revoke(key: string): Promise<unknown>;
}

/** One that asks for keys, with a key for each of these lists of scopes. */
export async function serveKeyed(data: string, ...scopes: readonly string[]): Promise<ServingKeyed> {
  const command = async (...args: readonly string[]): Promise<string> => {
    const { code, out, err } = await runwire(["keys", ...args, "--data", data]);
    if (code !== 0) throw new Error(err);
    return out.trim();
  };
  const keys: string[] = [];
  for (const list of scopes) keys.push(await command("create", "--tenant", "acme", "--scopes", list));
  const revoke = (key: string): Promise<string> => command("revoke", key.slice(3, 15));
  return { ...(await serve(data, "--auth", "keys")), keys, revoke };
}

export interface Served {
  /** For whatever the file needs; the server's data is in it. */
  readonly folder: string;
  readonly url: string;
  readonly api: Gateway;
  /** What tells a command where it is. */
  readonly env: NodeJS.ProcessEnv;
  /** Kills it, and starts it on the same data and port. */
  again(): Promise<void>;
}

export function served(name: string): Served {
  // Named now and made later: tests that are skipped leave nothing behind.
  const folder = join(tmpdir(), `runwire-${name}-${randomUUID()}`);
  const data = join(folder, "data");
  let serving: Serving | undefined;
  let url = "";
  let api = gateway({ base: url });

  beforeAll(async () => {
    mkdirSync(folder);
    serving = await serve(data);
    url = serving.url;
    api = gateway({ base: url });
  });
  afterAll(async () => {
    await serving?.stop();
    rmSync(folder, { recursive: true, force: true });
  });
  return {
    folder,
    get url() {
      return url;
    },
    get api() {
      return api;
    },
    get env() {
      return { RUNWIRE_URL: url };
    },
    async again() {
      await serving?.stop("SIGKILL");
      serving = await serve(data, "--port", new URL(url).port);
    },
  };
}
