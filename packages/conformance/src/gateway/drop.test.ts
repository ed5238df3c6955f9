// DROP: a reader that falls behind loses reasoning first, then text, never control, and is told how many. What
// it costs the server is its cursor and what is in its socket.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Event, Transcript } from "@runwire/protocol";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { allEvents, append, createRun, lifecycle, reasoning, say, text } from "./calls.js";
import { measure, probed } from "./probed-server.js";
import { dechunked, type RawConnection, rawConnection, requestText } from "./raw-http.js";
import { openReading, type Reading, type StreamAddress, streamPath } from "./readers.js";
import { type ServerProcess, startServer } from "./server-process.js";

const runwire = fileURLToPath(new URL("../../../cli/bin/runwire.js", import.meta.url));
let folder: string;
let server: ServerProcess;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "runwire-drop-"));
  server = await startServer(probed(runwire), folder, ["--durability", "os"]);
});

afterAll(async () => {
  server.kill("SIGKILL");
  await server.exited;
  rmSync(folder, { recursive: true });
});

interface Load {
  readonly reasoningBytes: number;
  readonly textBytes: number;
  readonly toolBytes: number;
}

/** Reasoning, text and a tool call a round; goes on when a second reader has heard it, so that one never lags. */
async function write(
  url: string,
  run_id: string,
  rounds: number,
  load: Load,
  beside: Reading,
): Promise<void> {
  for (let i = 0; i < rounds; i++) {
    const call_id = `call_${i}`;
    await append(
      url,
      run_id,
      reasoning("r".repeat(load.reasoningBytes)),
      text("t".repeat(load.textBytes)),
      say("tool.start", { call_id, tool: "shell", input: "i".repeat(load.toolBytes) }),
      say("tool.end", { call_id, ok: true, error: null }),
    );
    const heard = 1 + 4 * (i + 1);
    await beside.until(({ events }) => events.length >= heard);
  }
}

/** A reader that has come to the head and then stops reading. */
async function stalledReader(url: string, address: StreamAddress): Promise<RawConnection> {
  const raw = await rawConnection(url);
  raw.write(requestText(url, "GET", streamPath(address), ["Connection: close"]));
  await raw.until((answer) => answer.includes('"running"') && answer.endsWith("\n\n\r\n"));
  raw.socket.pause();
  return raw;
}

async function readOn(raw: RawConnection): Promise<readonly Event[]> {
  raw.socket.resume();
  expect(await raw.ended).toEqual({ clean: true });
  return eventsOf(dechunked(raw.text));
}

function eventsOf(sse: string): readonly Event[] {
  return [...sse.matchAll(/^data: (.*)$/gm)].map(([, data]) => JSON.parse(data ?? "{}") as Event);
}

function missing(events: readonly Event[], whole: readonly Event[]): readonly Event[] {
  const had = new Set(events.map(({ seq }) => seq));
  return whole.filter(({ seq }) => !had.has(seq));
}

const typesOf = (events: readonly Event[]): ReadonlySet<string> => new Set(events.map(({ type }) => type));
const rounds = 320;
/** So many that what one costs stands out from what a server keeps for reasons of its own, such as caches. */
const stalledReaders = 6;

