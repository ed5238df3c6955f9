// Runs: create, look up, list, erase.

import { limits, RunwireError, runStates } from "@runwire/protocol";
import { z } from "zod";
import { historyOf } from "../conversations.js";
import { wrongBody } from "../http/check.js";
import { idempotencyHeader, idempotencyOf } from "../http/idempotency.js";
import { limitParam, nextParam } from "../http/query.js";
import { type Call, type Reply, type Route, route } from "../http/route.js";
import { created, facts, id, json, listOf, members, runSummary as runShape } from "../http/shapes.js";
import { traceHeader, traceOf } from "../http/traceparent.js";
import { isEnded } from "../log/head.js";
import { end } from "../log/lifecycle.js";
import type { NewRun } from "../log/roots.js";
import type { Idempotency } from "../log/run-record.js";
import { isLogGone, readableHead } from "../reading.js";
import type { Rooms } from "../rooms.js";
import { InDoubt, type RunQuery } from "../store.js";
import { checkAsking } from "./asking.js";
import { begin, begun } from "./begin.js";
import { runSummary } from "./summary.js";

export const newRun = z.strictObject({
  prompt: z.string().nullish().describe("what is asked; or `messages`"),
  messages: listOf(facts).nullish().describe("the conversation so far, the last one asking"),
  agent: id.nullish().describe("how the built-in agent goes about it: `react`, `tot` or `got`"),
  got_adaptive: z.boolean().nullish().describe("whether a graph of thoughts may grow as its parts end"),
  model: z.string().nullish(),
  fallback_models: z
    .array(z.string().trim().min(1))
    .max(8)
    .nullish()
    .describe("models that go on, in this order, where `model` is given up on; the server's own by default"),
  budget_usd: z
    .number()
    .positive()
    .max(1_000_000)
    .nullish()
    .describe("what this run and all below it may cost; no other model is asked once it is used up"),
  session_id: id.nullish().describe("the session this run is a turn of; a new one by default"),
  planning_gate: z.enum(["off", "preview", "required"]).nullish(),
  tools: listOf(z.string()).nullish(),
  approvals: z.enum(["never", "destructive", "always"]).nullish(),
  metadata: facts.nullish(),
  producer: z.enum(["external"]).nullish().describe("someone else appends the events"),
  lease_ms: z.int().min(limits.leaseMsMin).max(limits.leaseMsMax).nullish(),
});

const listQuery = z.strictObject({
  state: z.enum(runStates).optional(),
  session_id: z.string().optional(),
  agent: z.string().optional(),
  limit: limitParam(50, limits.pageRunsMax),
  cursor: nextParam,
});

const runWithChildren = runShape.extend({
  children: z.array(id).describe(`their ids, the first ${limits.childrenShownMax}`),
  children_next: id.nullable().describe("where there are more: the `cursor` for its children"),
});

export function runRoutes(rooms: Rooms): readonly Route[] {
  return [
    route({
      method: "POST",
      path: "/v1/agent/runs",
      does: "create a run",
      scope: "write",
      body: newRun,
      headers: { ...idempotencyHeader, ...traceHeader },
      answers: { 201: { does: "the run", content: json(created) } },
      handle: (call) => createRun(rooms, call),
    }),
    route({
      method: "GET",
      path: "/v1/agent/runs",
      does: "list runs, newest first",
      scope: "read",
      query: listQuery,
      answers: {
        200: {
          does: "a page of runs",
          content: json(members({ runs: z.array(runShape), next: z.string().nullable() })),
        },
      },
      handle: (call) => listRuns(rooms, call),
    }),
    route({
      method: "GET",
      path: "/v1/agent/runs/:id",
      does: "a run's state and counts",
      scope: "read",
      answers: { 200: { does: "the run", content: json(runWithChildren) } },
      handle: (call) => getRun(rooms, call),
    }),
    route({
      method: "DELETE",
      path: "/v1/agent/runs/:id",
      does: "erase a run tree for good",
      scope: "admin",
      answers: { 204: { does: "it is gone" } },
      handle: (call) => eraseRun(rooms, call),
    }),
  ];
}

async function createRun(
  rooms: Rooms,
  { req, body, tenant }: Call<unknown, z.output<typeof newRun>>,
): Promise<Reply> {
  return beginAsked(rooms, tenant, body, idempotencyOf(req, body), traceOf(req));
}

