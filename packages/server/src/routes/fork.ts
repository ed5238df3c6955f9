// Another run from any point of one: it begins with the same conversation and, where the agent has kept it, the same
// workspace. A fork leaves the old run as it is; a rewind takes its place.
//
//   found before ─▶ point ─▶ workspace ─▶ one commit: the old run ends (rewind), the new one begins ─▶ answer
//
// The workspace is there before the run that uses it: a crash or a failure in between leaves a folder that no run has,
// and the old run as it was.

import { type Facts, RunwireError } from "@runwire/protocol";
import { z } from "zod";
import type { Restored } from "../agent.js";
import { wholeMessages } from "../conversations.js";
import { wrongBody } from "../http/check.js";
import { idempotencyHeader, idempotencyOf } from "../http/idempotency.js";
import { dialectParam } from "../http/query.js";
import { type Call, type Reply, type Route, route } from "../http/route.js";
import { created, forkedFrom, id, json, words } from "../http/shapes.js";
import type { Head } from "../log/head.js";
import type { NewRun } from "../log/roots.js";
import type { Idempotency } from "../log/run-record.js";
import { readableHead } from "../reading.js";
import type { Rooms } from "../rooms.js";
import { InDoubt, type RunKey } from "../store.js";
import { begin, begun } from "./begin.js";
import { inherited } from "./inherited.js";
import { type Point, pointAt, pointOf } from "./point.js";

const prompt = words.nullish().describe("what is asked next");
const newFork = z.strictObject({
  at: z.int().min(1).nullish().describe("a number of the dialect's cursor; the whole run by default"),
  checkpoint_id: id.nullish().describe("or the step that has this checkpoint"),
  prompt,
});
const forkQuery = z.strictObject({ dialect: dialectParam("koder") });
const newRewind = z.strictObject({
  checkpoint_id: id.describe("one of `/checkpoints` that is kept"),
  prompt,
});

type ForkCall = Call<z.output<typeof forkQuery>, z.output<typeof newFork>>;
type RewindCall = Call<unknown, z.output<typeof newRewind>>;

const newRunShape = created.extend({ forked_from: forkedFrom, workspace: z.enum(["restored", "fresh"]) });

export function forkRoutes(rooms: Rooms): readonly Route[] {
  return [
    route({
      method: "POST",
      path: "/v1/agent/runs/:id/fork",
      does: "begin another run with the conversation of this one",
      scope: "write",
      query: forkQuery,
      body: newFork,
      headers: idempotencyHeader,
      answers: { 201: { does: "the new run", content: json(newRunShape) } },
      handle: (call) => fork(rooms, call),
    }),
    route({
      method: "POST",
      path: "/v1/agent/runs/:id/rewind",
      does: "go back to a checkpoint: another run begins there, and this one ends; needs `write` too",
      scope: "control",
      body: newRewind,
      headers: idempotencyHeader,
      answers: { 201: { does: "the new run", content: json(newRunShape) } },
      handle: (call) => rewind(rooms, call),
    }),
  ];
}

async function fork(rooms: Rooms, call: ForkCall): Promise<Reply> {
  const { req, query, body, run: key } = call;
  const { checkpoint_id } = body;
  if (body.at != null && checkpoint_id != null) throw wrongBody("send `at` or `checkpoint_id`, not both");
  const idempotency = idempotencyOf(req, "fork", key.run_id, query.dialect.name, body);
  return once(rooms, key, idempotency, async (head) => {
    const point =
      checkpoint_id == null
        ? await pointAt(rooms, head, query.dialect, body.at)
        : await pointOf(rooms, head, checkpoint_id);
    const taken = await takenFrom(rooms, head, point);
    const restored =
      point.checkpoint_id === null ? undefined : await restore(rooms, head, point.checkpoint_id);
    return { run: another(head, point, taken, body, restored), restored };
  });
}

