// What a connection says when there is nothing to say, and what the operator hears when it is cut.

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { limits } from "@runwire/protocol";
import { startGateway } from "@runwire/server";
import { describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { createRun } from "./calls.js";
import { openReading, streamPath } from "./readers.js";
import { startServer } from "./server-process.js";
import { forwardClock, underTest } from "./under-test.js";

const runwire = fileURLToPath(new URL("../../../cli/bin/runwire.js", import.meta.url));
const clock = forwardClock();
const quiet = underTest(startGateway, {}, clock);

describe("a silent stream", () => {
  it("gives a sign of life after 15 s, on every transport [RW-SSE-3] [RW-NDJSON-1] [RW-WS-5]", async () => {
    const run_id = await createRun(quiet.url);
    const sse = await openReading("sse", quiet.url, streamPath({ run_id }));
    const lines = await openReading("ndjson", quiet.url, streamPath({ run_id }));
    const socket = new WebSocket(quiet.url.replace("http", "ws") + streamPath({ run_id }));
    let pings = 0;
    const pinged = new Promise<void>((resolve) => {
      socket.on("ping", () => {
        pings += 1;
        resolve();
      });
    });
    await new Promise((resolve) => socket.once("message", resolve));
    await sse.until(({ events }) => events.length === 1);
    await lines.until(({ events }) => events.length === 1);
    expect(sse.text).not.toContain("keepalive");

    clock.pass(limits.keepaliveMs);
    await sse.until(({ text }) => text.endsWith("\n\n: keepalive\n\n"));
    await lines.until(({ text }) => text.endsWith("\n\n"));
    await pinged;
    // One sign each: the silence begins anew.
    expect(pings).toBe(1);
    expect(sse.text.match(/keepalive/g)).toHaveLength(1);
    for (const reading of [sse, lines]) reading.stop();
    socket.terminate();
  });
});

describe("a client that is cut off in mid-stream", () => {
  it("is told to the operator as KAI-STREAM-CONN-0001, and the run goes on", async () => {
    const server = await startServer([process.execPath, runwire, "serve"], join(quiet.folder, "told"), [
      "--log",
      "info",
    ]);
    try {
      const run_id = await createRun(server.url);
      const reading = await openReading("sse", server.url, streamPath({ run_id }));
      await reading.until(({ events }) => events.length === 1);
      reading.stop();
      const cut = (): string | undefined =>
        server.stderr.split("\n").find((line) => line.includes("KAI-STREAM-CONN-0001"));
      await expect.poll(cut).toBeDefined();
      expect(JSON.parse(cut() ?? "")).toMatchObject({
        level: "info",
        code: "KAI-STREAM-CONN-0001",
        run_id,
        cursor: 2,
      });
      const run = await fetch(`${server.url}/v1/agent/runs/${run_id}`);
      expect(await run.json()).toMatchObject({ state: "running" });
    } finally {
      await server.kill("SIGTERM");
    }
  });
});
