// Each scenario measures one server and answers with figures; main.ts runs them side by side and prints ratios.
// Counts are verified: a figure for events that did not arrive would be worth nothing.

import type { Server } from "../process.js";

/** Figures by name; lower is better for times and memory, higher for rates (`…/s`). */
export type Figures = { readonly [name: string]: number };

export interface Scenario {
  readonly name: string;
  readonly measures: string;
  run(server: Server): Promise<Figures>;
}

export const toolStart = (i: number): string =>
  JSON.stringify({
    type: "tool.start",
    payload: { call_id: `call_${i}`, tool: "bench.tool", input: { note: "n".repeat(60) } },
  });

export const toolEnd = (i: number): string =>
  JSON.stringify({
    type: "tool.end",
    payload: { call_id: `call_${i}`, ok: true, output: { note: "n".repeat(60) } },
  });

export const batchOf = (events: number, event = toolEnd): string =>
  `[${Array.from({ length: events }, (_, i) => event(i)).join(",")}]`;

export const percentile = (samples: readonly number[], share: number): number =>
  samples.toSorted((a, b) => a - b)[Math.floor(samples.length * share)] ?? Number.NaN;
