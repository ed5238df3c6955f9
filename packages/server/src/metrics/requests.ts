// What comes in over HTTP. Routes are named by their pattern, never by the path that was asked for.

import type { ErrorCode } from "@runwire/protocol";
import { Counter, Histogram, type Registry } from "prom-client";
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

export function requestMetrics(registry: Registry): RequestMetrics {
  const registers = [registry];
  const requests = new Counter({
    name: "runwire_http_requests_total",
    help: "Requests answered, by route pattern, method and class of status.",
    labelNames: ["route", "method", "status"],
    registers,
  });
  const latency = new Histogram({
    name: "runwire_http_request_duration_seconds",
    help: "From a request to the end of its answer, without streams.",
    labelNames: ["route", "method"],
    buckets: latencyBuckets,
    registers,
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

  return {
    requestAnswered({ route = "none", method: asked, status }, ms) {
      const method = methods.has(asked) ? asked : "other";
      requests.inc({ route, method, status: `${Math.floor(status / 100)}xx` });
      if (ms !== undefined) latency.observe({ route, method }, ms / 1000);
    },
    refused: (code) => refusals.inc({ code }),
    socketUpgraded: (outcome) => upgrades.inc({ outcome }),
  };
}
