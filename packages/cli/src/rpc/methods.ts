// The methods: each a row with what it takes, and the gateway's request that it is.

import type { Endpoint } from "@runwire/client";
import { gateway, type NewRun, type PlanAnswer, type ProducerClaim, type RunQuery } from "@runwire/client";
import type { Facts } from "@runwire/protocol";
import { type Response, respond } from "./actions.js";
import { wrongParams } from "./message.js";
import type { Kind, Takes } from "./params.js";
import type { Subscriptions } from "./subscriptions.js";

export interface Method {
  readonly takes: Takes;
  call(params: Facts): Promise<unknown>;
}

const run = { run_id: "text" } as const;

export function methodsOf(endpoint: Endpoint, subscriptions: Subscriptions): ReadonlyMap<string, Method> {
  const server = gateway(endpoint);
  const order = (takes: Takes, call: (run_id: string, params: Facts) => Promise<unknown>): Method => ({
    takes: { ...run, ...takes },
    call: ({ run_id, ...params }) => call(run_id as string, params),
  });
  const methods: { readonly [name: string]: Method } = {
    ping: { takes: {}, call: async () => ({}) },
    "runs.create": {
      takes: newRun,
      call: ({ idempotency_key, ...asked }) =>
        server.createRun(asked as NewRun, idempotency_key as string | undefined),
    },
    "runs.list": {
      takes: { state: "text?", session_id: "text?", agent: "text?", limit: "number?", cursor: "text?" },
      call: (query) => server.listRuns(query as RunQuery),
    },
    "runs.get": order({}, server.getRun),
    "runs.subscribe": order(
      { after: "cursor?", snapshot: "flag?", detail: "text?", dialect: "text?" },
      subscriptions.add,
    ),
    "runs.unsubscribe": {
      takes: { subscription: "text" },
      call: async ({ subscription }) => {
        if (!subscriptions.remove(subscription as string))
          throw wrongParams("there is no such `subscription`");
        return { subscription };
      },
    },
    "runs.append": order(
      { events: "list", dialect: "text?", producer: "object?" },
      (run_id, { events, dialect = "runwire", producer }) =>
        server.appendIn(
          dialect as string,
          run_id,
          events as readonly unknown[],
          claimOf(producer as Facts | undefined),
        ),
    ),
    "runs.heartbeat": order({}, server.heartbeat),
    "runs.pause": order({}, server.pause),
    "runs.resume": order({}, server.resume),
    "runs.steer": order({ text: "text" }, (run_id, { text }) => server.steer(run_id, text as string)),
    "runs.redirect": order({ instruction: "text" }, (run_id, { instruction }) =>
      server.redirect(run_id, instruction as string),
    ),
    "runs.abort": order({ reason: "text?" }, (run_id, { reason }) =>
      server.abort(run_id, reason as string | undefined),
    ),
    "runs.approve_plan": order(
      { plan_id: "text?", approved: "flag?", steps: "list?", reason: "text?" },
      (run_id, answer) => server.approvePlan(run_id, answer as PlanAnswer),
    ),
    "actions.respond": order(
      { action_id: "text", decision: "text?", answer: "any?", reason: "text?", input: "any?" },
      (run_id, { action_id, ...answer }) => respond(server, run_id, action_id as string, answer as Response),
    ),
  };
  return new Map(Object.entries(methods));
}

const newRun = {
  prompt: "text?",
  messages: "list?",
  agent: "text?",
  got_adaptive: "flag?",
  model: "text?",
  fallback_models: "list?",
  budget_usd: "number?",
  session_id: "text?",
  planning_gate: "text?",
  tools: "list?",
  approvals: "text?",
  metadata: "object?",
  producer: "text?",
  lease_ms: "number?",
  idempotency_key: "text?",
} satisfies { readonly [name in keyof NewRun | "idempotency_key"]-?: Kind };

function claimOf(producer: Facts | undefined): ProducerClaim | undefined {
  if (producer === undefined) return undefined;
  const { id, epoch = 0, seq } = producer;
  if (typeof id !== "string" || typeof epoch !== "number" || typeof seq !== "number")
    throw wrongParams("`producer` must be {id, epoch, seq}");
  return { id, epoch, seq };
}
