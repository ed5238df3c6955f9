// The HTTP front: finds the route, asks the gate who is asking, reads what the route wants to know, hands over the
// call, answers. Trouble before a stream has begun is a status and an error body; after that it is the stream's own.

import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { isId, isRunId, limits, RunwireError } from "@runwire/protocol";
import type { Caller } from "../auth/caller.js";
import { type Gate, refuseSecrets } from "../auth/gate.js";
import type { Quotas } from "../quotas.js";
import { type Report, toldOf } from "../report.js";
import type { Settings } from "../settings.js";
import type { RunKey } from "../store.js";
import { type Account, type Accounts, requestIdHeader } from "./account.js";
import { type BodyLimits, readObject } from "./body.js";
import { checkBody, checkQuery } from "./check.js";
import { breakOff, isClosed, streamOf, whenClosed } from "./closing.js";
import { front } from "./front.js";
import { giveText } from "./giving.js";
import { listener } from "./listener.js";
import {
  hangUp,
  headerBytes,
  headersOf,
  headersTooLarge,
  isAnswering,
  refuse,
  unreadable,
} from "./refusal.js";
import { type Call, type Found, type Question, type Reply, type Route, router } from "./route.js";
import type { Tls } from "./tls.js";
import { afterOthers, hasTurn, mayWait, ownTurn } from "./turn.js";
import { isToldByClose, turnAway } from "./turning-away.js";

export interface HttpOptions {
  readonly routes: readonly Route[];
  readonly settings: Settings;
  readonly tls: Tls | null;
  readonly gate: Gate;
  readonly quotas: Quotas;
  readonly isLeaving: () => boolean;
  readonly report: Report;
  readonly accounts: Accounts;
}

