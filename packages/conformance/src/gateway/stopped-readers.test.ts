// STOPPED READERS: of every kind, at the head of a run that goes on for 100,000 events of 1 KB. What they cost the server
// is their cursors and what is in their sockets; the producer and other readers do not notice them; and when they read on,
// nothing that must not be lost is missing. Beside it runs another server with the same load and none of them.

import { createHash } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { get } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Draft, Event } from "@runwire/protocol";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { append, createRun, lifecycle, reasoning, runPath, say, text, tryAppend } from "./calls.js";
import { isSoak } from "./chance.js";
import { measure, probed } from "./probed-server.js";
import { openReading, type StreamAddress, streamPath, type WireName } from "./readers.js";
import { type ServerProcess, startServer } from "./server-process.js";
import { type StoppedReader, stoppedReader } from "./stopped-reader.js";

const blocks = isSoak ? 2000 : 200;
const blockEvents = 50;
/** What is told of the commit before last has been read by the time that this one is answered, and most of the last. */
const blocksBehindMax = 4;
/** Far more than two stretches of one load differ by, also on a machine that does something else. */
const slowerMax = 3;
const bytesEachMax = 2_000_000;
/** What all of them cost is less than what a queue for a single one would hold, beside what the kernel takes. */
const bytesMax = 0.4 * blocks * blockEvents * 1000;
const socketBytesMax = 1024 * 1024;

interface Kind extends Omit<StreamAddress, "run_id"> {
  readonly wire: WireName;
}

const dropping: readonly Kind[] = [{ wire: "sse" }, { wire: "websocket", detail: "full" }];
const lossless: readonly Kind[] = [
  { wire: "sse", detail: "full", backpressure: "lossless" },
  { wire: "websocket", dialect: "runwire" },
  { wire: "ndjson", dialect: "runtime", detail: "full" },
  { wire: "sse", dialect: "loom", detail: "full" },
];
const hangingUp: Kind = { wire: "ndjson", dialect: "runwire", detail: "full" };
const never: readonly Kind[] = [{ wire: "sse" }, { wire: "websocket", dialect: "runwire", detail: "full" }];

const sign = "at the head";
const kilobyte = "k".repeat(1000);

interface Side {
  readonly folder: string;
  readonly server: ServerProcess;
  /** The one that is written, and one that says little beside it. */
  readonly run_id: string;
  readonly beside: string;
}

/** The same load on each side, and how it went. */
interface Load {
  readonly side: Side;
  readonly other: OtherReader;
  /** The last position of each block, how long it took, and how many blocks the other reader was behind at its end. */
  readonly ends: number[];
  readonly ms: number[];
  readonly behind: number[];
}

const runwire = fileURLToPath(new URL("../../../cli/bin/runwire.js", import.meta.url));
let withStopped: Side;
let without: Side;

beforeAll(async () => {
  [withStopped, without] = (await Promise.all([newSide(), newSide()])) as [Side, Side];
});

afterAll(async () => {
  for (const { server, folder } of [withStopped, without]) {
    server.kill("SIGKILL");
    await server.exited;
    rmSync(folder, { recursive: true });
  }
});

async function newSide(): Promise<Side> {
  const folder = mkdtempSync(join(tmpdir(), "runwire-stopped-"));
  const server = await startServer(probed(runwire), folder, ["--durability", "os", "--grace-ms", "1000"]);
  const [run_id, beside] = [await createRun(server.url), await createRun(server.url)];
  return { folder, server, run_id, beside };
}

interface OtherReader {
  /** How far it has read. */
  readonly pos: number;
  /** SHA-256 of all that it read, once its run has ended. */
  readonly sha256: Promise<string>;
}

/** One that reads all the time, and keeps nothing of it. */
async function otherReader(url: string, run_id: string): Promise<OtherReader> {
  const hash = createHash("sha256");
  let pos = 0;
  const path = streamPath({ run_id, dialect: "runwire", detail: "full" });
  const request = get(url + path, { agent: false, headers: { Accept: "application/x-ndjson" } });
  const sha256 = new Promise<string>((resolve, reject) => {
    request.once("error", reject);
    request.once("response", (response) => {
      let isLineBegun = false;
      response.on("data", (bytes: Buffer) => {
        let from = 0;
        for (let at = bytes.indexOf(10); at >= 0; at = bytes.indexOf(10, from)) {
          // A blank line is a sign of life.
          if (at > from || isLineBegun) {
            hash.update(bytes.subarray(from, at + 1));
            pos += 1;
          }
          isLineBegun = false;
          from = at + 1;
        }
        hash.update(bytes.subarray(from));
        isLineBegun ||= from < bytes.length;
      });
      response.once("error", reject);
      response.once("end", () => resolve(hash.digest("hex")));
    });
  });
  sha256.catch(() => {});
  return {
    get pos() {
      return pos;
    },
    sha256,
  };
}

