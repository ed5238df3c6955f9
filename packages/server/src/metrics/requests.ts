// What comes in over HTTP. Routes are named by their pattern, never by the path that was asked for.

import type { ErrorCode } from "@runwire/protocol";
import { Counter, type Registry } from "prom-client";
import { latencyBuckets } from "./commits.js";

export interface RequestFacts {
  /** The pattern of the route, undefined where none was found. */
  readonly route: string | undefined;
  readonly method: string;
  readonly status: number;
}

export interface RequestMetrics {
  /** An answer has been sent; `ms` is left out for streams, whose length says nothing of the server. */
  requestAnswered(request: RequestFacts, ms?: number): void;
  refused(code: ErrorCode): void;
  socketUpgraded(outcome: "accepted" | "refused"): void;
}

const methods = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);

/** Sums of one route and method. */
interface Tally {
  readonly labels: { readonly route: string; readonly method: string };
  /** By class of status, 1xx to 5xx. */
  readonly statuses: number[];
  /** By bucket; the last has what is over all bounds. */
  readonly buckets: number[];
  seconds: number;
}

export function requestMetrics(registry: Registry): RequestMetrics & { latencyText(): string } {
  const registers = [registry];
  const tallies = new Map<string, Map<string, Tally>>();
  new Counter({
    name: "runwire_http_requests_total",
    help: "Requests answered, by route pattern, method and class of status.",
    labelNames: ["route", "method", "status"],
    registers,
    collect() {
      this.reset();
      for (const { labels, statuses } of each(tallies))
        for (const [i, count] of statuses.entries())
          if (count > 0) this.inc({ ...labels, status: `${i}xx` }, count);
    },
  });
  const refusals = new Counter({
    name: "runwire_refusals_total",
    help: "Requests refused, by error code.",
    labelNames: ["code"],
    registers,
  });
  const upgrades = new Counter({
    name: "runwire_websocket_upgrades_total",
    help: "Requests for a WebSocket, by outcome.",
    labelNames: ["outcome"],
    registers,
  });
  for (const outcome of ["accepted", "refused"]) upgrades.inc({ outcome }, 0);

  function tallyOf(route: string, method: string): Tally {
    const ofRoute = tallies.get(route) ?? new Map<string, Tally>();
    tallies.set(route, ofRoute);
    const tally = {
      labels: { route, method },
      statuses: [0, 0, 0, 0, 0, 0],
      buckets: Array.from({ length: latencyBuckets.length + 1 }, () => 0),
      seconds: 0,
    };
    ofRoute.set(method, tally);
    return tally;
  }

  return {
    requestAnswered({ route = "none", method: asked, status }, ms) {
      const method = methods.has(asked) ? asked : "other";
      const tally = tallies.get(route)?.get(method) ?? tallyOf(route, method);
      const first = Math.floor(status / 100);
      tally.statuses[first] = (tally.statuses[first] ?? 0) + 1;
      if (ms === undefined) return;
      const seconds = ms / 1000;
      let bucket = 0;
      while (bucket < latencyBuckets.length && seconds > (latencyBuckets[bucket] as number)) bucket += 1;
      tally.buckets[bucket] = (tally.buckets[bucket] ?? 0) + 1;
      tally.seconds += seconds;
    },
    refused: (code) => refusals.inc({ code }),
    socketUpgraded: (outcome) => upgrades.inc({ outcome }),
    latencyText: () => latencyText(each(tallies)),
  };
}

function* each(tallies: ReadonlyMap<string, ReadonlyMap<string, Tally>>): Generator<Tally> {
  for (const ofRoute of tallies.values()) yield* ofRoute.values();
}

const latencyName = "runwire_http_request_duration_seconds";

/** Written here: prom-client would look the series up by its labels at each request, which costs a microsecond. */
function latencyText(tallies: Iterable<Tally>): string {
  const lines = [
    `# HELP ${latencyName} From a request to the end of its answer, without streams.`,
    `# TYPE ${latencyName} histogram`,
  ];
  for (const { labels, buckets, seconds } of tallies) {
    const all = buckets.reduce((sum, count) => sum + count, 0);
    if (all === 0) continue;
    const of = `route="${labels.route}",method="${labels.method}"`;
    let count = 0;
    for (const [i, more] of buckets.entries()) {
      count += more;
      lines.push(`${latencyName}_bucket{le="${latencyBuckets[i] ?? "+Inf"}",${of}} ${count}`);
    }
    lines.push(`${latencyName}_sum{${of}} ${seconds}`, `${latencyName}_count{${of}} ${all}`);
  }
  return `${lines.join("\n")}\n`;
}
