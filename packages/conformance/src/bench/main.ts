// Prints what Runwire costs next to Node's bare HTTP server and to servers of others that do a part of its job, in the
// same run. Absolute figures move from machine to machine; the ratios are what to compare.

import { parseArgs } from "node:util";
import {
  depthGrowth,
  type Growth,
  lengthGrowth,
  listGrowth,
  liveRunsGrowth,
  readersGrowth,
} from "./growth.js";
import { type Peer, peers } from "./peers.js";
import { type Server, startOwn, startRunwire } from "./process.js";
import { appendSession, liveRuns, posts } from "./scenarios/appends.js";
import { fanOut, latency, saturated } from "./scenarios/fan-out.js";
import { idleReaders, stalledReaders } from "./scenarios/memory.js";
import { replay, storm } from "./scenarios/replays.js";
import type { Figures, Scenario } from "./scenarios/scenario.js";
import { steady } from "./steady.js";
import { medianOf, round, table } from "./table.js";

const { values: asked } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    alone: { type: "boolean", default: false },
    only: { type: "string", default: "" },
    growth: { type: "boolean", default: false },
    steady: { type: "string" },
  },
});
const { quick } = asked;
const repeats = quick ? 1 : 5;
const say = (line: string): void => void process.stderr.write(`${line}\n`);
const print = (text: string): void => void process.stdout.write(`${text}\n`);

if (asked.steady !== undefined) {
  const minutes = Number(asked.steady);
  if (!(minutes > 0)) throw new Error("--steady takes minutes");
  print(await steady(minutes, say));
} else if (asked.growth) print(await growthTable());
else print(await sideBySide());

async function sideBySide(): Promise<string> {
  const all: readonly Scenario[] = [
    fanOut(quick ? 200 : 1000, quick ? 20 : 50),
    saturated(100, quick ? 200 : 1000, 20),
    posts(64, quick ? 5_000 : 20_000),
    appendSession(quick ? 500 : 4000, 20),
    liveRuns(1, quick ? 200 : 1000, 20),
    liveRuns(quick ? 100 : 1000, quick ? 200 : 1000, 20),
    replay(quick ? 10_000 : 100_000),
    storm(quick ? 100 : 1000, 1000),
    latency(100, 10, 20, quick ? 2 : 5),
    idleReaders(quick ? 500 : 5000),
    stalledReaders(20, 20),
  ];
  const bare: Peer = {
    name: "node:http",
    can: ["fan-out", "saturated", "single-event", "batches", "replay", "latency", "idle", "stalled"],
    start: () => startOwn("node:http", "null-server.js"),
  };
  const others = [bare, ...(asked.alone ? [] : peers(say))];
  const rows: string[][] = [["scenario", "figure", "runwire", "beside", "has", "runwire : it"]];
  for (const scenario of all.filter(({ name }) => name.includes(asked.only))) {
    const beside = others.filter(({ can }) =>
      can.some((part) => scenario.name.startsWith(part) || scenario.name.includes(` ${part} `)),
    );
    const ours: Figures[] = [];
    const theirs = new Map(beside.map((peer) => [peer, [] as Figures[]]));
    // Interleaved, so that what else the machine does falls on all.
    for (let i = 0; i < repeats; i++) {
      say(`${scenario.name} (${i + 1}/${repeats})`);
      ours.push(await measure(scenario, startRunwire));
      for (const [peer, figures] of theirs) figures.push(await measure(scenario, peer.start));
    }
    for (const figure of Object.keys(ours[0] ?? {})) {
      const mine = figureOf(ours, figure);
      const what = `${scenario.measures}, ${figure}`;
      const compared = [...theirs].map(([{ name }, figures]) => ({ name, its: figureOf(figures, figure) }));
      const known = compared.filter(({ its }) => Number.isFinite(its));
      if (known.length === 0) rows.push([scenario.name, what, round(mine), "", "", ""]);
      for (const { name, its } of known)
        rows.push([scenario.name, what, round(mine), name, round(its), round(mine / its)]);
    }
  }
  return table(rows);
}

async function growthTable(): Promise<string> {
  const all: readonly Growth[] = [
    liveRunsGrowth(quick ? [10, 100] : [10, 100, 1000, 10_000], quick ? 1000 : 5000),
    readersGrowth(quick ? [10, 100] : [10, 100, 1000, 10_000], quick ? 5000 : 30_000),
    lengthGrowth(quick ? [1000, 10_000] : [1_000, 10_000, 100_000, 720_000], quick ? 300 : 1000),
    depthGrowth([0, 1, 2, 4, 8], quick ? 1000 : 5000),
    listGrowth(quick ? [100, 1000] : [100, 1000, 10_000, 50_000], quick ? 100 : 300),
  ];
  const rows: string[][] = [["what grows", "figure", "to", "costs", "× the first"]];
  for (const growth of all.filter(({ name }) => name.includes(asked.only))) {
    const measured: (readonly number[])[] = [];
    for (let i = 0; i < Math.min(repeats, 3); i++) {
      say(`${growth.name} (${i + 1}/${Math.min(repeats, 3)})`);
      // The first point twice: a server that has just started compiles its own code.
      const points = [...growth.points.slice(0, 1), ...growth.points];
      const all = { run: (server: Server) => growth.run(server, points) };
      measured.push((await measure(all, startRunwire)).slice(1));
    }
    const figures = growth.points.map((_, at) => medianOf(measured.map((one) => one[at] ?? Number.NaN)));
    for (const [at, point] of growth.points.entries()) {
      const figure = figures[at] ?? Number.NaN;
      rows.push([
        growth.name,
        growth.measures,
        String(point),
        round(figure),
        round(figure / (figures[0] ?? Number.NaN)),
      ]);
    }
  }
  return table(rows);
}

async function measure<T>(
  what: { run(server: Server): Promise<T> },
  start: () => Promise<Server>,
): Promise<T> {
  const server = await start();
  try {
    return await what.run(server);
  } catch (cause) {
    throw new Error(`${server.name}: ${(cause as Error).message}`, { cause });
  } finally {
    await server.stop();
  }
}

function figureOf(measured: readonly Figures[], figure: string): number {
  return medianOf(measured.map((figures) => figures[figure] ?? Number.NaN));
}