async function rewind(rooms: Rooms, { req, body, run: key, caller }: RewindCall): Promise<Reply> {
  // It does what two routes do, and takes what both of them take.
  if (!caller.scopes.has("write"))
    throw new RunwireError("KAI-AUTH-SCOPE-0001", "this needs `write` and `control`");
  const { checkpoint_id } = body;
  const idempotency = idempotencyOf(req, "rewind", key.run_id, body);
  return once(rooms, key, idempotency, async (head) => {
    const point = await pointOf(rooms, head, checkpoint_id);
    const taken = await takenFrom(rooms, head, point);
    const restored = await restore(rooms, head, checkpoint_id);
    if (restored === undefined) throw new RunwireError("KAI-RUN-POINT-0002", checkpoint_id);
    return { run: { ...another(head, point, taken, body, restored), rewinds: key.run_id }, restored };
  });
}

interface Prepared {
  readonly run: NewRun;
  readonly restored: Restored | undefined;
}

/** Answers as before where the key has been used: the old run, or what there is to restore, may be gone by now. */
async function once(
  rooms: Rooms,
  key: RunKey,
  idempotency: Idempotency | undefined,
  prepare: (head: Head) => Promise<Prepared>,
): Promise<Reply> {
  const { tenant } = key;
  const made = idempotency === undefined ? undefined : await rooms.ingest.created(tenant, idempotency);
  if (made !== undefined) return told(begun(made));
  const { run, restored } = await prepare(await readableHead(rooms, key));
  try {
    const answer = await begin(rooms, tenant, run, idempotency);
    // Another request under the same key may have been first.
    await restored?.settle(answer.body.run_id === restored.run_id ? "created" : "refused");
    return told(answer);
  } catch (error) {
    // A restart may find the run: its workspace stays held, and the next start knows.
    if (error instanceof InDoubt) throw error;
    const isRefused = error instanceof RunwireError && !error.code.startsWith("KAI-SERVER-");
    await restored?.settle(isRefused ? "refused" : "unknown");
    throw error;
  }
}

function told({ status, body, headers }: ReturnType<typeof begun>): Reply {
  const workspace = body.forked_from?.workspace_from === undefined ? "fresh" : "restored";
  return { status, body: { ...body, workspace }, headers };
}

/** Only the agent has workspaces; the checkpoints of other producers are their own. */
async function restore(
  { agent }: Rooms,
  { run }: Head,
  checkpoint_id: string,
): Promise<Restored | undefined> {
  return run.external ? undefined : agent?.checkpoints.restore(run, checkpoint_id);
}

/** What the new run takes over: what was said and done, and what the old one was given to work with. */
interface Taken {
  readonly messages: readonly Facts[];
  readonly given: Facts;
}

async function takenFrom(rooms: Rooms, head: Head, { conversation }: Point): Promise<Taken> {
  return {
    messages: await wholeMessages(rooms.blobs, head.run.tenant, conversation),
    given: await inherited(rooms, head, conversation.asked),
  };
}

function another(
  head: Head,
  { last, checkpoint_id }: Point,
  { messages, given: { model, ...given } }: Taken,
  asked: Pick<z.output<typeof newFork>, "checkpoint_id" | "prompt">,
  restored: Restored | undefined,
): NewRun {
  const { run_id, agent, planning_gate, external, lease_ms, metadata } = head.run;
  const next = asked.prompt == null ? [] : [{ role: "user", content: asked.prompt }];
  return {
    ...(restored === undefined ? {} : { run_id: restored.run_id }),
    messages: [...messages, ...next],
    session_id: null,
    agent,
    model: typeof model === "string" ? model : null,
    planning_gate,
    metadata,
    external,
    lease_ms,
    asked: given,
    forked_from: {
      run_id,
      pos: last.pos,
      seq: last.seq,
      ...(asked.checkpoint_id == null ? {} : { checkpoint_id: asked.checkpoint_id }),
      ...(restored === undefined || checkpoint_id === null ? {} : { workspace_from: checkpoint_id }),
    },
  };
}
