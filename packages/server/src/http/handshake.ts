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
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: messageBytesMax,
    // The library answers every ping, also of a client that reads none of the answers.
    autoPong: false,
    handleProtocols: (offered) => chosen(offered) ?? false,
  });

  // Node gives the handshake no response of its own to put a header on, or to refuse it with.
  const asking = new WeakMap<IncomingMessage, { requestId: string; reject(error: RunwireError): void }>();
  server.on("headers", (headers, req) => {
    headers.push(`${requestIdHeader}: ${asking.get(req)?.requestId}`);
  });
  server.on("wsClientError", ({ message }, _socket, req) => {
    asking.get(req)?.reject(new RunwireError("KAI-STREAM-FRAME-0002", message));
  });

  return ({ req, socket, head, requestId }) =>
    new Promise((resolve, reject) => {
      asking.set(req, { requestId, reject });
      // The library says nothing where the client has said its last word.
      if (!socket.readable) reject(new RunwireError("KAI-STREAM-CONN-0001"));
      else server.handleUpgrade(req, socket, head, resolve);
    });
}
