// The HTTP front: finds the route, asks the gate who is asking, reads what the route wants to know, hands over the
// call, answers. Trouble before a stream has begun is a status and an error body; after that it is the stream's own.

import { once } from "node:events";
import { createServer, IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createSecureServer } from "node:http2";
import type { Duplex } from "node:stream";
import { isId, RunwireError } from "@runwire/protocol";
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
import { type Asked, type Found, MethodNotAllowed, type Reply, type Route, router } from "./route.js";
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

export function httpServer(options: HttpOptions): Server {
  const { routes, settings, gate, quotas, isLeaving, report, accounts } = options;
  const { find, methods } = router(routes);
  const understood = routes.flatMap(({ headers }) => Object.keys(headers));
  const { check: checkFront, headers: guardsOf, preflight } = front(settings, understood);
  // A query that is not there says the same every time.
  const noQueries = new Map(routes.map((route) => [route, checkQuery(route.query, noQuery)]));
  const server = listener(options);

  server.on("request", (req: IncomingMessage, res: ServerResponse) => {
    const account = accounts.request(req, res);
    handle(req, res, account).catch((error: unknown) => fail(req, res, account, error));
  });

  async function handle(req: IncomingMessage, res: ServerResponse, account: Account): Promise<void> {
    // Requests that came before their turn are taken one after the other: until then a response has no socket.
    if (res.socket === null) await once(res, "socket");
    for (const [name, value] of Object.entries(guardsOf(req))) res.setHeader(name, value);
    if (req.httpVersionMajor === 2 && headerBytes(req) > settings.headerBytesMax)
      throw headersTooLarge(settings);
    checkFront(req);
    const { path, query } = split(req);
    if (req.method === "OPTIONS") {
      send(req, res, { status: 204, headers: preflight(methods(path)) });
      return;
    }
    const { route, known, release } = await admit(req, path, query, req.method ?? "GET", account);
    whenClosed(res, release);
    if (isLeaving() && req.method !== "GET") throw new RunwireError("KAI-STREAM-LEAVING-0001");
    const body = route.body === null ? null : checkBody(route.body, await readObject(req, settings));
    const reply = await route.handle({
      ...known,
      res,
      body,
      get run() {
        return runOf(known);
      },
    });
    if (reply !== undefined) send(req, res, reply);
  }

  /** Who asks for what; throws where they may not. Call `release` when the request is over. */
  async function admit(
    req: IncomingMessage,
    path: string,
    query: URLSearchParams,
    method: string,
    account: Account,
  ) {
    const found = find(method, path);
    const { route } = found;
    account.note({ route: route.path });
    refuseSecrets(query);
    const unknown = {
      req,
      param: paramOf(found),
      query: query === noQuery ? noQueries.get(route) : checkQuery(route.query, query),
    };
    const caller = await gate.admit(route, unknown);
    const { tenant, credential } = caller;
    // Whoever needs no credential is nobody's tenant, and its questions cost nothing.
    const isAnyone = route.scope === "anyone";
    if (!isAnyone) account.note({ tenant, credential });
    const release = isAnyone ? () => {} : quotas.enter(tenant);
    return { route, known: { ...unknown, caller, tenant }, release };
  }

  function fail(req: IncomingMessage, res: ServerResponse, account: Account, error: unknown): void {
    // The client has gone, or a stream has begun: there is nobody to tell, or no status left to tell with.
    if (res.headersSent || res.destroyed) {
      res.destroy();
      return;
    }
    const told = toldOf(error, account);
    account.refused(told);
    send(req, res, { status: told.row.status, body: told, headers: headersOf(told) });
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
    const { route, known, release } = await admit(req, path, query, "GET", account);
    whenClosed(socket, release);
    if (route.upgrade === null)
      throw new RunwireError("KAI-REQUEST-PATH-0001", "no WebSocket is served here");
    const { requestId, accepted } = account;
    await route.upgrade({
      ...known,
      socket,
      head,
      requestId,
      accepted,
      get run() {
        return runOf(known);
      },
    });
  }

  return server;
}

/** A request may last as long as its append session; bodies of other requests have a time limit of their own. */
function listener({ tls, settings: { headerBytesMax } }: HttpOptions): Server {
  const options = { requestTimeout: 0, headersTimeout: headersMs, maxHeaderSize: headerBytesMax };
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
  // The same events, requests and responses, as far as this server uses them. For HTTP/1.1 it knows the options only
  // as properties; without them it would cut append sessions off after five minutes.
  return Object.assign(secure as unknown as Server, options);
}

const streamsPerSessionMax = 250;
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

/** The run that the path names; asked for only by routes that name one. */
function runOf({ tenant, param }: Pick<Asked, "tenant" | "param">): RunKey {
  return { tenant, run_id: param("id") };
}

function paramOf({ params }: Found): (name: string) => string {
  return (name) => {
    const value = params.get(name);
    if (isId(value)) return value;
    // Nothing that is not an id names a run.
    if (name === "id") throw new RunwireError("KAI-RUN-MISSING-0001");
    throw new RunwireError("KAI-STREAM-PARAM-0001", `the ${name} in the path must be an id`);
  };
}

function split({ url = "/" }: IncomingMessage): { readonly path: string; readonly query: URLSearchParams } {
  const at = url.indexOf("?");
  if (at < 0) return { path: url, query: noQuery };
  return { path: url.slice(0, at), query: new URLSearchParams(url.slice(at + 1)) };
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

function send(req: IncomingMessage, res: ServerResponse, { status, body, text, headers }: Reply): void {
  // A line break at the end, for those who read it in a terminal.
  const content = text === undefined && body === undefined ? "" : `${text ?? JSON.stringify(body)}\n`;
  // An unread body would be taken for the next request.
  if (!req.complete) res.shouldKeepAlive = false;
  res.writeHead(status, {
    ...(content === "" ? {} : { "Content-Type": "application/json; charset=utf-8" }),
    ...(status === 204 ? {} : { "Content-Length": Buffer.byteLength(content) }),
    "Cache-Control": "no-store",
    ...headers,
  });
  res.end(req.method === "HEAD" ? "" : content);
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

function refuse(
  socket: Duplex,
  error: RunwireError,
  requestId: string,
  guards: { readonly [name: string]: string },
): void {
  const body = JSON.stringify(error);
  const { status, title } = error.row;
  const headers = Object.entries({ ...headersOf(error), ...guards }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  );
  socket.end(
    `HTTP/1.1 ${status} ${title}\r\nContent-Type: application/json; charset=utf-8\r\n${headers.join("")}` +
      `${requestIdHeader}: ${requestId}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n` +
      `Connection: close\r\n\r\n${body}`,
  );
}
