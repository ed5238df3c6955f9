// Sessions: each is a row of turns, and a turn is a root run.

import { limits, RunwireError } from "@runwire/protocol";
import { z } from "zod";
import { limitParam, nextParam } from "../http/query.js";
import { type Route, route } from "../http/route.js";
import { json, members, runSummary as runShape } from "../http/shapes.js";
import type { Rooms } from "../rooms.js";
import type { Session } from "../store.js";
import { runSummary } from "./summary.js";

const shared = {
  session_id: z.string(),
  title: z.string().nullable(),
  state: z.string(),
  turns_total: z.number(),
};
const sessionQuery = z.strictObject({ limit: limitParam(limits.pageRunsMax, limits.pageRunsMax) });
const listQuery = z.strictObject({
  limit: limitParam(50, limits.pageRunsMax),
  cursor: nextParam,
});

export function sessionRoutes({ store }: Rooms): readonly Route[] {
  return [
    route({
      method: "GET",
      path: "/v1/agent/sessions",
      does: "list sessions, that of the newest turn first",
      scope: "read",
      query: listQuery,
      answers: {
        200: {
          does: "a page of sessions, each with its last turn",
          content: json(
            members({
              sessions: z.array(members({ ...shared, last_turn: runShape })),
              next: z.string().nullable(),
            }),
          ),
        },
      },
      async handle({ query: { limit, cursor }, tenant }) {
        const page = await store.listSessions(tenant, { limit, ...(cursor === undefined ? {} : { cursor }) });
        const sessions = page.sessions.map((session) => {
          const { turns, ...rest } = shown(session);
          return { ...rest, last_turn: turns.at(-1) };
        });
        return { status: 200, body: { sessions, next: page.next } };
      },
    }),
    route({
      method: "GET",
      path: "/v1/agent/sessions/:session",
      does: "a session with its turns",
      scope: "read",
      query: sessionQuery,
      answers: {
        200: {
          does: "the session, and the last of its turns, oldest first",
          content: json(members({ ...shared, turns: z.array(runShape) })),
        },
      },
      async handle({ query, tenant, param }) {
        const session_id = param("session");
        const session = await store.session(tenant, session_id, query.limit);
        if (session === undefined) throw new RunwireError("KAI-RUN-SESSION-0001", session_id);
        return { status: 200, body: shown(session) };
      },
    }),
  ];
}

/** The last turn's state is the session's. */
function shown({ session_id, title, turns, turns_total }: Session) {
  return { session_id, title, state: turns.at(-1)?.state, turns_total, turns: turns.map(runSummary) };
}
