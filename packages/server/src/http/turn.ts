// HTTP/1.1 lets a client send requests before it has its answers. They are taken one after the other, and until its turn
// each is kept: so many of them, and no more.

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { whenClosed } from "./closing.js";

/** Requests of one connection that wait for their turn. */
export const waitingMax = 100;

const waiting = new WeakMap<Socket, number>();

/**
 * Whether a request may wait behind those that came before it; one that waits for nobody always may. Where it may not, its
 * connection is gone: to pause it would leave unnoticed that the client goes, and Node reads on for every request.
 */
export function mayWait({ socket }: IncomingMessage, res: ServerResponse): boolean {
  if (hasTurn(res)) return true;
  const count = (waiting.get(socket) ?? 0) + 1;
  // What is still parsed of the bytes that came last belongs to nobody any more.
  if (socket.destroyed || count > waitingMax) {
    socket.destroy();
    return false;
  }
  waiting.set(socket, count);
  res.once("socket", () => waiting.set(socket, (waiting.get(socket) ?? 0) - 1));
  return true;
}

/** Until its turn a response has no socket. */
export function hasTurn(res: ServerResponse): boolean {
  return res.socket !== null;
}

/** Settles in another turn of the loop than the answer before it ended in: the loop belongs to the others, too. */
export function ownTurn(res: ServerResponse): Promise<void> {
  return new Promise((resolve) => res.once("socket", () => setImmediate(resolve)));
}

/** The response whose turn it is. (Node has no other name for it.) */
export function whoseTurn(socket: Duplex): ServerResponse | undefined {
  const { _httpMessage: current } = socket as { _httpMessage?: ServerResponse | null };
  return current ?? undefined;
}

/** Acts when all that came before is answered; never where the connection ends with that. */
export function afterOthers(socket: Duplex, act: () => void): void {
  // Node leaves a connection alone once another protocol is asked for, and tells no answer that it takes more.
  const drained = (): void => void whoseTurn(socket)?.emit("drain");
  socket.on("drain", drained);
  const next = (): void => {
    const current = whoseTurn(socket);
    if (current === undefined) {
      socket.off("drain", drained);
      act();
    } else {
      whenClosed(current, () => {
        if (socket.writable) next();
      });
    }
  };
  next();
}
