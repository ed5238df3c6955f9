// What operators see. Rooms call these hooks, one per fact, and know nothing of how facts are kept or told; here
// nothing is known of rooms but the levels they tell. Labels are small closed sets: no run, tenant or path is ever one.

import { Counter, collectDefaultMetrics, Gauge, Registry } from "prom-client";
import { type CommitMetrics, commitMetrics } from "./metrics/commits.js";
import { type Levels, levelMetrics } from "./metrics/levels.js";
import { type RequestMetrics, requestMetrics } from "./metrics/requests.js";
import { type StreamMetrics, streamMetrics } from "./metrics/streams.js";

export interface Metrics extends StreamMetrics, CommitMetrics, RequestMetrics {
  /** Log lines that nobody took in time. */
  logLinesDropped(lines: number): void;
  /** Everything, in Prometheus' text format. */
  text(now: Levels): Promise<string>;
  readonly contentType: string;
  close(): void;
}

/** Each gateway has its own, so that several in one process do not add up. */
export function metrics(version: string): Metrics {
  processRegistry();
  const registry = new Registry();
  const registers = [registry];
  const setLevels = levelMetrics(registry);
  const lines = new Counter({
    name: "runwire_log_lines_dropped_total",
    help: "Log lines that were dropped because stderr was not read or was closed.",
    registers,
  });
  new Gauge({
    name: "runwire_build_info",
    help: "The version that runs; always 1.",
    labelNames: ["version"],
    registers,
  }).set({ version }, 1);
  const { latencyText, ...requests } = requestMetrics(registry);
  return {
    ...streamMetrics(registry),
    ...commitMetrics(registry),
    ...requests,
    logLinesDropped: (count) => lines.inc(count),
    async text(now) {
      setLevels(now);
      return (await registry.metrics()) + latencyText() + (await processRegistry().metrics());
    },
    contentType: registry.contentType,
    close: () => registry.clear(),
  };
}

let ofProcess: Registry | undefined;

/** Heap, event loop, garbage and files are the process's, however many gateways it runs; watching never stops. */
function processRegistry(): Registry {
  if (ofProcess === undefined) {
    ofProcess = new Registry();
    collectDefaultMetrics({ register: ofProcess });
  }
  return ofProcess;
}
