// What listens: the options of Node's servers for HTTP/1.1 and, with TLS, HTTP/2, so that requests of both look the
// same to the rest of the server.

import { createServer, IncomingMessage, type Server, type ServerResponse } from "node:http";
import { constants, createSecureServer, type ServerHttp2Session } from "node:http2";
import type { Tls } from "./tls.js";

const headersMs = 20_000;
/** How often it is looked who is late. */
const headersLookMs = 2000;

/**
 * How long a connection is kept on which nothing is asked. Longer than the minute for which balancers and proxies keep
 * theirs: who closes first must be whoever asks, or a question meets a connection that is being closed.
 */
const idleMsDefault = 75_000;

/**
 * When the system begins to ask whether the other end of a quiet connection still lives. A producer that lost its power
 * says nothing for ever, and its open session would renew its lease for as long.
 */
const probeMs = 30_000;

/** A request may last as long as its append session; bodies of other requests have a time limit of their own. */
export function listener(tls: Tls | null, headerBytesMax: number, idleMs = idleMsDefault): Server {
  const options = {
    requestTimeout: 0,
    headersTimeout: headersMs,
    keepAliveTimeout: idleMs,
    keepAlive: true,
    keepAliveInitialDelay: probeMs,
    connectionsCheckingInterval: headersLookMs,
    maxHeaderSize: headerBytesMax,
  };
  if (tls === null)
    // Who names no host is told so in our own words.
    return expectNothing(createServer({ ...options, IncomingMessage: Request, requireHostHeader: false }));
  const secure = createSecureServer({
    cert: tls.cert,
    key: tls.key,
    ...options,
    allowHTTP1: true,
    minVersion: "TLSv1.2",
    Http1IncomingMessage: Request,
    maxSessionMemory: sessionMegabytesMax,
    settings: { maxConcurrentStreams: streamsPerSessionMax, maxHeaderListSize: headerBytesMax },
  });
  secure.on("session", endFloods);
  secure.on("session", (session) => endIdle(session, idleMs));
  // The same events, requests and responses, as far as this server uses them. For HTTP/1.1 it knows the options only
  // as properties; without them it would cut append sessions off after five minutes.
  return expectNothing(Object.assign(secure as unknown as Server, options));
}

/** A client may expect more of a server than to be asked for its body. It need not be given it, and is answered as any. */
function expectNothing(server: Server): Server {
  return server.on("checkExpectation", (req: IncomingMessage, res: ServerResponse) =>
    server.emit("request", req, res),
  );
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

/** Streams speak every 15 seconds; whoever has none and says nothing only holds the connection. */
function endIdle(session: ServerHttp2Session, idleMs: number): void {
  let open = 0;
  let idle: NodeJS.Timeout | undefined;
  const wait = (): void => {
    idle = setTimeout(() => session.destroy(), idleMs).unref();
  };
  wait();
  session.on("stream", (stream) => {
    open += 1;
    clearTimeout(idle);
    stream.once("close", () => {
      open -= 1;
      if (open === 0 && !session.destroyed) wait();
    });
  });
  session.once("close", () => clearTimeout(idle));
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
