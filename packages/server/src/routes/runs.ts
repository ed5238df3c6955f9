// Runs: create, look up, list, page, fold, erase.

import { limits, type Message, RunwireError, runStates } from "@runwire/protocol";
import { z } from "zod";
import { wrongBody } from "../http/check.js";
import { idempotencyHeader, idempotencyOf, replayedHeader } from "../http/idempotency.js";
import { detailParam, dialectParam, limitParam, viewOf } from "../http/query.js";
import { type Call, type Reply, type Route, route } from "../http/route.js";
import {
  created,
  event,
  facts,
  id,
  json,
  members,
  runSummary as runShape,
  transcript,
} from "../http/shapes.js";
import { traceHeader, traceOf } from "../http/traceparent.js";
import type { NewRun } from "../ingest.js";
import { isEnded } from "../log/head.js";
import { end } from "../log/lifecycle.js";
import { resumeFrom } from "../resume.js";
import type { Rooms } from "../rooms.js";
import type { RunQuery } from "../store.js";
import { readableHead } from "../transports/open.js";
import { checkAsking } from "./asking.js";
import { begin } from "./begin.js";
import { turnsBefore } from "./sessions.js";
import { runSummary } from "./summary.js";

export const newRun = z.strictObject({
  prompt: z.string().nullish().describe("what is asked; or `messages`"),
  messages: z.array(facts).nullish().describe("the conversation so far, the last one asking"),
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
  tools: z.array(z.string()).nullish(),
  approvals: z.enum(["never", "destructive", "always"]).nullish(),
  metadata: facts.nullish(),
  producer: z.enum(["external"]).nullish().describe("someone else appends the events"),
  lease_ms: z.int().min(limits.leaseMsMin).max(limits.leaseMsMax).nullish(),
});

const newChild = z.strictObject({
  prompt: z.string().min(1),
  tools_allowed: z.array(z.string()).nullish(),
  child_id: id.nullish(),
});

const listQuery = z.strictObject({
  state: z.enum(runStates).optional(),
  session_id: z.string().optional(),
  agent: z.string().optional(),
  limit: limitParam(50, limits.pageRunsMax),
  cursor: id
    .startsWith("run_", { error: "takes the `next` of a page" })
    .optional()
    .describe("the `next` of the page before"),
});

const pageQuery = z.strictObject({
  after: z.string().optional().describe("stored events after this number"),
  limit: limitParam(100, limits.pageEventsMax),
  dialect: dialectParam("koder"),
  detail: detailParam,
});

const snapshotQuery = z.strictObject({
  at: z
    .string()
    .regex(/^[0-9]{1,15}$/, { error: "takes a number of the dialect's cursor" })
    .optional(),
  dialect: dialectParam("koder"),
  detail: detailParam,
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
      answers: { 200: { does: "the run", content: json(runShape) } },
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
    route({
      method: "GET",
      path: "/v1/agent/runs/:id/events",
      does: "a page of stored events",
      scope: "read",
      query: pageQuery,
      answers: {
        200: {
          does: "events, and the `after` of the next page",
          content: json(members({ events: z.array(event), next: z.number().nullable() })),
        },
      },
      handle: (call) => eventsPage(rooms, call),
    }),
    route({
      method: "GET",
      path: "/v1/agent/runs/:id/snapshot",
      does: "the transcript at a point",
      scope: "read",
      query: snapshotQuery,
      answers: {
        200: {
          does: "the fold of the events up to there",
          content: json(members({ pos: z.number(), seq: z.number(), transcript })),
        },
      },
      handle: (call) => snapshot(rooms, call),
    }),
    route({
      method: "GET",
      path: "/v1/agent/runs/:id/steps",
      does: "the step index",
      scope: "read",
      answers: { 200: { does: "steps", content: json(members({ steps: z.array(facts) })) } },
      handle: (call) => steps(rooms, call),
    }),
    route({
      method: "GET",
      path: "/v1/agent/runs/:id/children",
      does: "child runs",
      scope: "read",
      answers: { 200: { does: "children", content: json(members({ children: z.array(runShape) })) } },
      handle: (call) => children(rooms, call),
    }),
    route({
      method: "POST",
      path: "/v1/agent/runs/:id/children",
      does: "spawn a child run",
      scope: "write",
      body: newChild,
      headers: idempotencyHeader,
      answers: {
        201: {
          does: "the child",
          content: json(members({ run_id: id, parent_id: id, state: z.string(), stream_url: z.string() })),
        },
      },
      handle: (call) => spawnChild(rooms, call),
    }),
  ];
}

async function createRun(
  rooms: Rooms,
  { req, body, tenant }: Call<unknown, z.output<typeof newRun>>,
): Promise<Reply> {
  const run = await runFor(rooms, tenant, body);
  return begin(rooms, tenant, { ...run, ...traceOf(req) }, idempotencyOf(req, body));
}

