// What is derived from a credential: tickets for streams that cannot send headers, sessions for the console. Both are
// kept in the store, as a hash of their secret, and end with the credential that made them.

import { randomBytes } from "node:crypto";
import { RunwireError } from "@runwire/protocol";
import { z } from "zod";
import type { Caller, Credentials } from "../auth/caller.js";
import {
  bearerOf,
  csrfHeader,
  hashOf,
  inSession,
  isOtherSite,
  sessionCookie,
  sessionOf,
  ticketFirstUseMs,
} from "../auth/gate.js";
import { type GrantRoom, grantRoom } from "../auth/grant-room.js";
import { wrongBody } from "../http/check.js";
import { isOwnPage, isTls } from "../http/front.js";
import { type Call, type Reply, type Route, route } from "../http/route.js";
import { id, json, members } from "../http/shapes.js";
import { readableHead } from "../reading.js";
import type { Rooms } from "../rooms.js";
import type { AuthMode } from "../settings.js";
import type { Grant } from "../store.js";

const ticketSecondsMax = 24 * 60 * 60;
const ticketSecondsDefault = 60 * 60;
const sessionMs = 12 * 60 * 60 * 1000;

const newTicket = z.strictObject({
  run_id: id.nullish(),
  runs: z.array(id).min(1).max(50).nullish().describe("for several runs on one connection"),
  run_list: z.literal(true).nullish(),
  inbox: z.literal(true).nullish(),
  session_id: id.nullish().describe("for the runs of a session, also for those that begin later"),
  ttl_s: z
    .int()
    .min(1)
    .max(ticketSecondsMax)
    .nullish()
    .describe(`seconds; ${ticketSecondsDefault} by default, never past the credential that asks`),
});
const newSession = z.strictObject({
  key: z.string().min(1).nullish().describe("or an Authorization header"),
});
const sessionShape = members({
  auth: z.string(),
  tenant: z.string(),
  scopes: z.array(z.string()),
  csrf: z.string().nullable().describe(`to be sent as \`${csrfHeader}\` with what changes something`),
  expires_at: z.string().nullable(),
});

export function accessRoutes(
  rooms: Rooms,
  auth: AuthMode,
  credentials: Credentials | null,
): readonly Route[] {
  const room = grantRoom(rooms.store.grants, rooms.clock);
  return [
    route({
      method: "POST",
      path: "/v1/stream-tickets",
      does: "a ticket for the address of a stream that cannot send headers",
      scope: "read",
      body: newTicket,
      answers: {
        201: {
          does: "the ticket, for `?ticket=`",
          content: json(
            members({ ticket: z.string(), first_use_before: z.string(), expires_at: z.string() }),
          ),
        },
      },
      handle: (call) => makeTicket(rooms, room, call),
    }),
    route({
      method: "POST",
      path: "/v1/session",
      does: "sign a browser in, with a key or a token",
      scope: "anyone",
      body: newSession,
      answers: {
        201: { does: "signed in; the cookie is for this origin's pages", content: json(sessionShape) },
      },
      handle: (call) => signIn(rooms, room, auth, credentials, call),
    }),
    route({
      method: "GET",
      path: "/v1/session",
      does: "who you are, and what you may do",
      scope: "any",
      answers: { 200: { does: "the caller", content: json(sessionShape) } },
      handle: async (call) => ({
        status: 200,
        body: shown(auth, call.caller, (await sessionGrant(rooms, call))?.csrf ?? null),
      }),
    }),
    route({
      method: "DELETE",
      path: "/v1/session",
      does: "sign out",
      scope: "any",
      answers: { 204: { does: "the session is over" } },
      handle: (call) => signOut(rooms, call),
    }),
  ];
}

