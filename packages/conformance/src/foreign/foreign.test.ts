// Clients that nobody here wrote, behind a proxy that nobody here configured.

import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { Event } from "@runwire/protocol";
import { startGateway } from "@runwire/server";
import { EventSource } from "eventsource";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { append, call, createRun, lifecycle, text } from "../gateway/calls.js";
import { readAll, streamPath } from "../gateway/readers.js";
import { underTest } from "../gateway/under-test.js";
import { tool } from "../tools.js";
import { chromium, openPage, type Page } from "./chromium.js";
import { type Front, nginx, startNginx } from "./nginx.js";

const hasCurl = tool("curl").whyNot === undefined;
const hasChromium = chromium.whyNot === undefined;

const server = underTest(startGateway, {});
const words = ["one ", "two ", "three ", "four "];
const waitMsMax = 30_000;

/** Someone who follows a run, and what it has heard so far. */
interface Listener {
  readonly heard: () => Promise<readonly Event[]> | readonly Event[];
  /** Whether it knows that there is no more to come. */
  readonly isOver: () => Promise<boolean> | boolean;
  close(): void;
}

async function until(what: string, holds: () => Promise<boolean> | boolean): Promise<void> {
  await expect.poll(holds, { timeout: waitMsMax, interval: 10, message: what }).toBe(true);
}

/** Word by word, each heard before the next is said; with a cut in the middle. */
async function follows(base: string, cut: () => void, open: (url: string) => Listener): Promise<void> {
  const run_id = await createRun(server.url);
  const listener = open(`${base}${streamPath({ run_id })}`);
  try {
    const saidCount = async (): Promise<number> =>
      (await listener.heard()).filter(({ type }) => type === "text.delta").length;
    for (const [i, word] of words.entries()) {
      await append(server.url, run_id, text(word), {
        type: "step.boundary",
        payload: { step_index: i, step_kind: "text-only" },
      });
      await until(`word ${i + 1}`, async () => (await saidCount()) === i + 1);
      if (i === 1) cut();
    }
    await append(server.url, run_id, lifecycle("done"));
    await until(
      "the end",
      async () =>
        (await listener.heard()).at(-1)?.type === "run.lifecycle" && (await saidCount()) === words.length,
    );
    await until("its knowing that it is the end", listener.isOver);
    const { events } = await readAll("ndjson", server.url, streamPath({ run_id }));
    expect(await listener.heard()).toEqual(events);
  } finally {
    listener.close();
  }
}

function eventSource(url: string): Listener {
  const heard: Event[] = [];
  const source = new EventSource(url);
  source.onmessage = ({ data }) => heard.push(JSON.parse(data));
  return {
    heard: () => heard,
    isOver: () => source.readyState === EventSource.CLOSED,
    close: () => source.close(),
  };
}

/** Again and again, as a script would, with the last id it has seen. */
function curl(url: string): Listener {
  const heard: Event[] = [];
  let lastId = "";
  let isOver = false;
  let running: ChildProcess | undefined;
  let isClosed = false;
  const once = (): void => {
    const child = spawn("curl", ["-sN", "-w", "\n%{http_code}\n", "-H", `Last-Event-ID: ${lastId}`, url], {
      stdio: ["ignore", "pipe", "ignore"],
    });
    running = child;
    createInterface({ input: child.stdout }).on("line", (line) => {
      if (line.startsWith("id: ")) lastId = line.slice(4);
      if (line.startsWith("data: ")) heard.push(JSON.parse(line.slice(6)));
      if (line === "204") isOver = true;
    });
    child.once("close", () => {
      if (!isOver && !isClosed) once();
    });
  };
  once();
  return {
    heard: () => heard,
    isOver: () => isOver,
    close() {
      isClosed = true;
      running?.kill();
    },
  };
}

/** A page's own EventSource. */
async function inPage(page: Page, base: string): Promise<(url: string) => Listener> {
  // A page of the server's own: another may not ask.
  await page.open(`${base}/docs`);
  return (url) => {
    const began = page.evaluate(`
      window.heard = [];
      window.source = new EventSource(${JSON.stringify(url)});
      source.onmessage = ({ data }) => heard.push(JSON.parse(data));
      true`);
    return {
      heard: () => began.then(() => page.evaluate("heard")) as Promise<readonly Event[]>,
      isOver: async () => (await page.evaluate("source.readyState")) === EventSource.CLOSED,
      close: () => void page.evaluate("source.close()"),
    };
  };
}

describe.each([
  { way: "directly", isThere: true },
  { way: "behind nginx as it is installed", isThere: nginx.whyNot === undefined },
])("a stream that is read $way", { timeout: waitMsMax * 2 }, ({ way, isThere }) => {
  let proxy: Front | undefined;
  let page: Page | undefined;

  beforeAll(async () => {
    if (way !== "directly" && isThere) proxy = await startNginx(server.url);
    if (hasChromium && isThere) page = await openPage();
  }, waitMsMax);
  afterAll(async () => {
    await proxy?.close();
    await page?.close();
  });

  const base = (): string => proxy?.url ?? server.url;
  /** Without a proxy there is nobody to cut it. */
  const cut = (): void => proxy?.cutAll();

  it.skipIf(!isThere)("comes word by word to `eventsource`, over a cut, and ends [RW-SSE-6]", () =>
    follows(base(), cut, eventSource),
  );

  it.skipIf(!isThere || !hasCurl)("comes word by word to `curl -N`, over a cut, and ends [RW-SSE-6]", () =>
    follows(base(), cut, curl),
  );

  it.skipIf(!isThere || !hasChromium)(
    "comes word by word to the EventSource of a page in Chromium, over a cut, and ends [RW-SSE-6]",
    async () => follows(base(), cut, await inPage(page as Page, base())),
  );
});

describe("a WebSocket of a page in Chromium", () => {
  it.skipIf(!hasChromium)(
    "hears why it cannot read, which no status would have told it [RW-WS-6]",
    { timeout: waitMsMax * 2 },
    async () => {
      const page = await openPage();
      try {
        await page.open(`${server.url}/docs`);
        const closeOf = (path: string, protocols: readonly string[]): Promise<unknown> =>
          page.evaluate(`new Promise((resolve) => {
            const ws = new WebSocket(${JSON.stringify(server.url.replace("http", "ws") + path)}, ${JSON.stringify(protocols)});
            ws.onclose = ({ code, reason }) => resolve([code, reason]);
          })`);
        const erased = await createRun(server.url);
        await call(server.url, "DELETE", `/v1/agent/runs/${erased}`);
        for (const protocols of [[], ["koder-agent-stream-v1"], ["runwire.runwire", "something.else"]]) {
          const missing = await closeOf(streamPath({ run_id: "run_0" }), protocols);
          expect(missing).toEqual([4404, "KAI-RUN-MISSING-0001: run not found: run_0"]);
          const [code, reason] = (await closeOf(streamPath({ run_id: erased }), protocols)) as [
            number,
            string,
          ];
          expect([code, reason]).toEqual([4410, expect.stringMatching(/^KAI-STREAM-CONN-0002: /)]);
        }
      } finally {
        await page.close();
      }
    },
  );
});
