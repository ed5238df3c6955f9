// The demo, killed with its server at one event after the other, under readers of every dialect, view and transport.
// Each goes on by its own cursor, and has heard in the end what a reader hears who was never cut off; and what they
// heard amounts to what the run is that was never killed.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  type Dialect,
  dialects,
  type Event,
  emptyTranscript,
  logReader,
  reduce,
  type Transcript,
  type View,
} from "@runwire/protocol";
import { describe, expect, it } from "vitest";
import { startRun } from "./calls.js";
import { chance, isSoak } from "./chance.js";
import { type Heard, openReading, readAll, streamPath, type WireName, wireNames } from "./readers.js";
import { startServer } from "./server-process.js";

const luck = chance("agent killed");
/** Servers at the same time: the demo mostly waits. */
const lanes = isSoak ? 4 : 3;
/** How many events the run has. */
const about = 360;
/** Between two kills of one run. */
const stride = 40;
const serve = [
  process.execPath,
  fileURLToPath(new URL("../../../cli/bin/runwire.js", import.meta.url)),
  "serve",
];
const views: readonly View[] = ["default", "full"];
const spoken = [...dialects.values()].flatMap((dialect) => views.map((detail) => ({ dialect, detail })));

interface Lane {
  /** While one is starting, those who ask wait for it. */
  server: ReturnType<typeof startServer>;
  readonly folder: string;
}

function openLane(): Lane {
  const folder = mkdtempSync(join(tmpdir(), "runwire-killed-"));
  return { folder, server: startServer(serve, folder) };
}

async function killAndRestart(lane: Lane): Promise<void> {
  const server = await lane.server;
  lane.server = server.exited.then(() => startServer(serve, lane.folder));
  server.kill("SIGKILL");
  await lane.server;
}

async function closeLane(lane: Lane): Promise<void> {
  const server = await lane.server;
  await server.kill("SIGKILL");
  rmSync(lane.folder, { recursive: true });
}

async function start(lane: Lane): Promise<string> {
  return startRun((await lane.server).url, { prompt: "compare three charting libraries" });
}

interface Spoken {
  readonly dialect: Dialect;
  readonly detail: View;
}

/** Everything that a reader hears, over as many servers as it takes. */
async function hear(lane: Lane, run_id: string, of: Spoken, wire: WireName): Promise<readonly Heard[]> {
  const heard: Heard[] = [];
  for (;;) {
    const asked = lane.server;
    const { url } = await asked;
    const after = cursorOf(heard, of.dialect, wire);
    const path = { run_id, dialect: of.dialect.name, detail: of.detail, backpressure: "lossless" } as const;
    try {
      // A browser says it in a header, by itself.
      const reading =
        wire === "sse"
          ? await openReading(wire, url, streamPath(path), after === 0 ? {} : { "Last-Event-ID": `${after}` })
          : await openReading(wire, url, streamPath({ ...path, after }));
      const { clean, code } = await reading.ended;
      if (reading.status === 204) return heard;
      expect([200, 101]).toContain(reading.status);
      heard.push(...reading.heard);
      if (clean && (code === null || code === 1000)) return heard;
    } catch (error) {
      // Nobody was there; unless it was to be.
      if (asked === lane.server) throw error;
    }
  }
}

/** Where a reader is, as its dialect tells it. */
function cursorOf(heard: readonly Heard[], { name }: Dialect, wire: WireName): number {
  const last = heard.at(-1);
  if (last === undefined) return 0;
  if (wire === "sse") return Number(last.id);
  const { seq, pos, event_id, sequence, params } = JSON.parse(last.data) as {
    readonly [member: string]: number & { readonly sequence: number };
  };
  if (name === "loom-export") return heard.length;
  return (name === "koder" ? seq : (pos ?? event_id ?? sequence ?? params?.sequence)) ?? Number.NaN;
}

interface Amount {
  readonly [what: string]: unknown;
}

/** What was done and said, by everyone, whatever it was called and when it was. */
function amount(dialect: Dialect, messages: readonly string[]): Amount {
  const reader = logReader(dialect);
  const events = messages.flatMap((data) => reader.read(data));
  const first = events[0] as Event;
  const folded = events.reduce((t, e) => reduce(t, e), emptyTranscript(first.run_id));
  const all = told(folded);
  // Loom does not say who speaks, so those who speak at the same time do so in any order.
  const said = dialect.name.startsWith("loom") ? { ...all, text: [...all.text].sort().join("") } : all;
  return JSON.parse(JSON.stringify(said).replace(/\b([a-z]+)_[0-9A-HJKMNP-TV-Z]{26}\b/g, "$1"));
}

interface Told {
  readonly text: string;
  readonly [what: string]: unknown;
}

