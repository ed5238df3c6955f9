// Runs: create, look up, list, page, fold, erase.

import { isId, isRunState, koder, limits, type Message, RunwireError } from "@runwire/protocol";
import { readObject } from "../http/body.js";
import {
  choiceMember,
  idMember,
  integerMember,
  objectMember,
  objectsMember,
  onlyMembers,
  requiredString,
  stringMember,
  stringsMember,
  wrong,
} from "../http/members.js";
import { badParam, dialectOf, limitOf, resumeFrom, viewOf } from "../http/query.js";
import type { Call, Reply, Route } from "../http/route.js";
import { isEnded } from "../log/head.js";
import { end } from "../log/lifecycle.js";
import type { Rooms } from "../rooms.js";
import type { RunQuery } from "../store.js";
import { readableHead } from "../transports/open.js";
import { runSummary } from "./summary.js";

export function runRoutes(rooms: Rooms): readonly Route[] {
  return [
    {
      method: "POST",
      path: "/v1/agent/runs",
      does: "create a run",
      handle: (call) => createRun(rooms, call),
    },
    {
      method: "GET",
      path: "/v1/agent/runs",
      does: "list runs, newest first",
      handle: (call) => listRuns(rooms, call),
    },
    {
      method: "GET",
      path: "/v1/agent/runs/:id",
      does: "a run's state and counts",
      handle: (call) => getRun(rooms, call),
    },
    {
      method: "DELETE",
      path: "/v1/agent/runs/:id",
      does: "erase a run tree for good",
      handle: (call) => eraseRun(rooms, call),
    },
    {
      method: "GET",
      path: "/v1/agent/runs/:id/events",
      does: "a page of stored events",
      handle: (call) => eventsPage(rooms, call),
    },
    {
      method: "GET",
      path: "/v1/agent/runs/:id/snapshot",
      does: "the transcript at a point",
      handle: (call) => snapshot(rooms, call),
    },
    {
      method: "GET",
      path: "/v1/agent/runs/:id/steps",
      does: "the step index",
      handle: (call) => steps(rooms, call),
    },
    {
      method: "GET",
      path: "/v1/agent/runs/:id/children",
      does: "child runs",
      handle: (call) => children(rooms, call),
    },
    {
      method: "POST",
      path: "/v1/agent/runs/:id/children",
      does: "spawn a child run",
      handle: (call) => spawnChild(rooms, call),
    },
  ];
}

async function createRun({ ingest }: Rooms, { req, tenant }: Call): Promise<Reply> {
  const body = await readObject(req);
  onlyMembers(body, [
    "prompt",
    "messages",
    "agent",
    "model",
    "session_id",
    "planning_gate",
    "tools",
    "approvals",
    "metadata",
    "producer",
    "lease_ms",
  ]);
  const prompt = stringMember(body, "prompt");
  const messages =
    objectsMember(body, "messages") ?? (prompt === undefined ? [] : [{ role: "user", content: prompt }]);
  if (prompt !== undefined && body.messages != null) throw wrong("send `prompt` or `messages`, not both");
  if (choiceMember(body, "producer", ["external"]) === undefined) {
    throw wrong(
      'this server has no built-in agent: send `"producer": "external"` and append the events yourself',
    );
  }
  const tools = stringsMember(body, "tools");
  const approvals = choiceMember(body, "approvals", ["never", "destructive", "always"]);
  const created = await ingest.create(tenant, {
    messages,
    agent: idMember(body, "agent") ?? null,
    model: stringMember(body, "model") ?? null,
    session_id: idMember(body, "session_id") ?? null,
    planning_gate: choiceMember(body, "planning_gate", ["off", "preview", "required"]) ?? "off",
    metadata: objectMember(body, "metadata") ?? {},
    lease_ms: integerMember(body, "lease_ms", limits.leaseMsMin, limits.leaseMsMax) ?? limits.leaseMsDefault,
    asked: { ...(tools === undefined ? {} : { tools }), ...(approvals === undefined ? {} : { approvals }) },
  });
  const stream_url = `/v1/agent/runs/${created.run_id}/stream`;
  return {
    status: 201,
    body: { ...created, stream_url },
    headers: { Location: `/v1/agent/runs/${created.run_id}` },
  };
}

async function listRuns({ store }: Rooms, { query, tenant }: Call): Promise<Reply> {
  const state = query.get("state");
  if (state !== null && !isRunState(state)) throw badParam("state", "a run state");
  const cursor = query.get("cursor");
  if (cursor !== null && !(isId(cursor) && cursor.startsWith("run_")))
    throw badParam("cursor", "the `next` of a page");
  const filters = ["session_id", "agent", "cursor"].flatMap((name) => {
    const value = query.get(name);
    return value === null ? [] : [[name, value]];
  });
  const asked: RunQuery = {
    limit: limitOf(query, 50, limits.pageRunsMax),
    ...(state === null ? {} : { state }),
    ...Object.fromEntries(filters),
  };
  const { heads, next } = await store.listRuns(tenant, asked);
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

async function eventsPage(rooms: Rooms, { query, run: key }: Call): Promise<Reply> {
  const dialect = dialectOf(query, koder.name);
  const view = viewOf(query);
  const limit = limitOf(query, 100, limits.pageEventsMax);
  const head = await readableHead(rooms, key, view);
  let { after } = await resumeFrom(rooms.store, head, dialect, view, query.get("after") ?? undefined);
  const messages: Message[] = [];
  let state = dialect.first;
  while (messages.length < limit) {
    const events = await rooms.store.read(key, view, after, 256 * 1024);
    if (events.length === 0) break;
    for (const e of events) {
      const [next, said] = dialect.step(state, e);
      state = next;
      after = e.pos;
      messages.push(...said);
      if (messages.length >= limit) break;
    }
  }
  // The events are JSON texts already; they are put together, not parsed and made again.
  const next = after < head.views[view].pos ? (messages.at(-1)?.id ?? null) : null;
  const text = `{"events":[${messages.map(({ data }) => data).join(",")}],"next":${JSON.stringify(next === null ? null : Number(next))}}`;
  return { status: 200, text };
}

async function snapshot(rooms: Rooms, { query, run: key }: Call): Promise<Reply> {
  const dialect = dialectOf(query, koder.name);
  const view = viewOf(query);
  const head = await readableHead(rooms, key, view);
  const at = query.get("at");
  let { pos } = head.views[view];
  if (at !== null) {
    if (!/^[0-9]{1,15}$/.test(at)) throw badParam("at", "a number of the dialect's cursor");
    if (Number(at) < head.views[view][dialect.cursor]) {
      pos = (await resumeFrom(rooms.store, head, dialect, view, at)).after;
    }
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

async function spawnChild({ ingest }: Rooms, { req, run: key }: Call): Promise<Reply> {
  const body = await readObject(req);
  onlyMembers(body, ["prompt", "tools_allowed", "child_id"]);
  const child_id = idMember(body, "child_id");
  const tools_allowed = stringsMember(body, "tools_allowed");
  const spawned = await ingest.spawn(key, {
    prompt: requiredString(body, "prompt"),
    ...(child_id === undefined ? {} : { child_id }),
    ...(tools_allowed === undefined ? {} : { tools_allowed }),
  });
  const stream_url = `/v1/agent/runs/${spawned.child_id}/stream`;
  return {
    status: 201,
    body: { run_id: spawned.child_id, parent_id: key.run_id, state: "running", stream_url },
  };
}
