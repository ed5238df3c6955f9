// Who is it? A bearer token in the header, a stream ticket in the address, or a console's cookie: each request has one
// caller, or is refused before anything is looked up. What a route asks of its caller stands in the route table.

import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { RunwireError } from "@runwire/protocol";
import type { Clock } from "../clock.js";
import { countOf, isOwnPage } from "../http/front.js";
import type { Question, Route } from "../http/route.js";
import type { Grant, Store } from "../store.js";
import { type Caller, type Credentials, isScope, type Scope, scopes, tokenCharsMax } from "./caller.js";

export interface Gate {
  /** Throws 401 or 403 where this caller may not ask this. */
  admit(route: Route, asked: Question): Promise<Caller>;
  /** Whether a caller that was let in would no longer be: streams are ended by it. */
  isOver(caller: Caller): boolean;
}

export interface GateParts {
  /** Null on an open server. */
  readonly credentials: Credentials | null;
  readonly store: Pick<Store, "grants" | "head">;
  readonly clock: Clock;
}

/** Whose everything is on a server that asks for no credentials. */
export const openTenant = "default";

/** Everyone, on such a server. */
const openCaller: Caller = {
  tenant: openTenant,
  scopes: new Set(scopes),
  credential: "open",
  endsMs: Number.POSITIVE_INFINITY,
};

export const sessionCookie = "runwire_session";
export const csrfHeader = "x-runwire-csrf";
/** A ticket must be used for the first time within this. */
export const ticketFirstUseMs = 60_000;

export function gate({ credentials, store, clock }: GateParts): Gate {
  const { grants } = store;
  const isOver = ({ credential, endsMs }: Pick<Caller, "credential" | "endsMs">): boolean =>
    endsMs <= clock.now() || (credentials?.isRevoked(credential) ?? credential !== openCaller.credential);

  /** Undefined where it is over, or what it was made with is. */
  async function granted(
    kind: Grant["kind"],
    secret: string,
  ): Promise<{ readonly grant: Grant; readonly caller: Caller } | undefined> {
    const grant = await grants.get(hashOf(secret));
    if (grant?.kind !== kind) return undefined;
    const session = kind === "session" ? grant.hash : sessionIn(grant.credential);
    const maker = session === undefined ? grant : await grants.get(session);
    if (maker === undefined) return undefined;
    const caller = callerOf(grant, maker.credential, session);
    return isOver(caller) ? undefined : { grant, caller };
  }

  async function byTicket(route: Route, asked: Question, secret: string): Promise<Caller> {
    const found = await granted("ticket", secret);
    const refused = (): RunwireError => new RunwireError("KAI-AUTH-TICKET-0001");
    if (found === undefined) throw refused();
    const { grant } = found;
    const caller = { ...found.caller, only: new Set(grant.resource as readonly string[]) };
    for (const resource of route.ticket?.(asked) ?? [])
      if (!(await mayOpen(store, caller, resource))) throw refused();
    const nowMs = clock.now();
    if (grant.usedMs === null) {
      if (nowMs > grant.madeMs + ticketFirstUseMs) throw refused();
      await grants.use(grant.hash, nowMs);
    }
    return caller;
  }

  async function byCookie(req: IncomingMessage, secret: string): Promise<Caller> {
    const found = await granted("session", secret);
    if (found === undefined) throw new RunwireError("KAI-AUTH-TOKEN-0003", "sign in again");
    checkPage(req, found.grant.csrf ?? "");
    return found.caller;
  }

  async function callerFor(route: Route, asked: Question): Promise<Caller> {
    const { req } = asked;
    const ticket = route.ticket === null ? undefined : (asked.query as { ticket?: string }).ticket;
    if (ticket !== undefined) return byTicket(route, asked, ticket);
    if (credentials === null) return openCaller;
    const token = bearerOf(req);
    if (token !== undefined) return credentials.check(token);
    const session = sessionOf(req);
    if (session !== undefined) return byCookie(req, session);
    throw new RunwireError("KAI-AUTH-TOKEN-0001", "send `Authorization: Bearer …`");
  }

  return {
    isOver,
    async admit(route, asked) {
      if (route.scope === "anyone") return openCaller;
      const caller = await callerFor(route, asked);
      if (route.scope !== "any" && !caller.scopes.has(route.scope))
        throw new RunwireError("KAI-AUTH-SCOPE-0001", `this needs \`${route.scope}\``);
      return caller;
    },
  };
}

export function hashOf(secret: string): string {
  return createHash("sha256").update(secret).digest("hex");
}

