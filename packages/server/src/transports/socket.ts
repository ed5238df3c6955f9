// What all WebSockets have in common: how they are opened, a place to write to, and messages that are obeyed one by one.

import type { Duplex } from "node:stream";
import { type Close, errorTable } from "@runwire/protocol";
import type { WebSocket } from "ws";
import { handshake } from "../http/handshake.js";
import type { Upgrade } from "../http/route.js";
import { stackOf } from "../report.js";
import type { Rooms } from "../rooms.js";
import type { Sink, Stream } from "../stream.js";
import { drained, waitsForDrain } from "./draining.js";

/** A client that leaves this much unread is answered no more until it has read. */
const unreadBytesMax = 64 * 1024;
const closeCodes: { readonly [C in Close]: number } = {
  finished: 1000,
  leaving: errorTable["KAI-STREAM-LEAVING-0001"].close,
  broken: errorTable["KAI-SERVER-BUG-0001"].close,
};
const binaryFrame = errorTable["KAI-STREAM-FRAME-0001"];

/** `isSpoken` says which of the subprotocols that a client offers is taken. */
export function acceptor(
  isSpoken: (protocol: string) => boolean,
): (upgrade: Upgrade<unknown>) => Promise<WebSocket> {
  const open = handshake((offered) => [...offered].find(isSpoken));
  return async (upgrade) => {
    const ws = await open(upgrade);
    upgrade.accepted();
    ws.on("ping", (data) => {
      if (ws.bufferedAmount < unreadBytesMax) ws.pong(data);
    });
    return ws;
  };
}

/**
 * Text messages, one after the other, in their order and after `before`. Each counts as a request of the tenant; a
 * client that sends faster waits. Once this side has ended the connection, none is obeyed, also of those that wait.
 */
export async function inOrder(
  { quotas, report }: Pick<Rooms, "quotas" | "report">,
  ws: WebSocket,
  { socket, tenant, requestId }: Pick<Upgrade, "socket" | "tenant" | "requestId">,
  isOver: () => boolean,
  before: Promise<void>,
  obey: (text: string) => Promise<void>,
): Promise<void> {
  let waiting = 0;
  // Whoever called hears why it failed, and ends the connection.
  let obeyed = before.catch(() => {});
  ws.on("message", (data, isBinary) => {
    // The connection ends with it.
    if (isBinary) return;
    waiting += 1;
    ws.pause();
    obeyed = obeyed
      .then(() => quotas.askingLater(tenant))
      .then(() => (isOver() ? undefined : obey(String(data))))
      .then(() => hasRead(ws, socket))
      .then(() => {
        waiting -= 1;
        if (waiting === 0) ws.resume();
      })
      .catch((error: unknown) => {
        const code = "KAI-SERVER-BUG-0001";
        report("error", "bug", { code, request_id: requestId, stack: stackOf(error) });
        ws.close(closeCodes.broken);
      });
  });
  await before;
}

/** Settles when what was written is read as far as it must be, or never will be. */
async function hasRead(ws: WebSocket, socket: Duplex): Promise<void> {
  while (ws.readyState === ws.OPEN && ws.bufferedAmount >= unreadBytesMax) await drained(socket);
}

export interface SocketSink {
  readonly sink: Sink;
  attach(stream: Stream): void;
  /** Whether this side has ended the connection. A client may leave right after its last word, which still counts. */
  isOver(): boolean;
}

export function socketSink(
  rooms: Pick<Rooms, "clock" | "connections">,
  ws: WebSocket,
  { socket, caller }: Pick<Upgrade, "socket" | "caller">,
): SocketSink {
  const { clock, connections } = rooms;
  let stream: Stream | undefined;
  let isOver = false;
  let sentMs = clock.monotonic();
  let full = false;
  const isOpen = (): boolean => ws.readyState === ws.OPEN;
  function end(code: number | undefined, why?: string): void {
    isOver = true;
    ws.close(code, why);
  }

  const remove = connections.add({
    sentMs: () => sentMs,
    ping() {
      sentMs = clock.monotonic();
      // Behind what a client that has stopped reading does not take, pings would pile up.
      if (isOpen() && !waitsForDrain(socket)) ws.ping();
    },
    caller,
    leave: () => (stream === undefined ? end(closeCodes.leaving) : stream.close("leaving")),
    end(why) {
      end(why.row.close, why.row.title);
      stream?.close("leaving", "credentials");
    },
  });
  socket.on("drain", () => {
    if (!full) return;
    full = false;
    stream?.drained();
  });
  ws.on("message", (_data, isBinary) => {
    if (isBinary) end(binaryFrame.close, binaryFrame.title);
  });
  // A broken frame is answered by the library with its close code; the stream then ends like any other.
  ws.on("error", () => {});
  ws.once("close", () => {
    remove();
    stream?.close("broken");
  });

  return {
    sink: {
      // While it waits for the client's goodbye, nothing more can be sent.
      isFull: () => full || !isOpen(),
      send(bytes) {
        if (!isOpen()) return;
        sentMs = clock.monotonic();
        socket.write(bytes);
        full = waitsForDrain(socket);
      },
      close(how) {
        if (isOpen()) end(closeCodes[how]);
      },
    },
    isOver: () => isOver,
    attach(opened) {
      stream = opened;
      if (!isOpen()) opened.close("broken");
      else if (connections.leaving) opened.close("leaving");
    },
  };
}