/** Begins what is asked for; anew where the turn that it was to go on from is erased meanwhile. */
export async function beginAsked(
  rooms: Rooms,
  tenant: string,
  body: z.output<typeof newRun>,
  idempotency: Idempotency | undefined,
  traced: Pick<NewRun, "scope"> = {},
): ReturnType<typeof begin> {
  for (;;) {
    let run: NewRun | undefined;
    try {
      run = await runFor(rooms, tenant, body);
      return await begin(rooms, tenant, { ...run, ...traced }, idempotency);
    } catch (error) {
      // Each time its session has a turn less.
      if (run?.turnBefore !== undefined && isLogGone(error)) continue;
      // What can no longer begin may have begun before: with other models and tools, or with more of its session.
      const isKnown = idempotency !== undefined && !(error instanceof InDoubt);
      const made = isKnown ? await rooms.ingest.created(tenant, idempotency) : undefined;
      if (made === undefined) throw error;
      return begun(made);
    }
  }
}

/** What is asked for, with what was said before in its session. */
async function runFor(rooms: Rooms, tenant: string, body: z.output<typeof newRun>): Promise<NewRun> {
  const { prompt, messages, tools, approvals, got_adaptive, fallback_models, budget_usd } = body;
  if (prompt != null && messages != null) throw wrongBody("send `prompt` or `messages`, not both");
  const metadata = body.metadata ?? {};
  if (Buffer.byteLength(JSON.stringify(metadata)) > limits.metadataBytesMax) {
    const detail = `\`metadata\` may have ${limits.metadataBytesMax} bytes`;
    throw new RunwireError("KAI-REQUEST-SIZE-0001", detail);
  }
  const external = body.producer != null;
  if (!external && rooms.agent !== undefined) checkAsking(body);
  const asking = messages ?? (prompt == null ? [] : [{ role: "user", content: prompt }]);
  const { session_id = null } = body;
  const session =
    external || session_id === null ? undefined : await rooms.store.session(tenant, session_id, 1);
  // Who sends messages sends the conversation.
  const isNext = session !== undefined && session_id !== null && messages == null;
  const history = isNext ? await historyOf(rooms, tenant, session_id) : undefined;
  return {
    messages: [...(history?.messages ?? []), ...asking],
    agent: body.agent ?? null,
    model: body.model ?? null,
    session_id,
    planning_gate:
      body.planning_gate ?? (external ? "off" : (rooms.agent?.planningGate(body.agent ?? null) ?? "off")),
    metadata,
    external,
    lease_ms: body.lease_ms ?? limits.leaseMsDefault,
    asked: {
      ...(tools == null ? {} : { tools }),
      ...(approvals == null ? {} : { approvals }),
      ...(fallback_models == null ? {} : { fallback_models }),
      ...(budget_usd == null ? {} : { budget_usd }),
      ...(got_adaptive == null ? {} : { got_adaptive }),
      ...(history === undefined ? {} : { history: history.told }),
    },
    ...(history === undefined ? {} : { turnBefore: history.run_id }),
    ...(session?.titledBy == null ? {} : { titledBy: session.titledBy }),
  };
}

async function listRuns(
  { store }: Rooms,
  { query, tenant }: Call<z.output<typeof listQuery>>,
): Promise<Reply> {
  const { heads, next } = await store.listRuns(tenant, query as RunQuery);
  return { status: 200, body: { runs: heads.map(runSummary), next } };
}

async function getRun(rooms: Rooms, { run: key }: Call): Promise<Reply> {
  const head = await readableHead(rooms, key);
  const { children, next } = await rooms.store.children(key, { limit: limits.childrenShownMax });
  return { status: 200, body: { ...runSummary(head), children, children_next: next } };
}

async function eraseRun(rooms: Rooms, { run: key }: Call): Promise<Reply> {
  const { run } = await readableHead(rooms, key);
  if (run.parent_id !== null) throw new RunwireError("KAI-RUN-CHILD-0002", `erase ${run.root_id}`);
  await rooms.ingest.change(key, (commit) => {
    const head = commit.head(key.run_id);
    if (head !== undefined && !isEnded(head)) end(commit, key.run_id, "aborted", "erased");
  });
  await rooms.store.eraseTree(key);
  return { status: 204 };
}