async function newLoad(side: Side): Promise<Load> {
  const other = await otherReader(side.server.url, side.run_id);
  return { side, other, ends: [], ms: [], behind: [] };
}

/** Mostly deltas; two in ten are a call, and two are for the list of runs too. */
function draftOf(block: number, i: number): Draft {
  const call_id = `call_${block}_${i - (i % 10)}`;
  if (i % 5 === 4) return say("title", { title: `${block} ${i} ${kilobyte}` });
  if (i % 10 < 4) return reasoning(kilobyte);
  if (i % 10 < 7) return text(kilobyte);
  if (i % 10 === 7) return say("tool.start", { call_id, tool: "shell", input: kilobyte });
  return say("tool.end", { call_id, ok: true, error: null, output: kilobyte });
}

async function write({ side, other, ends, ms, behind }: Load, block: number): Promise<void> {
  const { server, run_id } = side;
  const drafts = Array.from({ length: blockEvents }, (_, i) => draftOf(block, i));
  const startedMs = performance.now();
  const { status, body } = await tryAppend(server.url, run_id, drafts);
  ms.push(performance.now() - startedMs);
  expect(status).toBe(200);
  ends.push(Number(body.last_pos));
  behind.push(ends.filter((end) => end > other.pos).length);
}

const medianOf = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;

async function replay({ server }: Side, run_id: string, query: string): Promise<string> {
  const response = await fetch(`${server.url}${runPath(run_id, `replay.jsonl?${query}`)}`);
  return response.text();
}

const linesOf = (replayed: string): readonly string[] => replayed.split("\n").slice(0, -1);

/** Compared one by one: what differs among a hundred megabytes is not to be printed whole. */
function expectSame(heard: readonly string[], whole: readonly string[]): void {
  const at = whole.findIndex((line, i) => heard[i] !== line);
  expect([at, heard[at]?.slice(0, 300), heard.length]).toEqual([-1, undefined, whole.length]);
}

function expectOnlyCountedDeltasLost(heard: readonly string[], whole: readonly string[]): void {
  const had = new Set(heard.map((line) => (JSON.parse(line) as Event).seq));
  const all = whole.map((line) => JSON.parse(line) as Event);
  const lost = all.filter(({ seq }) => !had.has(seq));
  // Of each some, and nothing else.
  expect([...new Set(lost.map(({ type }) => type))].sort()).toEqual(["reasoning.delta", "text.delta"]);
  expectSame(
    heard.slice(0, -1),
    whole.slice(0, -1).filter((_, i) => had.has(all[i]?.seq ?? 0)),
  );
  expect((JSON.parse(heard.at(-1) ?? "{}") as Event).payload).toEqual({
    state: "done",
    reason: null,
    dropped_count: lost.length,
    code: "KAI-STREAM-BUF-0001",
  });
}

interface Entry {
  readonly type: string;
  readonly pos: number;
  readonly payload: { readonly title: string };
}

async function expectWholeFeed(side: Side, reader: StoppedReader, path: string): Promise<void> {
  const fresh = await openReading("ndjson", side.server.url, path);
  await fresh.until(({ events }) => events.length > 0);
  const { pos: head } = fresh.events[0] as unknown as Entry;
  fresh.stop();
  const entriesOf = (messages: readonly string[]): readonly Entry[] =>
    messages.map((line) => JSON.parse(line) as Entry);
  const heard = entriesOf(await reader.readOn((messages) => entriesOf(messages.slice(-1))[0]?.pos === head));
  reader.hangUp();
  const from = heard[0]?.pos ?? 0;
  expect(heard.map(({ pos }) => pos)).toEqual(Array.from({ length: head - from + 1 }, (_, i) => from + i));
  const titles = heard.filter(({ type }) => type === "title").map(({ payload }) => payload.title);
  const drafts = Array.from({ length: blocks * blockEvents }, (_, i) =>
    draftOf(Math.floor(i / blockEvents), i % blockEvents),
  );
  const sent = drafts.flatMap(({ type, payload }) =>
    type === "title" ? [(payload as Entry["payload"]).title] : [],
  );
  expectSame(titles.slice(titles.indexOf(sign)), [sign, ...sent]);
}

