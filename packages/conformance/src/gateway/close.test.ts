// CLOSE: a reader can always tell finished from leaving from broken, and after each it is whole again.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Event } from "@runwire/protocol";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { allEvents, append, call, createRun, lifecycle, runPath, say, text, tryAppend } from "./calls.js";
import { isSoak } from "./chance.js";
import { rawConnection, requestText, upgradeLines } from "./raw-http.js";
import { closeOf, openReading, type Reading, readAll, streamPath, wireNames } from "./readers.js";
import { type ServerProcess, startServer } from "./server-process.js";

const runwire = fileURLToPath(new URL("../../../cli/bin/runwire.js", import.meta.url));
const serve = [process.execPath, runwire, "serve"];
// No test may take as long: a server that something keeps is not gone before its test has failed. With few readers that
// is also sooner than a connection is let go of on which nothing is asked.
const longGrace = ["--grace-ms", "600000"];
vi.setConfig({ testTimeout: isSoak ? 600_000 : 60_000 });

let folder: string;
let server: ServerProcess;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "runwire-close-"));
  server = await startServer(serve, folder, longGrace);
});

afterAll(async () => {
  await server.kill("SIGKILL");
  rmSync(folder, { recursive: true });
});

async function end(reading: Reading): Promise<string> {
  const ending = await reading.ended;
  return closeOf(Object.assign(reading, { ending }));
}

describe("a stream", () => {
  it("that is finished ends cleanly after the terminal event [RW-CLOSE-1]", async () => {
    for (const state of ["done", "aborted", "error"]) {
      const run_id = await createRun(server.url);
      const readings = await Promise.all(
        wireNames.map((wire) => openReading(wire, server.url, streamPath({ run_id }))),
      );
      await append(server.url, run_id, text("almost"), lifecycle(state));
      for (const reading of readings) {
        expect(await end(reading)).toBe("finished");
        expect(reading.events.at(-1)).toMatchObject({ type: "run.lifecycle", payload: { state } });
        expect(reading.retryMs).toBe(null);
      }
      expect((await readings[2]?.ended)?.code).toBe(1000);
    }
  });

  it("does not end with a child of its run [RW-CLOSE-1]", async () => {
    const run_id = await createRun(server.url);
    const child_id = `${run_id}.child`;
    const reading = await openReading("sse", server.url, streamPath({ run_id }));
    await append(server.url, run_id, say("child.spawn", { child_id }), lifecycle("done", child_id));
    await append(server.url, run_id, lifecycle("done"));
    expect(await end(reading)).toBe("finished");
    expect(reading.events.map(({ child_id }) => child_id)).toEqual([null, null, child_id, child_id, null]);
  });

  it("of a server that leaves ends cleanly without one, and is whole on the next server [RW-CLOSE-2]", async () => {
    const run_id = await createRun(server.url);
    await append(server.url, run_id, text("before"), say("title", { title: "t" }));
    const address = { run_id, dialect: "runwire" };
    const waves = await Promise.all(
      Array.from({ length: isSoak ? 334 : 20 }, () =>
        Promise.all(wireNames.map((wire) => openReading(wire, server.url, streamPath(address)))),
      ),
    );
    const readings = waves.flat();
    await Promise.all(readings.map((reading) => reading.until(({ events }) => events.length === 4)));
    const many = await openReading("sse", server.url, `/v1/agent/stream?runs=${run_id}`);
    const list = await openReading("sse", server.url, "/v1/agent/runs/stream");
    server.kill("SIGTERM");
    for (const reading of [...readings, many, list]) expect(await end(reading)).toBe("leaving");
    // Nothing keeps it.
    expect(await server.exited).toEqual({ code: 0, signal: null });
    expect(server.stderr).toBe("");

    const retries = [...waves.map(([sse]) => sse), many, list].map((reading) => reading?.retryMs ?? -1);
    for (const retryMs of retries) {
      expect(retryMs).toBeGreaterThanOrEqual(50);
      expect(retryMs).toBeLessThanOrEqual(2000);
    }
    // Spread, so that not all come back in the same moment.
    expect(new Set(retries).size).toBeGreaterThan(10);
    expect(new Set(await Promise.all(waves.map(async ([, , ws]) => (await ws?.ended)?.code)))).toEqual(
      new Set([1012]),
    );

    server = await startServer(serve, folder);
    const resumed = await Promise.all(
      readings.map((reading, i) =>
        openReading(
          wireNames[i % 3] ?? "sse",
          server.url,
          streamPath({ ...address, after: (reading.events.at(-1) as Event).pos }),
        ),
      ),
    );
    await append(server.url, run_id, text("after"), lifecycle("done"));
    const whole = await allEvents(server.url, run_id, { detail: "default" });
    for (const [i, reading] of resumed.entries()) {
      expect(await end(reading)).toBe("finished");
      expect([...(readings[i] as Reading).events, ...reading.events]).toEqual(whole);
    }
  });

  it("that replays a run which is erased meanwhile ends uncleanly: it must not look whole [RW-CLOSE-3]", async () => {
    const run_id = await createRun(server.url);
    // More than the connection takes before somebody reads.
    const large = say("message.settled", { text: "x".repeat(5_000_000) });
    for (let i = 0; i < 4; i++) await append(server.url, run_id, large);
    const raw = await rawConnection(server.url);
    const path = runPath(run_id, "replay.jsonl?dialect=runwire");
    raw.write(requestText(server.url, "GET", path, ["Connection: close"]));
    await raw.until((answer) => answer.includes("200 OK"));
    raw.socket.pause();
    expect((await call(server.url, "DELETE", `/v1/agent/runs/${run_id}`)).status).toBe(204);
    raw.socket.resume();
    await raw.ended;
    expect(raw.text.endsWith("\r\n0\r\n\r\n")).toBe(false);
  });

  it("of a server that was killed ends uncleanly [RW-CLOSE-3]", async () => {
    const run_id = await createRun(server.url);
    const readings = await Promise.all(
      wireNames.map((wire) => openReading(wire, server.url, streamPath({ run_id }))),
    );
    await Promise.all(readings.map((reading) => reading.until(({ events }) => events.length === 1)));
    server.kill("SIGKILL");
    for (const reading of readings) expect(await end(reading)).toBe("broken");
    await server.exited;
    server = await startServer(serve, folder);
    for (const wire of wireNames) {
      const again = await openReading(wire, server.url, streamPath({ run_id }));
      await again.until(({ events }) => events.length === 1);
      again.stop();
    }
  });
});

