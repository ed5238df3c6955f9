// A real browser, driven over its own debugging protocol: one page, in which expressions are evaluated.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Facts } from "@runwire/protocol";
import { WebSocket } from "ws";
import { tool } from "../tools.js";

export const chromium = tool("chromium");

export interface Page {
  open(url: string): Promise<void>;
  /** The value of an expression; a promise is waited for. */
  evaluate(expression: string): Promise<unknown>;
  close(): Promise<void>;
}

interface Waiting {
  resolve(result: Facts): void;
  reject(error: Error): void;
}

export async function openPage(): Promise<Page> {
  const folder = mkdtempSync(join(tmpdir(), "runwire-chromium-"));
  const flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"];
  const browser = spawn(
    chromium.program,
    [...flags, "--remote-debugging-port=0", `--user-data-dir=${folder}`, "about:blank"],
    // A group of its own: its helpers write to the folder for a while after it has gone.
    { stdio: ["ignore", "ignore", "pipe"], detached: true },
  );
  const exited = once(browser, "exit");
  const address = await new Promise<string>((resolve, reject) => {
    createInterface({ input: browser.stderr }).on("line", (line) => {
      const [, found] = /DevTools listening on (ws:\S+)/.exec(line) ?? [];
      if (found !== undefined) resolve(found);
    });
    void exited.then(() => reject(new Error("the browser has ended")));
  });
  const socket = new WebSocket(address);
  await once(socket, "open");
  const waiting = new Map<number, Waiting>();
  let last = 0;
  let onLoad = (): void => {};
  socket.on("message", (data) => {
    const { id, method, result, error } = JSON.parse(String(data)) as {
      readonly id?: number;
      readonly method?: string;
      readonly result?: Facts;
      readonly error?: { readonly message: string };
    };
    if (method === "Page.loadEventFired") onLoad();
    const asked = id === undefined ? undefined : waiting.get(id);
    if (id === undefined || asked === undefined) return;
    waiting.delete(id);
    if (error === undefined) asked.resolve(result ?? {});
    else asked.reject(new Error(error.message));
  });
  const send = (method: string, params: Facts, sessionId?: string): Promise<Facts> => {
    last += 1;
    const id = last;
    socket.send(JSON.stringify({ id, method, params, sessionId }));
    return new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
  };
  const { targetId } = await send("Target.createTarget", { url: "about:blank" });
  const { sessionId } = await send("Target.attachToTarget", { targetId, flatten: true });
  const inPage = (method: string, params: Facts): Promise<Facts> => send(method, params, sessionId as string);
  await inPage("Page.enable", {});
  // What is tried is the stream; what pages may do is tried elsewhere.
  await inPage("Page.setBypassCSP", { enabled: true });

  async function evaluate(expression: string): Promise<unknown> {
    const { result, exceptionDetails } = await inPage("Runtime.evaluate", {
      expression,
      awaitPromise: true,
      returnByValue: true,
    });
    if (exceptionDetails !== undefined) throw new Error(JSON.stringify(exceptionDetails));
    return (result as { readonly value?: unknown }).value;
  }

  return {
    async open(url) {
      const loaded = new Promise<void>((resolve) => {
        onLoad = resolve;
      });
      await inPage("Page.navigate", { url });
      await loaded;
    },
    evaluate,
    async close() {
      socket.close();
      process.kill(-(browser.pid as number), "SIGKILL");
      await exited;
      rmSync(folder, { recursive: true, force: true, maxRetries: 20 });
    },
  };
}
