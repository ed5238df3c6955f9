// Prints what Runwire costs next to Node's bare HTTP server, in the same run. Absolute figures move from machine
// to machine; the ratios are what to compare.

import { startNull, startRunwire } from "./process.js";
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

const rows: string[][] = [["scenario", "figure", "runwire", "node:http", "ratio"]];
for (const scenario of all.filter(({ name }) => only === undefined || name.includes(only))) {
  const ours: Figures[] = [];
  const bare: Figures[] = [];
  // Interleaved, so that what else the machine does falls on both.
  for (let i = 0; i < repeats; i++) {
    process.stderr.write(`${scenario.name} (${i + 1}/${repeats})\n`);
    ours.push(await measure(scenario, startRunwire));
    bare.push(await measure(scenario, startNull));
  }
  for (const figure of Object.keys(ours[0] ?? {})) {
    const mine = median(ours.map((figures) => figures[figure] ?? Number.NaN));
    const theirs = median(bare.map((figures) => figures[figure] ?? Number.NaN));
    rows.push([
      scenario.name,
      `${scenario.measures} (${figure})`,
      round(mine),
      round(theirs),
      round(mine / theirs),
    ]);
  }
}
process.stdout.write(`${table(rows)}\n`);

async function measure(scenario: Scenario, start: typeof startRunwire): Promise<Figures> {
  const server = await start();
  try {
    return await scenario.run(server);
  } finally {
    await server.stop();
  }
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
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