export function httpServer(options: HttpOptions): Server {
  const { routes, settings, tls, gate, quotas, isLeaving, report, accounts } = options;
  const { find, methods } = router(routes);
  const socketPaths = new Set(routes.filter(({ upgrade }) => upgrade !== null).map(({ path }) => path));
  const understood = routes.flatMap(({ headers }) => Object.keys(headers));
  const { check: checkFront, headers: guardsOf, preflight } = front(settings, understood);
  // A query that is not there says the same every time.
  const noQueries = new Map(routes.map((route) => [route, checkQuery(route.query, noQuery)]));
  const strangers = {
    ...settings,
    bodyBytesMax: Math.min(settings.bodyBytesMax, limits.strangerBytesMax),
  };
  const boundsOf = ({ scope }: Route): BodyLimits => (scope === "anyone" ? strangers : settings);
  const server = listener(tls, settings.headerBytesMax);

  server.on("request", (req: IncomingMessage, res: ServerResponse) => {
    if (!mayWait(req, res)) return;
    let isOver = false;
    let release = (): void => {};
    const account = accounts.request(req, res, () => {
      isOver = true;
      release();
    });
    const onEntered = (entered: () => void): void => {
      // The client may have gone while it was asked who it is.
      if (isOver) entered();
      else release = entered;
    };
    handle(req, res, account, onEntered).catch((error: unknown) => fail(req, res, account, error));
  });

  async function handle(
    req: IncomingMessage,
    res: ServerResponse,
    account: Account,
    onEntered: (release: () => void) => void,
  ): Promise<void> {
    if (!hasTurn(res)) await ownTurn(res);
    if (req.httpVersionMajor === 2 && headerBytes(req) > settings.headerBytesMax)
      throw headersTooLarge(settings);
    checkFront(req);
    const { path, query } = split(req);
    if (req.method === "OPTIONS") {
      send(req, res, account, { status: 204, headers: preflight(methods(path)) });
      return;
    }
    const { route, question, caller } = await admit(
      req,
      path,
      query,
      req.method ?? "GET",
      account,
      onEntered,
    );
    if (isLeaving() && route.method !== "GET") throw new RunwireError("KAI-STREAM-LEAVING-0001");
    const { requestId } = account;
    const { tenant } = caller;
    const call: Call = {
      req,
      res,
      query: question.query,
      param: question.param,
      requestId,
      caller,
      tenant,
      run: runOf(route, question, tenant),
      body: route.body === null ? null : checkBody(route.body, await readObject(req, boundsOf(route))),
      begin(status, headers) {
        account.isStream = !("Content-Length" in headers);
        begin(req, res, account, status, listOf(headers));
      },
    };
    const reply = await route.handle(call);
    if (reply !== undefined) send(req, res, account, reply);
  }

  /** Who asks for what; throws where they may not. What `onEntered` is given is to be called at the end. */
  async function admit(
    req: IncomingMessage,
    path: string,
    query: URLSearchParams,
    method: string,
    account: Account,
    onEntered: (release: () => void) => void,
  ): Promise<{ readonly route: Route; readonly question: Question; readonly caller: Caller }> {
    const found = find(method, path);
    const { route } = found;
    account.route = route.path;
    if (query !== noQuery) refuseSecrets(query);
    const question: Question = {
      req,
      param: paramOf(found),
      query: query === noQuery ? noQueries.get(route) : checkQuery(route.query, query),
    };
    const caller = await gate.admit(route, question);
    // Whoever needs no credential is nobody's tenant, and its questions cost nothing.
    if (route.scope !== "anyone") {
      account.caller = caller;
      onEntered(quotas.enter(caller.tenant));
    }
    return { route, question, caller };
  }

  function fail(req: IncomingMessage, res: ServerResponse, account: Account, error: unknown): void {
    // The client has gone: there is nobody to tell, and what failed is that it went.
    if (isClosed(res)) return;
    const told = toldOf(report, error, account.requestId);
    // A stream has begun: no status is left to tell it with.
    if (res.headersSent) {
      breakOff(res);
      return;
    }
    account.refused(told);
    send(req, res, account, { status: told.row.status, body: told, headers: headersOf(told) });
  }

  /** A flat list of names and values is what Node writes fastest, and what costs least to put together. */
  function begin(
    req: IncomingMessage,
    res: ServerResponse,
    { requestId }: Account,
    status: number,
    headers: string[],
  ): void {
    headers.push(requestIdHeader, requestId);
    // Whoever stays would be answered until the door is shut, and nobody waits for that.
    if (isLeaving() && streamOf(res) === undefined) res.shouldKeepAlive = false;
    const common = guardsOf(req);
    for (let i = 0; i < common.length; i += 2)
      addHeader(headers, common[i] as string, common[i + 1] as string);
    res.writeHead(status, headers);
  }

  function send(
    req: IncomingMessage,
    res: ServerResponse,
    account: Account,
    { status, body, text, headers }: Reply,
  ): void {
    // A line break at the end, for those who read it in a terminal.
    const content = text === undefined && body === undefined ? "" : `${text ?? JSON.stringify(body)}\n`;
    if (!req.complete) takeNoMore(req, res);
    const list = headers === undefined ? [] : listOf(headers);
    if (content !== "") addHeader(list, "Content-Type", "application/json; charset=utf-8");
    if (status !== 204) addHeader(list, "Content-Length", String(Buffer.byteLength(content)));
    addHeader(list, "Cache-Control", "no-store");
    begin(req, res, account, status, list);
    giveText(res, req.method === "HEAD" ? "" : content);
  }

  // What is not HTTP never becomes a request; it is told in the same form as everything else.
  server.on("clientError", (error: NodeJS.ErrnoException, socket: Socket) => {
    if (error.code === "ECONNRESET" || !socket.writable) socket.destroy();
    else if (isAnswering(socket)) hangUp(socket);
    else {
      const told = unreadable(error.code, settings);
      refuse(socket, told, accounts.unreadable(told), guardsOf({ socket, headers: {} }));
    }
  });

  server.on("upgrade", (req: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on("error", () => socket.destroy());
    afterOthers(socket, () => answerUpgrade(req, socket, head));
  });

  function answerUpgrade(req: IncomingMessage, socket: Duplex, head: Buffer): void {
    const account = accounts.upgrade(req);
    let isOpen = false;
    const accepted = (): void => {
      isOpen = true;
      account.accepted();
    };
    upgrade(req, socket, head, account, accepted).catch((error: unknown) => {
      const told = toldOf(report, error, account.requestId);
      // No status is left to tell it with: like a response that breaks off.
      if (isOpen) {
        socket.destroy();
        return;
      }
      const { requestId } = account;
      const withStatus = (why: RunwireError): void => {
        account.refused(why);
        refuse(socket, why, requestId, guardsOf(req));
      };
      if (socketPaths.has(account.route ?? "") && isToldByClose(told) && socket.readable)
        turnAway({ req, socket, head, requestId }, told).then(() => account.refused(told), withStatus);
      else withStatus(told);
    });
  }

  async function upgrade(
    req: IncomingMessage,
    socket: Duplex,
    head: Buffer,
    account: Account,
    accepted: () => void,
  ): Promise<void> {
    checkFront(req);
    const { path, query } = split(req);
    const onClose = (release: () => void): void => whenClosed(socket, release);
    const { route, question, caller } = await admit(req, path, query, "GET", account, onClose);
    if (route.upgrade === null)
      throw new RunwireError("KAI-REQUEST-PATH-0001", "no WebSocket is served here");
    if (isLeaving()) throw new RunwireError("KAI-STREAM-LEAVING-0001");
    const { requestId } = account;
    const { tenant } = caller;
    const run = runOf(route, question, tenant);
    await route.upgrade({ ...question, socket, head, requestId, accepted, caller, tenant, run });
  }

  return server;
}