async function makeTicket(
  rooms: Rooms,
  room: GrantRoom,
  { body, tenant, caller }: Call<unknown, z.output<typeof newTicket>>,
): Promise<Reply> {
  const runs = [...(body.runs ?? []), ...(body.run_id == null ? [] : [body.run_id])];
  const resource = [
    ...runs.map((run_id) => `run:${run_id}`),
    ...(body.run_list == null ? [] : ["runs"]),
    ...(body.inbox == null ? [] : ["inbox"]),
    ...(body.session_id == null ? [] : [`session:${body.session_id}`]),
  ];
  if (resource.length === 0)
    throw wrongBody("say what the ticket is for: `run_id`, `runs`, `run_list`, `inbox` or `session_id`");
  for (const run_id of runs) await readableHead(rooms, { tenant, run_id });
  await room(tenant);
  const secret = newSecret("tkt");
  const madeMs = rooms.clock.now();
  const endsMs = Math.min(madeMs + (body.ttl_s ?? ticketSecondsDefault) * 1000, caller.endsMs);
  await rooms.store.grants.put({
    ...derived(caller, "ticket", secret, madeMs, endsMs),
    scopes: ["read"],
    resource,
  });
  return {
    status: 201,
    body: {
      ticket: secret,
      first_use_before: isoTime(Math.min(madeMs + ticketFirstUseMs, endsMs)),
      expires_at: isoTime(endsMs),
    },
  };
}

async function signIn(
  rooms: Rooms,
  room: GrantRoom,
  auth: AuthMode,
  credentials: Credentials | null,
  { req, body }: Call<unknown, z.output<typeof newSession>>,
): Promise<Reply> {
  if (credentials === null) throw wrongBody("this server is open: there is nothing to sign in with");
  // Otherwise another site's page could sign its visitor in as someone else.
  if (isOtherSite(req) || (req.headers.origin !== undefined && !isOwnPage(req)))
    throw new RunwireError("KAI-AUTH-CSRF-0001", "sign in from the console's own page");
  const token = body.key ?? bearerOf(req);
  if (token === undefined) throw new RunwireError("KAI-AUTH-TOKEN-0001", "send `key`");
  const caller = await credentials.check(token);
  // Nobody was known when this came in, so it is counted now.
  rooms.quotas.enter(caller.tenant)();
  await room(caller.tenant);
  const secret = newSecret("ses");
  const madeMs = rooms.clock.now();
  const endsMs = Math.min(madeMs + sessionMs, caller.endsMs);
  const csrf = newSecret("csrf");
  await rooms.store.grants.put({ ...derived(caller, "session", secret, madeMs, endsMs), csrf });
  return {
    status: 201,
    body: shown(auth, { ...caller, endsMs }, csrf),
    headers: { "Set-Cookie": cookieOf(isSecure(req), secret, Math.round((endsMs - madeMs) / 1000)) },
  };
}

async function signOut(rooms: Rooms, call: Call): Promise<Reply> {
  const grant = await sessionGrant(rooms, call);
  if (grant !== undefined) {
    await rooms.store.grants.drop(grant.hash);
    rooms.connections.signedOut(grant.hash);
  }
  return { status: 204, headers: { "Set-Cookie": cookieOf(isSecure(call.req), "", 0) } };
}

async function sessionGrant({ store }: Rooms, { req, caller }: Call): Promise<Grant | undefined> {
  const secret = sessionOf(req);
  if (secret === undefined || req.headers.authorization !== undefined) return undefined;
  const grant = await store.grants.get(hashOf(secret));
  return grant?.kind === "session" && grant.credential === caller.credential ? grant : undefined;
}

function derived(
  { tenant, scopes, credential, session }: Caller,
  kind: Grant["kind"],
  secret: string,
  madeMs: number,
  endsMs: number,
): Grant {
  const hash = hashOf(secret);
  const held = [...scopes];
  return {
    hash,
    kind,
    tenant,
    scopes: held,
    credential: session === undefined ? credential : inSession(session),
    resource: null,
    madeMs,
    usedMs: null,
    endsMs,
    csrf: null,
  };
}

function shown(auth: AuthMode, { tenant, scopes, endsMs }: Caller, csrf: string | null): object {
  const expires_at = Number.isFinite(endsMs) ? isoTime(endsMs) : null;
  return { auth, tenant, scopes: [...scopes], csrf, expires_at };
}

/** Behind a proxy that ends TLS, the page's own address tells. */
function isSecure(req: Call["req"]): boolean {
  return isTls(req) || (req.headers.origin ?? "").startsWith("https://");
}

function cookieOf(secure: boolean, value: string, seconds: number): string {
  const name = secure ? `__Host-${sessionCookie}` : sessionCookie;
  return `${name}=${value}; Path=/; HttpOnly; SameSite=Strict; Max-Age=${seconds}${secure ? "; Secure" : ""}`;
}

function newSecret(prefix: string): string {
  return `${prefix}_${randomBytes(32).toString("base64url")}`;
}

function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}