describe(`readers that stop reading while ${blocks * blockEvents} events of 1 KB are appended`, () => {
  it("cost less than 2 MB each, hold up neither the producer nor others, and lose nothing but deltas that are counted [RW-BACKPRESSURE-1] [RW-BACKPRESSURE-2] [RW-KODER-2]", async () => {
    const { server, run_id, beside } = withStopped;
    const open = ({ wire, ...address }: Kind): Promise<StoppedReader> =>
      stoppedReader(wire, server.url, streamPath({ run_id, ...address }));
    const openAll = (kinds: readonly Kind[]): Promise<readonly StoppedReader[]> =>
      Promise.all(kinds.map(open));
    const [losers, keepers, lasting] = [
      await openAll(dropping),
      await openAll(lossless),
      await openAll(never),
    ];
    const leaver = await open(hangingUp);
    const muxPath = `/v1/agent/stream?runs=${run_id},${beside}&dialect=runwire&detail=full`;
    const mux = await stoppedReader("sse", server.url, muxPath);
    const feedPath = "/v1/agent/runs/stream";
    const feed = await stoppedReader("sse", server.url, feedPath);
    for (const one of [run_id, beside]) await append(server.url, one, text(sign));
    for (const side of [withStopped, without])
      await append(side.server.url, side.run_id, say("title", { title: sign }));
    const readers = [...losers, ...keepers, ...lasting, leaver, mux, feed];
    await Promise.all(readers.map((reader) => reader.stop(sign, reader === mux ? 3 : 1)));

    // Whoever comes last is told last.
    const loads = (await Promise.all([withStopped, without].map(newLoad))) as [Load, Load];
    const [hindered, free] = loads;

    // In turns, so that whatever else the machine does falls on both.
    let halfway: readonly number[] = [];
    for (let block = 0; block < blocks; block++) {
      if (block === blocks / 2) halfway = (await measure(server)).waiting;
      for (const load of block % 2 === 0 ? [hindered, free] : [free, hindered]) await write(load, block);
    }
    const [costly, cheap] = [await measure(server), await measure(without.server)];
    const bytes = costly.kept - cheap.kept;
    const slower = medianOf(hindered.ms.map((ms, i) => ms / (free.ms[i] ?? ms)));
    const behind = loads.map((load) => Math.max(...load.behind));
    process.stdout.write(
      `${readers.length} stopped readers: ${(bytes / 1e6 / readers.length).toFixed(2)} MB each, at most ` +
        `${((costly.waiting.at(-1) ?? 0) / 1e6).toFixed(2)} MB in a socket; appends take ${slower.toFixed(2)} times ` +
        `as long; another reader is ${behind.join(" and ")} blocks behind at most\n`,
    );
    expect(bytes).toBeLessThan(Math.min(bytesMax, bytesEachMax * readers.length));
    // Those that have stopped have been full since long before, and nothing more is written for them.
    expect(costly.waiting).toEqual(halfway);
    expect(costly.waiting.at(-1)).toBeLessThan(socketBytesMax);
    expect(slower).toBeLessThan(slowerMax);
    for (const blocksBehind of behind) expect(blocksBehind).toBeLessThanOrEqual(blocksBehindMax);

    for (const one of [run_id, beside]) await append(server.url, one, lifecycle("done"));
    const whole = await replay(withStopped, run_id, "dialect=runwire&detail=full");
    const sha256 = await hindered.other.sha256;
    expect(hindered.other.pos).toBe(linesOf(whole).length);
    expect(sha256).toBe(createHash("sha256").update(whole).digest("hex"));

    for (const [i, reader] of losers.entries()) {
      const stored = await replay(withStopped, run_id, `detail=${dropping[i]?.detail ?? "default"}`);
      expectOnlyCountedDeltasLost(await reader.readOn(), linesOf(stored));
      expect(await reader.ended).toBe(true);
    }
    for (const [i, reader] of keepers.entries()) {
      const { dialect = "koder", detail = "default" } = lossless[i] as Kind;
      const stored = await replay(withStopped, run_id, `dialect=${dialect}&detail=${detail}`);
      expectSame(await reader.readOn(), linesOf(stored));
      expect(await reader.ended).toBe(true);
    }
    const had = leaver.hangUp();
    const rest = await open({ ...hangingUp, after: had.length });
    expectSame([...had, ...(await rest.readOn())], linesOf(whole));
    const heard = await mux.readOn();
    expect(await mux.ended).toBe(true);
    for (const one of [run_id, beside]) {
      const own = heard.filter((line) => (JSON.parse(line) as Event).run_id === one);
      expectSame(own, linesOf(await replay(withStopped, one, "dialect=runwire&detail=full")));
    }
    await expectWholeFeed(withStopped, feed, feedPath);

    // Those that never read on do not keep the server from leaving.
    server.kill("SIGTERM");
    expect(await server.exited).toEqual({ code: 0, signal: null });
    for (const reader of lasting) reader.hangUp();
    expect(server.stderr).toBe("");
  });
});
