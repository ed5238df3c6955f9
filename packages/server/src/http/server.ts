// The HTTP front: finds the route, asks the gate who is asking, reads what the route wants to know, hands over the
// call, answers. Trouble before a stream has begun is a status and an error body; after that it is the stream's own.

import { once } from "node:events";
import { createServer, IncomingMessage, type Server, type ServerResponse } from "node:http";
import { constants, createSecureServer, type ServerHttp2Session } from "node:http2";
import type { Duplex } from "node:stream";
import { isId, isRunId, RunwireError } from "@runwire/protocol";
import type { Caller } from "../auth/caller.js";
import { type Gate, refuseSecrets } from "../auth/gate.js";
import { Limited, type Quotas } from "../quotas.js";
import { type Report, stackOf } from "../report.js";
import type { Settings } from "../settings.js";
import type { RunKey } from "../store.js";
import { type Account, type Accounts, requestIdHeader } from "./account.js";
import { readObject } from "./body.js";
import { checkBody, checkQuery } from "./check.js";
import { whenClosed } from "./closing.js";
import { front } from "./front.js";
import {
  type Call,
  type Found,
  MethodNotAllowed,
  type Question,
  type Reply,
  type Route,
  router,
} from "./route.js";
import type { Tls } from "./tls.js";

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

const headersMs = 20_000;
/** How often it is looked who is late. */
const headersLookMs = 2000;

