// Prints what Runwire costs next to Node's bare HTTP server and to servers of others that do a part of its job, in the
// same run. Absolute figures move from machine to machine; the ratios are what to compare.

import { type Peer, peers } from "./peers.js";
import { type Server, startNull, startRunwire } from "./process.js";
import {
  type Figures,
  fanOut,
  idleReaders,
  latency,
  liveRuns,
  posts,
  replay,
  type Scenario,
  stalledReaders,
} from "./scenarios.js";

const quick = process.argv.includes("--quick");
const repeats = quick ? 1 : 5;
const only = process.argv.find((arg) => arg.startsWith("--only="))?.slice("--only=".length);

const all: readonly Scenario[] = [
  fanOut(quick ? 200 : 1000, quick ? 20 : 50),
  posts(64, quick ? 5_000 : 20_000),
  liveRuns(1, quick ? 200 : 1000, 20),
  liveRuns(quick ? 100 : 1000, quick ? 200 : 1000, 20),
  replay(quick ? 10_000 : 100_000),
  latency(100, 10, 20, quick ? 2 : 5),
  idleReaders(quick ? 500 : 5000),
  stalledReaders(20, 20),
];

const say = (line: string): void => void process.stderr.write(`${line}\n`);
const bare: Peer = { name: "node:http", can: [""], start: startNull };
const others: readonly Peer[] = [bare, ...(process.argv.includes("--alone") ? [] : peers(say))];

const rows: string[][] = [["scenario", "figure", "runwire", "beside", "has", "runwire : it"]];
for (const scenario of all.filter(({ name }) => only === undefined || name.includes(only))) {
  const beside = others.filter(({ can }) => can.some((part) => scenario.name.includes(part)));
  const ours: Figures[] = [];
  const theirs = new Map(beside.map((peer) => [peer, [] as Figures[]]));
  // Interleaved, so that what else the machine does falls on all.
  for (let i = 0; i < repeats; i++) {
    say(`${scenario.name} (${i + 1}/${repeats})`);
    ours.push(await measure(scenario, startRunwire));
    for (const [peer, figures] of theirs) figures.push(await measure(scenario, peer.start));
  }
  for (const figure of Object.keys(ours[0] ?? {})) {
    const mine = medianOf(ours, figure);
    for (const [{ name }, figures] of theirs) {
      const its = medianOf(figures, figure);
      if (!Number.isFinite(its)) continue;
      const what = `${scenario.measures} (${figure})`;
      rows.push([scenario.name, what, round(mine), name, round(its), round(mine / its)]);
    }
  }
}
process.stdout.write(`${table(rows)}\n`);

async function measure(scenario: Scenario, start: () => Promise<Server>): Promise<Figures> {
  const server = await start();
  try {
    return await scenario.run(server);
  } finally {
    await server.stop();
  }
}

function medianOf(measured: readonly Figures[], figure: string): number {
  const values = measured.map((figures) => figures[figure] ?? Number.NaN);
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

function round(value: number): string {
  return value >= 100 ? value.toFixed(0) : value.toPrecision(3);
}

function table(lines: readonly (readonly string[])[]): string {
  const widths = (lines[0] ?? []).map((_, column) =>
    Math.max(...lines.map((line) => (line[column] ?? "").length)),
  );
  const text = lines.map(
    (line) => `| ${line.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(" | ")} |`,
  );
  text.splice(1, 0, `|${widths.map((width) => "-".repeat(width + 2)).join("|")}|`);
  return text.join("\n");
}
