// Answers to what never became a request, or is not to become a WebSocket: written to the socket by hand, in the form
// of every other error.

import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { RunwireError } from "@runwire/protocol";
import { Limited } from "../quotas.js";
import type { Settings } from "../settings.js";
import { requestIdHeader } from "./account.js";
import { MethodNotAllowed } from "./route.js";
import { whoseTurn } from "./turn.js";

/** What an error says in headers. */
export function headersOf(error: RunwireError): { readonly [name: string]: string } {
  const { status, retry } = error.row;
  const retryMs = error instanceof Limited ? error.retryMs : 1000;
  return {
    ...(error instanceof MethodNotAllowed ? { Allow: error.allow } : {}),
    ...(status === 401 ? { "WWW-Authenticate": 'Bearer realm="runwire"' } : {}),
    ...(retry ? { "Retry-After": String(Math.ceil(retryMs / 1000)) } : {}),
  };
}

/** The parser of HTTP/1.1 counts by itself; HTTP/2 only tells its clients what they may send. */
export function headerBytes({ rawHeaders }: IncomingMessage): number {
  return rawHeaders.reduce((sum, text) => sum + text.length, 0);
}

export function headersTooLarge({ headerBytesMax }: Settings): RunwireError {
  return new RunwireError("KAI-REQUEST-SIZE-0002", `headers may have ${headerBytesMax} bytes`);
}

export function unreadable(code: string | undefined, settings: Settings): RunwireError {
  if (code === "HPE_HEADER_OVERFLOW") return headersTooLarge(settings);
  if (code === "ERR_HTTP_REQUEST_TIMEOUT") return new RunwireError("KAI-REQUEST-TIME-0001");
  return new RunwireError("KAI-REQUEST-BODY-0001", "this is not HTTP/1.1");
}

export function refuse(
  socket: Duplex,
  error: RunwireError,
  requestId: string,
  guards: readonly string[],
): void {
  const body = JSON.stringify(error);
  const { status, title } = error.row;
  const headers = Object.entries(headersOf(error)).map(([name, value]) => `${name}: ${value}\r\n`);
  for (let i = 0; i < guards.length; i += 2) headers.push(`${guards[i]}: ${guards[i + 1]}\r\n`);
  socket.end(
    `HTTP/1.1 ${status} ${title}\r\nContent-Type: application/json; charset=utf-8\r\n${headers.join("")}` +
      `Cache-Control: no-store\r\n${requestIdHeader}: ${requestId}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n` +
      `Connection: close\r\n\r\n${body}`,
  );
  hangUp(socket);
}

/** It gets time to read the answer, and then the connection goes, whether or not it wants to. */
export function hangUp(socket: Duplex): void {
  socket.resume();
  setTimeout(() => socket.destroy(), hangUpMs).unref();
}

const hangUpMs = 500;

/**
 * Whether a whole request that came before is still to be answered, or an answer has begun: what follows is not HTTP,
 * but whoever waits would take this for its answer.
 */
export function isAnswering(socket: Duplex): boolean {
  const current = whoseTurn(socket);
  return current !== undefined && (current.req.complete || current.headersSent);
}