/** Whether this is among what a ticket was made for. A session's runs are, also those that began after it was made. */
export async function mayOpen(
  { head }: Pick<Store, "head">,
  { tenant, only }: Pick<Caller, "tenant" | "only">,
  resource: string,
): Promise<boolean> {
  if (only === undefined || only.has(resource)) return true;
  const hasSession = [...only].some((bound) => bound.startsWith("session:"));
  if (!hasSession || !resource.startsWith(runPrefix)) return false;
  const session_id = (await head({ tenant, run_id: resource.slice(runPrefix.length) }))?.run.session_id;
  return session_id != null && only.has(`session:${session_id}`);
}

const runPrefix = "run:";

/** What a ticket says it was made with, where that is a console's session: it ends when that is signed out. */
export function inSession(session: string): string {
  return `${consolePrefix}${session}`;
}

function sessionIn(credential: string): string | undefined {
  return credential.startsWith(consolePrefix) ? credential.slice(consolePrefix.length) : undefined;
}

const consolePrefix = "console:";

function callerOf(
  { tenant, scopes: held, endsMs }: Grant,
  credential: string,
  session: string | undefined,
): Caller {
  const caller = { tenant, scopes: new Set<Scope>(held.filter(isScope)), credential, endsMs };
  return session === undefined ? caller : { ...caller, session };
}

export function bearerOf(req: IncomingMessage): string | undefined {
  const { authorization } = req.headers;
  if (authorization === undefined) return undefined;
  const [, token] = /^bearer +([^\s,]+)$/i.exec(authorization) ?? [];
  if (token === undefined || token.length > tokenCharsMax || countOf(req.rawHeaders, "authorization") > 1)
    throw new RunwireError("KAI-AUTH-TOKEN-0002", "the header must read `Authorization: Bearer …`, once");
  return token;
}

/** The cookie that only this host can have set is preferred: a sibling of the host may have planted the other one. */
export function sessionOf({ headers: { cookie = "" } }: IncomingMessage): string | undefined {
  const found = new Map<string, string>();
  for (const pair of cookie.split(";")) {
    const [name = "", value = ""] = pair.trim().split("=", 2);
    if (value !== "" && !found.has(name)) found.set(name, value);
  }
  return found.get(`__Host-${sessionCookie}`) ?? found.get(sessionCookie);
}

/**
 * A browser sends a cookie by itself, so with one it must be our own page that asks: by what the browser says of the
 * page, and, for what changes something, by a word that only our page can know.
 */
function checkPage(req: IncomingMessage, csrf: string): void {
  if (isOtherSite(req) || !originIsOwn(req))
    throw new RunwireError("KAI-AUTH-CSRF-0001", "a session is for the console's own pages");
  if (isSafe(req)) return;
  const word = req.headers[csrfHeader];
  if (typeof word !== "string" || !sameText(word, csrf))
    throw new RunwireError("KAI-AUTH-CSRF-0001", `send \`${csrfHeader}\` as \`GET /v1/session\` tells it`);
}

/** By the browser's own word, where it gives one. */
export function isOtherSite({ headers }: IncomingMessage): boolean {
  const site = headers["sec-fetch-site"];
  return site !== undefined && site !== "same-origin" && site !== "none";
}

function originIsOwn(req: IncomingMessage): boolean {
  // What upgrades or changes something always tells its origin in a browser.
  if (req.headers.origin === undefined) return isSafe(req) && req.headers.upgrade === undefined;
  return isOwnPage(req);
}

function isSafe({ method }: IncomingMessage): boolean {
  return method === "GET" || method === "HEAD";
}

function sameText(a: string, b: string): boolean {
  const [one, other] = [a, b].map((text) => createHash("sha256").update(text).digest()) as [Buffer, Buffer];
  return timingSafeEqual(one, other);
}

const secretNames =
  /^(access_?token|id_?token|token|auth|authorization|bearer|jwt|api_?key|key|secret|password)$/i;
const secretValues = /^(rw_[a-z2-7]{12}_|eyJ[A-Za-z0-9_-]+\.)/;

/** Addresses are logged, kept in histories and sent on as referrers: nothing that lasts may stand in one. */
export function refuseSecrets(query: URLSearchParams): void {
  for (const [name, value] of query) {
    if (secretNames.test(name) || secretValues.test(value))
      throw new RunwireError("KAI-AUTH-URL-0001", `\`${name.slice(0, 60)}\` does not belong in an address`);
  }
}
