// The HTTP front: finds the route, asks it, answers. Trouble before a stream has begun is a status and an error
// body; after that it is the stream's own.

import { once } from "node:events";
import { createServer, IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { isId, RunwireError } from "@runwire/protocol";
import { type Report, stackOf } from "../report.js";
import type { Sockets } from "../transports/websocket.js";
import { type Account, type Accounts, requestIdHeader } from "./account.js";
import { MethodNotAllowed, type Reply, type Route, router } from "./route.js";

export interface HttpOptions {
  readonly routes: readonly Route[];
  readonly sockets: Sockets;
  readonly isLeaving: () => boolean;
  readonly report: Report;
  readonly accounts: Accounts;
}

/** Everyone's until there are keys. */
const tenant = "default";
const headersMs = 20_000;
const headerBytesMax = 16 * 1024;

export function httpServer({ routes, sockets, isLeaving, report, accounts }: HttpOptions): Server {
  const find = router(routes);
  // A request may last as long as its append session; bodies of other requests have a time limit of their own.
  const server = createServer({
    IncomingMessage: Request,
    requestTimeout: 0,
    headersTimeout: headersMs,
    maxHeaderSize: headerBytesMax,
  });

  server.on("request", (req: IncomingMessage, res: ServerResponse) => {
    const account = accounts.request(req, res);
    handle(req, res, account).catch((error: unknown) => fail(req, res, account, error));
  });

  async function handle(req: IncomingMessage, res: ServerResponse, account: Account): Promise<void> {
    // Requests that came before their turn are taken one after the other: until then a response has no socket.
    if (res.socket === null) await once(res, "socket");
    checkHost(req);
    if (isLeaving() && req.method !== "GET") throw new RunwireError("KAI-STREAM-LEAVING-0001");
    const { path, query } = split(req);
    const { route, params } = find(req.method ?? "GET", path);
    account.note({ route: route.path, tenant });
    const param = paramOf(params);
    const reply = await route.handle({
      req,
      res,
      query,
      tenant,
      param,
      get run() {
        return { tenant, run_id: param("id") };
      },
    });
    if (reply !== undefined) send(req, res, reply);
  }

  function fail(req: IncomingMessage, res: ServerResponse, account: Account, error: unknown): void {
    // The client has gone, or a stream has begun: there is nobody to tell, or no status left to tell with.
    if (res.headersSent || res.destroyed) {
      res.destroy();
      return;
    }
    const told = toldOf(error, account);
    account.refused(told);
    const headers = {
      ...(told instanceof MethodNotAllowed ? { Allow: told.allow } : {}),
      ...(told.row.retry ? { "Retry-After": "1" } : {}),
    };
    send(req, res, { status: told.row.status, body: told, headers });
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
      const told = unreadable(error.code);
      refuse(socket, told, accounts.unreadable(told));
    }
  });

  server.on("upgrade", (req: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on("error", () => socket.destroy());
    const account = accounts.upgrade(req);
    upgrade(req, socket, head, account).catch((error: unknown) => {
      const told = toldOf(error, account);
      account.refused(told);
      refuse(socket, told, account.requestId);
    });
  });

  async function upgrade(
    req: IncomingMessage,
    socket: Duplex,
    head: Buffer,
    account: ReturnType<Accounts["upgrade"]>,
  ): Promise<void> {
    checkHost(req);
    if (isLeaving()) throw new RunwireError("KAI-STREAM-LEAVING-0001");
    const { path, query } = split(req);
    const { route, params } = find("GET", path);
    account.note({ route: route.path, tenant });
    const { requestId, accepted } = account;
    const asked = { req, socket, head, query, tenant, requestId, accepted };
    if (route.path === "/v1/agent/stream") await sockets.many(asked);
    else if (route.path === "/v1/agent/runs/:id/stream") await sockets.one(asked, paramOf(params)("id"));
    else throw new RunwireError("KAI-REQUEST-PATH-0001", "no WebSocket is served here");
  }

  return server;
}

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

function paramOf(params: ReadonlyMap<string, string>): (name: string) => string {
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

/**
 * An open server answers those who call it by its loopback name, from no page or its own: a page of another site,
 * or a name that was made to point here, gets nothing.
 */
function checkHost(req: IncomingMessage): void {
  const { host = "", origin } = req.headers;
  if (!loopbackNames.has(hostName(host)) || countOf(req.rawHeaders, "host") !== 1) {
    throw new RunwireError("KAI-REQUEST-HOST-0001", "unknown Host");
  }
  if (origin !== undefined && origin !== `http://${host}` && origin !== `https://${host}`) {
    throw new RunwireError("KAI-REQUEST-HOST-0001", `pages of ${host} may call, not pages of another origin`);
  }
}

/** Node keeps the first of several; a front that keeps another would see another host. */
function countOf(rawHeaders: readonly string[], name: string): number {
  let count = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const header = rawHeaders[i] as string;
    if (header.length === name.length && header.toLowerCase() === name) count += 1;
  }
  return count;
}

const loopbackNames = new Set(["127.0.0.1", "localhost", "[::1]"]);

function hostName(host: string): string {
  return host.replace(/:[0-9]{1,5}$/, "").toLowerCase();
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
  res.end(content);
}

function unreadable(code: string | undefined): RunwireError {
  if (code === "HPE_HEADER_OVERFLOW") {
    return new RunwireError("KAI-REQUEST-SIZE-0002", `headers may have ${headerBytesMax} bytes`);
  }
  if (code === "ERR_HTTP_REQUEST_TIMEOUT") return new RunwireError("KAI-REQUEST-TIME-0001");
  return new RunwireError("KAI-REQUEST-BODY-0001", "this is not HTTP/1.1");
}

function refuse(socket: Duplex, error: RunwireError, requestId: string): void {
  const body = JSON.stringify(error);
  const { status, title } = error.row;
  socket.end(
    `HTTP/1.1 ${status} ${title}\r\nContent-Type: application/json; charset=utf-8\r\n` +
      `${requestIdHeader}: ${requestId}\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
}