function listOf(headers: { readonly [name: string]: string | number }): string[] {
  return Object.entries(headers).flatMap(([name, value]) => [name, String(value)]);
}

/** What the answer says of itself comes first, and stays. */
function addHeader(list: string[], name: string, value: string): void {
  for (let i = 0; i < list.length; i += 2) if (list[i] === name) return;
  list.push(name, value);
}

function runOf({ path }: Route, { param }: Question, tenant: string): RunKey {
  return { tenant, run_id: path.includes("/:id") ? param("id") : "" };
}

function paramOf({ params }: Found): (name: string) => string {
  return (name) => {
    const value = params.get(name);
    // Nothing else names a run; a feed is a log too, and not for whoever guesses its name.
    if (name === "id" ? isRunId(value) : isId(value)) return value as string;
    if (name === "id") throw new RunwireError("KAI-RUN-MISSING-0001");
    throw new RunwireError("KAI-STREAM-PARAM-0001", `the ${name} in the path must be an id`);
  };
}

function split(req: IncomingMessage): { readonly path: string; readonly query: URLSearchParams } {
  const url = targetOf(req);
  const at = url.indexOf("?");
  if (at < 0) return { path: url, query: noQuery };
  return { path: url.slice(0, at), query: new URLSearchParams(url.slice(at + 1)) };
}

/** A whole address, as proxies are sent one, is taken for its path where it names the same host. */
function targetOf({ url = "/", headers: { host } }: IncomingMessage): string {
  if (url.startsWith("/")) return url;
  const [start, named] = /^https?:\/\/([^/?]*)(?=\/)/i.exec(url) ?? [];
  return start !== undefined && named === host ? url.slice(start.length) : url;
}

/** An unread body would be taken for the next request; over HTTP/2 it would keep its stream open. */
function takeNoMore(req: IncomingMessage, res: ServerResponse): void {
  const stream = streamOf(res);
  if (stream !== undefined) stream.once("finish", () => stream.close());
  else if (hasBody(req)) res.shouldKeepAlive = false;
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}

/** Shared, and read only: most requests have none. */
const noQuery = new URLSearchParams();