/** What is asked for, with what was said before in its session. */
export async function runFor(rooms: Rooms, tenant: string, body: z.output<typeof newRun>): Promise<NewRun> {
  const { prompt, messages, tools, approvals, got_adaptive, fallback_models, budget_usd } = body;
  if (prompt != null && messages != null) throw wrongBody("send `prompt` or `messages`, not both");
  const external = body.producer != null;
  if (!external && rooms.agent !== undefined) checkAsking(body);
  const asking = messages ?? (prompt == null ? [] : [{ role: "user", content: prompt }]);
  const before =
    external || body.session_id == null ? undefined : await turnsBefore(rooms, tenant, body.session_id);
  const history = messages == null ? before?.history : undefined;
  return {
    messages: [...(history?.messages ?? []), ...asking],
    agent: body.agent ?? null,
    model: body.model ?? null,
    session_id: body.session_id ?? null,
    planning_gate:
      body.planning_gate ?? (external ? "off" : (rooms.agent?.planningGate(body.agent ?? null) ?? "off")),
    metadata: body.metadata ?? {},
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
    ...(before?.title == null ? {} : { title: before.title }),
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
  const tree = await rooms.store.tree(key);
  const children = tree.filter(({ parent_id }) => parent_id === key.run_id).map(({ run_id }) => run_id);
  return { status: 200, body: { ...runSummary(head), children } };
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

async function eventsPage(
  rooms: Rooms,
  { query, run: key }: Call<z.output<typeof pageQuery>>,
): Promise<Reply> {
  const { dialect, limit } = query;
  const view = viewOf(query);
  const head = await readableHead(rooms, key, view);
  let { after, state, number: heard } = await resumeFrom(rooms, head, dialect, view, query.after);
  const found: Message[] = [];
  while (found.length < limit) {
    const events = await rooms.store.read(key, view, after, 256 * 1024);
    if (events.length === 0) break;
    for (const e of events) {
      const [next, said] = dialect.step(state, e);
      state = next;
      after = e.pos;
      for (const message of said) if (Number(message.id) > heard) found.push(message);
      if (found.length >= limit) break;
    }
  }
  const messages = found.slice(0, limit);
  const isWhole = messages.length === found.length && after >= head.views[view].pos;
  // The events are JSON texts already; they are put together, not parsed and made again.
  const next = isWhole ? null : (messages.at(-1)?.id ?? null);
  const text = `{"events":[${messages.map(({ data }) => data).join(",")}],"next":${JSON.stringify(next === null ? null : Number(next))}}`;
  return { status: 200, text };
}

async function snapshot(
  rooms: Rooms,
  { query, run: key }: Call<z.output<typeof snapshotQuery>>,
): Promise<Reply> {
  const { dialect, at } = query;
  const view = viewOf(query);
  const head = await readableHead(rooms, key, view);
  let { pos } = head.views[view];
  if (at !== undefined) {
    const { after, number } = await resumeFrom(rooms, head, dialect, view, at);
    // A point that is not reached yet is the head.
    if (number > 0 || Number(at) === 0) pos = after;
  }
  const transcript = await rooms.transcripts.at(key, view, pos);
  return { status: 200, body: { pos: transcript.pos, seq: transcript.seq, transcript } };
}

async function steps(rooms: Rooms, { run: key }: Call): Promise<Reply> {
  const head = await readableHead(rooms, key);
  const transcript = await rooms.transcripts.at(key, "default", head.views.default.pos);
  return { status: 200, body: { steps: transcript.steps } };
}

async function children(rooms: Rooms, { run: key }: Call): Promise<Reply> {
  await readableHead(rooms, key);
  const tree = await rooms.store.tree(key);
  const below = tree.filter(({ parent_id }) => parent_id === key.run_id);
  const heads = await Promise.all(
    below.map(({ run_id }) => rooms.store.head({ tenant: key.tenant, run_id })),
  );
  return {
    status: 200,
    body: { children: heads.flatMap((head) => (head === undefined ? [] : [runSummary(head)])) },
  };
}

async function spawnChild(
  { ingest, store, agent }: Rooms,
  { req, body, run: key }: Call<unknown, z.output<typeof newChild>>,
): Promise<Reply> {
  const { prompt, child_id, tools_allowed } = body;
  const child = {
    prompt,
    ...(child_id == null ? {} : { child_id }),
    ...(tools_allowed == null ? {} : { tools_allowed }),
  };
  const spawned = await ingest.spawn(key, child, idempotencyOf(req, key.run_id, body));
  const child_key = { tenant: key.tenant, run_id: spawned.child_id };
  // Whoever writes the parent writes the child.
  if ((await store.head(child_key))?.run.external === false) agent?.take(child_key);
  const stream_url = `/v1/agent/runs/${spawned.child_id}/stream`;
  return {
    status: 201,
    body: { run_id: spawned.child_id, parent_id: key.run_id, state: "running", stream_url },
    headers: replayedHeader(spawned),
  };
}
