// The server of a test file, started by the command as people start it, before the tests and gone after them.

import { randomUUID } from "node:crypto";
import { mkdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Gateway, gateway } from "@runwire/client";
import { afterAll, beforeAll } from "vitest";
import { type Running, start } from "./command.js";

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
  let running: Running | undefined;
  let url = "";
  let api = gateway({ base: url });

  async function serve(...flags: readonly string[]): Promise<void> {
    running = start(["serve", "--port", "0", "--data", join(folder, "data"), ...flags]);
    [, url = ""] = await running.until(/listening on (http:\/\/[^\s,]+)/);
  }

  beforeAll(async () => {
    mkdirSync(folder);
    await serve();
    api = gateway({ base: url });
  });
  afterAll(async () => {
    running?.kill("SIGTERM");
    await running?.exited;
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
      running?.kill("SIGKILL");
      await running?.exited;
      await serve("--port", new URL(url).port);
    },
  };
}