describe("a server that leaves", () => {
  it("still answers what changes nothing, be it asked with GET or with HEAD", async () => {
    const data = mkdtempSync(join(tmpdir(), "runwire-leaving-"));
    const leaving = await startServer(serve, data);
    const run_id = await createRun(leaving.url);
    // Asked, but for the last byte: a connection on which nothing is asked would be closed.
    const asking = await Promise.all(
      ["GET", "HEAD", "POST"].map(async (method) => {
        const raw = await rawConnection(leaving.url);
        raw.write(requestText(leaving.url, method, "/v1/agent/runs").slice(0, -1));
        return raw;
      }),
    );
    const reading = await openReading("sse", leaving.url, streamPath({ run_id }));
    leaving.kill("SIGTERM");
    expect(await end(reading)).toBe("leaving");
    for (const raw of asking) {
      raw.write("\n");
      await raw.ended;
    }
    expect(asking.map(({ text: said }) => said.slice(0, 12))).toEqual([
      "HTTP/1.1 200",
      "HTTP/1.1 200",
      "HTTP/1.1 503",
    ]);
    // Whoever would go on asking is told to ask the next server.
    for (const raw of asking) expect(raw.text).toContain("\r\nConnection: close\r\n");
    await leaving.exited;
    rmSync(data, { recursive: true });
  });

  it("is gone within the grace time although readers hold on to it", async () => {
    const data = mkdtempSync(join(tmpdir(), "runwire-grace-"));
    const leaving = await startServer(serve, data, ["--grace-ms", "300"]);
    const run_id = await createRun(leaving.url);
    // One that never reads, one that never answers a close frame, and one that never finishes its request.
    const stalled = await rawConnection(leaving.url);
    stalled.socket.pause();
    stalled.write(requestText(leaving.url, "GET", streamPath({ run_id })));
    const deaf = await rawConnection(leaving.url);
    deaf.write(requestText(leaving.url, "GET", streamPath({ run_id }), upgradeLines));
    await deaf.until((text) => text.includes('"running"'));
    const session = await rawConnection(leaving.url);
    session.write(
      requestText(leaving.url, "POST", `/v1/agent/runs/${run_id}/events`, [
        "Content-Type: application/x-ndjson",
        "Transfer-Encoding: chunked",
      ]),
    );
    await session.until((text) => text.includes("200 OK"));
    await append(leaving.url, run_id, say("custom", { filler: "x".repeat(4_000_000) }));
    const beganMs = performance.now();
    expect(await leaving.kill("SIGTERM")).toEqual({ code: 0, signal: null });
    // The time that it was given, and not the one that it has by itself.
    expect(performance.now() - beganMs).toBeLessThan(10_000);
    for (const raw of [stalled, deaf, session]) raw.socket.destroy();
    rmSync(data, { recursive: true });
  });

  it("leaves also where it is told so as soon as it says that it listens", async () => {
    const data = mkdtempSync(join(tmpdir(), "runwire-leaving-"));
    for (let i = 0; i < (isSoak ? 50 : 3); i++) {
      const leaving = await startServer(serve, data);
      leaving.kill("SIGTERM");
      expect(await leaving.exited).toEqual({ code: 0, signal: null });
    }
    rmSync(data, { recursive: true });
  });

  it("is ended at once where it is told again, and what it answered is kept", async () => {
    const data = mkdtempSync(join(tmpdir(), "runwire-leaving-"));
    const leaving = await startServer(serve, data, longGrace);
    const [run_id, live] = [await createRun(leaving.url), await createRun(leaving.url)];
    await append(leaving.url, run_id, text("answered"), lifecycle("done"));
    const begun = await rawConnection(leaving.url);
    begun.write(requestText(leaving.url, "GET", "/v1/agent/runs").slice(0, -1));
    const reading = await openReading("sse", leaving.url, streamPath({ run_id: live }));
    leaving.kill("SIGTERM");
    expect(await end(reading)).toBe("leaving");
    expect(await leaving.kill("SIGINT")).toEqual({ code: null, signal: "SIGINT" });
    const next = await startServer(serve, data);
    expect(closeOf(await readAll("sse", next.url, streamPath({ run_id })))).toBe("finished");
    await next.kill("SIGTERM");
    rmSync(data, { recursive: true });
  });

  it("finishes the requests that have begun, and takes no others", async () => {
    const data = mkdtempSync(join(tmpdir(), "runwire-leaving-"));
    const leaving = await startServer(serve, data);
    const run_id = await createRun(leaving.url);
    const reading = await openReading("sse", leaving.url, streamPath({ run_id }));
    const body = JSON.stringify([text("begun before"), lifecycle("done")]);
    const begun = await rawConnection(leaving.url);
    begun.write(
      requestText(leaving.url, "POST", `/v1/agent/runs/${run_id}/events`, [
        "Content-Type: application/json",
        `Content-Length: ${body.length}`,
        "Expect: 100-continue",
      ]),
    );
    // The server has the head of the request once it asks for the rest.
    await begun.until((answer) => answer.includes("100 Continue"));
    leaving.kill("SIGTERM");
    expect(await end(reading)).toBe("leaving");
    begun.write(body);
    await begun.until((answer) => answer.includes('"last_pos"'));
    expect(begun.text).toContain("200 OK");
    expect((await leaving.exited).code).toBe(0);
    await expect(tryAppend(leaving.url, run_id, [text("x")])).rejects.toThrow();
    const next = await startServer(serve, data);
    const whole = await readAll("sse", next.url, streamPath({ run_id }));
    expect(closeOf(whole)).toBe("finished");
    await next.kill("SIGTERM");
    rmSync(data, { recursive: true });
  });
});

describe("a reader that goes away", () => {
  it("ends nothing but its own stream [RW-CLOSE-4]", async () => {
    const run_id = await createRun(server.url);
    for (const wire of wireNames) {
      const reading = await openReading(wire, server.url, streamPath({ run_id }));
      await reading.until(({ events }) => events.length > 0);
      reading.stop();
      await reading.ended;
    }
    await append(server.url, run_id, text("still here"), lifecycle("done"));
    const whole = await readAll("sse", server.url, streamPath({ run_id }));
    expect(closeOf(whole)).toBe("finished");
    expect(whole.events.at(-1)?.payload).toMatchObject({ state: "done" });
  });
});
