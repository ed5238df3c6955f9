// A request becomes a WebSocket. The library checks what was asked and answers it; frames and the closing are its too.

import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { RunwireError } from "@runwire/protocol";
import { type WebSocket, WebSocketServer } from "ws";
import { requestIdHeader } from "./account.js";

export interface Asked {
  readonly req: IncomingMessage;
  readonly socket: Duplex;
  readonly head: Buffer;
  readonly requestId: string;
}

/** Resolves once it is open; rejects where what was asked is no handshake. */
export type Handshake = (asked: Asked) => Promise<WebSocket>;

const messageBytesMax = 64 * 1024;

/** `chosen` says which of the subprotocols that a client offers is taken. */
export function handshake(chosen: (offered: ReadonlySet<string>) => string | undefined): Handshake {
  const server = new WebSocketServer({
    noServer: true,
    perMessageDeflate: false,
    maxPayload: messageBytesMax,
    // The library answers every ping, also of a client that reads none of the answers.
    autoPong: false,
    handleProtocols: (offered) => chosen(offered) ?? false,
  });

  // Node gives the handshake no response of its own to put a header on, or to refuse it with.
  const requestIds = new WeakMap<IncomingMessage, string>();
  server.on("headers", (headers, req) => {
    headers.push(`${requestIdHeader}: ${requestIds.get(req)}`);
  });
  const refusals = new WeakMap<IncomingMessage, (error: RunwireError) => void>();
  server.on("wsClientError", ({ message }, _socket, req) => {
    refusals.get(req)?.(new RunwireError("KAI-STREAM-FRAME-0002", message));
  });

  return ({ req, socket, head, requestId }) =>
    new Promise((resolve, reject) => {
      requestIds.set(req, requestId);
      refusals.set(req, reject);
      server.handleUpgrade(req, socket, head, resolve);
    });
}