function told({ state, reason, parts, tools, settled, plan, steps, title, children }: Transcript): Told {
  const sorted = (list: readonly unknown[]): readonly unknown[] =>
    list.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
  return {
    state,
    reason,
    title,
    plan,
    text: parts.map((part) => (part.kind === "block" ? part.text : "")).join(""),
    settled: settled.map(({ text }) => text),
    steps: steps.map(({ step_kind, plan_steps }) => ({ step_kind, plan_steps })),
    tools: sorted(
      Object.values(tools)
        // What was being written when it was cut off is no call, where that it was asked for again is not said.
        .filter(({ status }) => status !== "writing")
        .map(({ tool, status, input, output, error }) => ({ ...{ tool, status, input, output, error } })),
    ),
    children: sorted(Object.values(children).map(({ transcript }) => told(transcript))),
  };
}

/** What the run says to those who come when it is over: they are never cut off. */
async function uncut(lane: Lane, run_id: string): Promise<readonly (readonly string[])[]> {
  const { url } = await lane.server;
  return Promise.all(
    spoken.map(async ({ dialect: { name: dialect }, detail }) => {
      const { heard, ending } = await readAll("ndjson", url, streamPath({ run_id, dialect, detail }));
      expect(ending.clean).toBe(true);
      return heard.map(({ data }) => data);
    }),
  );
}

/** Kills the server at each of these events of one run, as far as the run comes. */
async function killedAt(moments: readonly number[], lane: Lane): Promise<readonly (readonly string[])[]> {
  const run_id = await start(lane);
  const readers = spoken.flatMap((of, i) =>
    wireNames.map(async (wire) => ({ i, wire, heard: await hear(lane, run_id, of, wire) })),
  );
  // What a reader throws meanwhile is heard of below.
  for (const reader of readers) reader.catch(() => {});
  for (const n of moments) {
    const { url } = await lane.server;
    const path = streamPath({ run_id, dialect: "runwire", detail: "full" });
    const watch = await openReading("ndjson", url, path);
    const isThere = watch.until(({ heard }) => heard.length >= n).then(() => true);
    // The last one comes right after the end, where the run has said less.
    const goesOn = await Promise.race([watch.ended.then(() => false), isThere]);
    await killAndRestart(lane);
    if (!goesOn) break;
  }
  const all = await Promise.all(readers);
  const whole = await uncut(lane, run_id);
  for (const { i, wire, heard } of all) {
    const { dialect, detail } = spoken[i] as Spoken;
    const name = `${dialect.name}, ${detail}, ${wire}, killed at ${moments}`;
    expect(
      heard.map(({ data }) => data),
      name,
    ).toEqual(whole[i]);
    if (wire === "sse")
      expect(
        heard.map(({ id }) => id),
        name,
      ).toEqual(heard.map((_, k) => `${k + 1}`));
  }
  return whole;
}

/** Another run of the same request, which was killed at `n`, came to the same. */
function expectSame(
  n: readonly number[],
  whole: readonly (readonly string[])[],
  calmly: readonly Amount[],
): void {
  for (const [i, { dialect, detail }] of spoken.entries()) {
    for (const [what, value] of Object.entries(amount(dialect, whole[i] ?? [])))
      expect(value, `${what} of ${dialect.name}, ${detail}, killed at ${n}`).toEqual(calmly[i]?.[what]);
  }
}

describe("the demo", () => {
  it("comes to the same for every reader, at whichever event its server is killed", async () => {
    const open = Array.from({ length: lanes }, openLane);
    try {
      const [calm] = open as [Lane];
      const calmRun = await start(calm);
      const undisturbed = calm.server
        .then(({ url }) => readAll("sse", url, streamPath({ run_id: calmRun })))
        .then(() => uncut(calm, calmRun));
      // What it says right before its end is worth a kill of its own each time. All of them are all events in turn:
      // one run is killed at some, the next at those after them.
      const moments = isSoak
        ? Array.from({ length: stride }, (_, i) => Array.from({ length: 50 }, (_, k) => i + 1 + k * stride))
        : [[luck.whole(1, about)], [luck.whole(about - 20, about + 20)]];
      const calmly = undisturbed.then((said) =>
        spoken.map(({ dialect }, i) => amount(dialect, said[i] ?? [])),
      );
      // Its server is killed too, where there is time for all of them.
      if (isSoak) await calmly;
      const left = moments.values();
      const failures: unknown[] = [];
      const failed = (error: unknown): void => {
        process.stdout.write(`agent killed: ${String((error as Error).message).slice(0, 300)}\n`);
        failures.push(error);
      };
      await Promise.all(
        (isSoak ? open : open.slice(1)).map(async (lane) => {
          for (const n of left) {
            const whole = killedAt(n, lane);
            // The others go on: which moments are bad says more than that one is.
            await whole.then(async (said) => expectSame(n, said, await calmly)).catch(failed);
          }
        }),
      );
      expect(failures).toEqual([]);
    } finally {
      await Promise.all(open.map(closeLane));
    }
  });
});