export function httpServer(options: HttpOptions): Server {
  const { routes, settings, gate, quotas, isLeaving, report, accounts } = options;
  const { find, methods } = router(routes);
  const understood = routes.flatMap(({ headers }) => Object.keys(headers));
  const { check: checkFront, headers: guardsOf, preflight } = front(settings, understood);
  // A query that is not there says the same every time.
  const noQueries = new Map(routes.map((route) => [route, checkQuery(route.query, noQuery)]));
  const server = listener(options);

  server.on("request", (req: IncomingMessage, res: ServerResponse) => {
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
    // Requests that came before their turn are taken one after the other: until then a response has no socket.
    if (res.socket === null) await once(res, "socket");
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
    if (isLeaving() && req.method !== "GET") throw new RunwireError("KAI-STREAM-LEAVING-0001");
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
      body: route.body === null ? null : checkBody(route.body, await readObject(req, settings)),
      begin(status, headers) {
        account.isStream = !("Content-Length" in headers);
        begin(req, res, account, status, headers);
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
    // The client has gone, or a stream has begun: there is nobody to tell, or no status left to tell with.
    if (res.headersSent || res.destroyed) {
      res.destroy();
      return;
    }
    const told = toldOf(error, account);
    account.refused(told);
    send(req, res, account, { status: told.row.status, body: told, headers: headersOf(told) });
  }

  /** A flat list is what Node writes fastest. */
  function begin(
    req: IncomingMessage,
    res: ServerResponse,
    { requestId }: Account,
    status: number,
    headers: { readonly [name: string]: string | number },
  ): void {
    const list = [requestIdHeader, requestId];
    const common = guardsOf(req);
    for (let i = 0; i < common.length; i += 2)
      if (!((common[i] as string) in headers)) list.push(common[i] as string, common[i + 1] as string);
    for (const name in headers) list.push(name, String(headers[name]));
    res.writeHead(status, list);
  }

  function send(
    req: IncomingMessage,
    res: ServerResponse,
    account: Account,
    { status, body, text, headers }: Reply,
  ): void {
    // A line break at the end, for those who read it in a terminal.
    const content = text === undefined && body === undefined ? "" : `${text ?? JSON.stringify(body)}\n`;
    // An unread body would be taken for the next request.
    if (!req.complete && hasBody(req)) res.shouldKeepAlive = false;
    begin(req, res, account, status, {
      ...(content === "" ? {} : { "Content-Type": "application/json; charset=utf-8" }),
      ...(status === 204 ? {} : { "Content-Length": Buffer.byteLength(content) }),
      "Cache-Control": "no-store",
      ...headers,
    });
    res.end(req.method === "HEAD" ? "" : content);
  }

  // For the operator; the client is told no more than that there was one.
  function toldOf(error: unknown, { requestId }: Account): RunwireError {
    if (error instanceof RunwireError) return error;
    const told = new RunwireError("KAI-SERVER-BUG-0001", requestId);
    report("error", "bug", { code: told.code, request_id: requestId, stack: stackOf(error) });
    return told;
  }

  // What is not HTTP never becomes a request; it is told in the same form as everything else.
  server.on("clientError", (error: NodeJS.ErrnoException, socket: Duplex) => {
    if (error.code === "ECONNRESET" || !socket.writable) socket.destroy();
    else if (isAnswering(socket)) hangUp(socket);
    else {
      const told = unreadable(error.code, settings);
      refuse(socket, told, accounts.unreadable(told), guardsOf(undefined));
    }
  });

  server.on("upgrade", (req: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on("error", () => socket.destroy());
    const account = accounts.upgrade(req);
    upgrade(req, socket, head, account).catch((error: unknown) => {
      const told = toldOf(error, account);
      account.refused(told);
      refuse(socket, told, account.requestId, guardsOf(req));
    });
  });

  async function upgrade(
    req: IncomingMessage,
    socket: Duplex,
    head: Buffer,
    account: ReturnType<Accounts["upgrade"]>,
  ): Promise<void> {
    checkFront(req);
    if (isLeaving()) throw new RunwireError("KAI-STREAM-LEAVING-0001");
    const { path, query } = split(req);
    const onClose = (release: () => void): void => whenClosed(socket, release);
    const { route, question, caller } = await admit(req, path, query, "GET", account, onClose);
    if (route.upgrade === null)
      throw new RunwireError("KAI-REQUEST-PATH-0001", "no WebSocket is served here");
    const { requestId, accepted } = account;
    const { tenant } = caller;
    const run = runOf(route, question, tenant);
    await route.upgrade({ ...question, socket, head, requestId, accepted, caller, tenant, run });
  }

  return server;
}

/** A request may last as long as its append session; bodies of other requests have a time limit of their own. */
function listener({ tls, settings: { headerBytesMax } }: HttpOptions): Server {
  const options = {
    requestTimeout: 0,
    headersTimeout: headersMs,
    connectionsCheckingInterval: headersLookMs,
    maxHeaderSize: headerBytesMax,
  };
  if (tls === null) return createServer({ ...options, IncomingMessage: Request });
  const secure = createSecureServer({
    ...tls,
    ...options,
    allowHTTP1: true,
    minVersion: "TLSv1.2",
    Http1IncomingMessage: Request,
    maxSessionMemory: sessionMegabytesMax,
    settings: { maxConcurrentStreams: streamsPerSessionMax, maxHeaderListSize: headerBytesMax },
  });
  secure.on("session", endFloods);
  // The same events, requests and responses, as far as this server uses them. For HTTP/1.1 it knows the options only
  // as properties; without them it would cut append sessions off after five minutes.
  return Object.assign(secure as unknown as Server, options);
}

/**
 * No more than this may be open at once. Who opens twice as many in one turn of the loop resets them as fast as it opens
 * them, to keep the server busy with nothing.
 */
const streamsPerSessionMax = 250;

function endFloods(session: ServerHttp2Session): void {
  let opened = 0;
  const forget = (): void => {
    opened = 0;
  };
  session.on("stream", () => {
    if (opened === 0) setImmediate(forget);
    opened += 1;
    if (opened > 2 * streamsPerSessionMax) session.destroy(undefined, constants.NGHTTP2_ENHANCE_YOUR_CALM);
  });
}

const sessionMegabytesMax = 10;

/**
 * Node hands every request with an `Upgrade` header over as an upgrade. Only WebSockets are; whoever offers another
 * protocol (Java and curl offer h2c) is answered as if it had not.
 */
class Request extends IncomingMessage {
  get upgrade(): boolean {
    return asked.has(this) && this.headers.upgrade?.toLowerCase() === "websocket";
  }

  set upgrade(value: boolean) {
    if (value) asked.add(this);
  }
}

const asked = new WeakSet<IncomingMessage>();

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

function split({ url = "/" }: IncomingMessage): { readonly path: string; readonly query: URLSearchParams } {
  const at = url.indexOf("?");
  if (at < 0) return { path: url, query: noQuery };
  return { path: url.slice(0, at), query: new URLSearchParams(url.slice(at + 1)) };
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}

/** Shared, and read only: most requests have none. */
const noQuery = new URLSearchParams();

function headersOf(error: RunwireError): { readonly [name: string]: string } {
  const { status, retry } = error.row;
  const retryMs = error instanceof Limited ? error.retryMs : 1000;
  return {
    ...(error instanceof MethodNotAllowed ? { Allow: error.allow } : {}),
    ...(status === 401 ? { "WWW-Authenticate": 'Bearer realm="runwire"' } : {}),
    ...(retry ? { "Retry-After": String(Math.ceil(retryMs / 1000)) } : {}),
  };
}

/** The parser of HTTP/1.1 counts by itself; HTTP/2 only tells its clients what they may send. */
function headerBytes({ rawHeaders }: IncomingMessage): number {
  return rawHeaders.reduce((sum, text) => sum + text.length, 0);
}

function headersTooLarge({ headerBytesMax }: Settings): RunwireError {
  return new RunwireError("KAI-REQUEST-SIZE-0002", `headers may have ${headerBytesMax} bytes`);
}

function unreadable(code: string | undefined, settings: Settings): RunwireError {
  if (code === "HPE_HEADER_OVERFLOW") return headersTooLarge(settings);
  if (code === "ERR_HTTP_REQUEST_TIMEOUT") return new RunwireError("KAI-REQUEST-TIME-0001");
  return new RunwireError("KAI-REQUEST-BODY-0001", "this is not HTTP/1.1");
}

function refuse(socket: Duplex, error: RunwireError, requestId: string, guards: readonly string[]): void {
  const body = JSON.stringify(error);
  const { status, title } = error.row;
  const headers = Object.entries(headersOf(error)).map(([name, value]) => `${name}: ${value}\r\n`);
  for (let i = 0; i < guards.length; i += 2) headers.push(`${guards[i]}: ${guards[i + 1]}\r\n`);
  socket.end(
    `HTTP/1.1 ${status} ${title}\r\nContent-Type: application/json; charset=utf-8\r\n${headers.join("")}` +
      `${requestIdHeader}: ${requestId}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n` +
      `Connection: close\r\n\r\n${body}`,
  );
  hangUp(socket);
}

/** It gets time to read the answer, and then the connection goes, whether or not it wants to. */
function hangUp(socket: Duplex): void {
  socket.resume();
  setTimeout(() => socket.destroy(), hangUpMs).unref();
}

const hangUpMs = 500;

/**
 * Whether a whole request that came before is still to be answered, or an answer has begun: what follows is not HTTP,
 * but whoever waits would take this for its answer. (Node has no other name for the response whose turn it is.)
 */
function isAnswering(socket: Duplex): boolean {
  const { _httpMessage: current } = socket as { _httpMessage?: ServerResponse | null };
  return current != null && (current.req.complete || current.headersSent);
}