describe("a reader that stops reading for 20 MB and then reads on", () => {
  it("loses only reasoning where that is enough [RW-BACKPRESSURE-1]", { timeout: 120_000 }, async () => {
    const light: Load = { reasoningBytes: 64_000, textBytes: 200, toolBytes: 200 };
    const run_id = await createRun(server.url);
    const beside = await openReading("sse", server.url, streamPath({ run_id }));
    const dropping = await stalledReader(server.url, { run_id });
    const lossless = await stalledReader(server.url, { run_id, backpressure: "lossless" });
    const runwire = await stalledReader(server.url, { run_id, dialect: "runwire" });
    const full = await stalledReader(server.url, { run_id, detail: "full" });
    await write(server.url, run_id, rounds - 20, light, beside);
    // One that begins now is behind by all of it, but has never been at the head.
    const late = await rawConnection(server.url);
    late.socket.pause();
    late.write(requestText(server.url, "GET", streamPath({ run_id }), ["Connection: close"]));
    const resumed = await rawConnection(server.url);
    resumed.socket.pause();
    resumed.write(requestText(server.url, "GET", streamPath({ run_id, after: 9 }), ["Connection: close"]));
    for (let i = 0; i < 20; i++) {
      await append(
        server.url,
        run_id,
        reasoning("r".repeat(64_000)),
        say("tool.start", { call_id: `late_${i}`, tool: "t" }),
      );
    }
    await append(server.url, run_id, lifecycle("done"));
    const whole = await allEvents(server.url, run_id, { dialect: "koder", detail: "default" });

    const events = await readOn(dropping);
    const lost = missing(events, whole);
    expect(typesOf(lost)).toEqual(new Set(["reasoning.delta"]));
    expect(events.at(-1)?.payload).toMatchObject({ dropped_count: lost.length });

    expect(await readOn(lossless)).toEqual(whole);
    expect(await readOn(late)).toEqual(whole);
    expect(await readOn(resumed)).toEqual(whole.slice(9));
    expect(
      (await readOn(runwire))
        .filter(({ type }) => type !== "turn.submitted" && type !== "message.settled")
        .map(({ id }) => id),
    ).toEqual(whole.map(({ id }) => id));
    const wholeFull = await allEvents(server.url, run_id, { dialect: "koder", detail: "full" });
    const inFull = await readOn(full);
    expect(typesOf(missing(inFull, wholeFull))).toEqual(new Set(["reasoning.delta"]));
    expect(inFull.at(-1)?.payload).toMatchObject({ dropped_count: missing(inFull, wholeFull).length });
    await beside.ended;
    expect(beside.events).toEqual(whole);
  });

  it("shares the snapshot that it began with with all who have stopped there, and costs less than 2 MB", {
    timeout: 120_000,
  }, async () => {
    const calls = 250;
    const run_id = await createRun(server.url);
    for (let i = 0; i < calls; i++)
      await append(
        server.url,
        run_id,
        say("tool.start", { call_id: `call_${i}`, tool: "shell", input: "i".repeat(60_000) }),
      );
    const begin = async (): Promise<RawConnection> => {
      const raw = await rawConnection(server.url);
      const path = streamPath({ run_id, dialect: "runwire", snapshot: 1 });
      raw.write(requestText(server.url, "GET", path, ["Connection: close"]));
      await raw.until((answer) => answer.includes("event: snapshot"));
      raw.socket.pause();
      return raw;
    };
    // It has made the snapshot; what that itself keeps is not the others'.
    const stalled = [await begin()];
    const before = await measure(server);
    while (stalled.length <= stalledReaders) stalled.push(await begin());
    const withStalled = await measure(server);
    expect(withStalled.waiting.at(-1)).toBeGreaterThan(4_000_000);
    expect((withStalled.kept - before.kept) / stalledReaders).toBeLessThan(2_000_000);

    await append(server.url, run_id, lifecycle("error"));
    for (const raw of stalled) {
      const said = await readOn(raw);
      const [{ type, transcript }] = said as unknown as [{ type: string; transcript: Transcript }];
      expect([type, Object.keys(transcript.tools).length]).toEqual(["snapshot", calls]);
      expect(said.at(-1)?.payload).toEqual({ state: "error", reason: null });
    }
  });

  it("that never fell behind is told of no loss [RW-KODER-2]", async () => {
    const run_id = await createRun(server.url);
    const reading = await openReading("sse", server.url, streamPath({ run_id, backpressure: "drop" }));
    await append(server.url, run_id, text("short"), lifecycle("error"));
    await reading.ended;
    expect(reading.events.at(-1)?.payload).toEqual({ state: "error", reason: null });
    expect(server.stderr).toBe("");
  });
});
