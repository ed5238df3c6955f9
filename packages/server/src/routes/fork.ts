// Another run from any point of one: it begins with the same conversation, and the old run is not touched.

import { is, messagesOf, RunwireError, type StoredEvent } from "@runwire/protocol";
import { z } from "zod";
import { conversationTo } from "../conversations.js";
import { wrongBody } from "../http/check.js";
import { idempotencyHeader, idempotencyOf } from "../http/idempotency.js";
import { dialectParam } from "../http/query.js";
import { type Call, type Reply, type Route, route } from "../http/route.js";
import { created, forkedFrom, id, json } from "../http/shapes.js";
import type { NewRun } from "../ingest.js";
import type { Head } from "../log/head.js";
import { resumeFrom } from "../resume.js";
import type { Rooms } from "../rooms.js";
import { readableHead } from "../transports/open.js";
import { begin } from "./begin.js";

const newFork = z.strictObject({
  at: z.int().min(1).nullish().describe("a number of the dialect's cursor; the whole run by default"),
  checkpoint_id: id.nullish().describe("or the step that has this checkpoint"),
  prompt: z.string().min(1).nullish().describe("what is asked next"),
});
const forkQuery = z.strictObject({ dialect: dialectParam("koder") });

type ForkCall = Call<z.output<typeof forkQuery>, z.output<typeof newFork>>;

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
      answers: {
        201: {
          does: "the new run",
          content: json(
            created.extend({ forked_from: forkedFrom, workspace: z.enum(["restored", "fresh"]) }),
          ),
        },
      },
      handle: (call) => fork(rooms, call),
    }),
  ];
}

/** Events 1 and 2 of a run are one commit: what was asked is part of every point. */
const askedPos = 2;

async function fork(rooms: Rooms, call: ForkCall): Promise<Reply> {
  const { req, query, body, run: key } = call;
  const { checkpoint_id, prompt } = body;
  if (body.at != null && checkpoint_id != null) throw wrongBody("send `at` or `checkpoint_id`, not both");
  const head = await readableHead(rooms, key);
  const pos = await lastPos(rooms, head, call);
  const isLast = (e: StoredEvent): boolean =>
    checkpoint_id == null
      ? e.pos === pos
      : e.child_id === null && is(e, "step.boundary") && e.payload.checkpoint_id === checkpoint_id;
  const { conversation, last } = await conversationTo(rooms.store, key, pos, isLast);
  if (last === undefined)
    throw new RunwireError(
      "KAI-RUN-POINT-0001",
      `no step of ${key.run_id} has the checkpoint ${checkpoint_id}`,
    );
  const { agent, planning_gate, external, lease_ms, metadata } = head.run;
  const { model, tools, approvals } = conversation.asked;
  const run: NewRun = {
    messages: [...messagesOf(conversation), ...(prompt == null ? [] : [{ role: "user", content: prompt }])],
    session_id: null,
    agent,
    model: typeof model === "string" ? model : null,
    planning_gate,
    metadata,
    external,
    lease_ms,
    asked: { ...(tools === undefined ? {} : { tools }), ...(approvals === undefined ? {} : { approvals }) },
    forked_from: {
      run_id: key.run_id,
      pos: last.pos,
      seq: last.seq,
      ...(checkpoint_id == null ? {} : { checkpoint_id }),
    },
  };
  const idempotency = idempotencyOf(req, "fork", key.run_id, query.dialect.name, body);
  const { status, body: begun, headers } = await begin(rooms, key.tenant, run, idempotency);
  return { status, body: { ...begun, workspace: "fresh" }, headers };
}

async function lastPos(rooms: Rooms, head: Head, { body: { at }, query }: ForkCall): Promise<number> {
  const { dialect } = query;
  if (at == null) return head.views.default.pos;
  const { after, number } = await resumeFrom(rooms, head, dialect, "default", String(at));
  if (number !== at)
    throw new RunwireError("KAI-RUN-POINT-0001", `${head.run.run_id} has not got to ${at} (${dialect.name})`);
  return Math.max(after, askedPos);
}
