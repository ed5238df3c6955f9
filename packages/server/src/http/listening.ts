// The server's door: opens on an address, and closes so that whoever is inside can finish.

import type { Server } from "node:http";
import type { Http2Session } from "node:http2";
import type { AddressInfo, Socket } from "node:net";
import { whoseTurn } from "./turn.js";

export interface Listening {
  readonly port: number;
  /** Open connections, whatever they carry. */
  readonly connections: number;
  /** Takes no more, and resolves when the last connection is gone: by itself, or after `graceMs`. */
  close(graceMs: number): Promise<void>;
}

const idleLookMs = 50;
/** Of an answer of which nothing is taken meanwhile, nobody waits for the rest. */
const stoppedLooks = 40;

/**
 * Throws an Error with one line where the address cannot be had. `failed` hears of connections that came later and could
 * not be taken: of descriptors or memory there were none left.
 */
export async function listen(
  server: Server,
  host: string,
  port: number,
  failed: (error: Error) => void,
): Promise<Listening> {
  // Node forgets a connection that became a WebSocket; a server that leaves must not.
  const sockets = new Set<Socket>();
  const sessions = new Set<Http2Session>();
  // Over TLS there are two for each: of bytes, and of what they say.
  const spoken = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  server.on("secureConnection", (socket: Socket) => {
    spoken.add(socket);
    socket.once("close", () => spoken.delete(socket));
  });
  // Node takes a connection for idle as soon as its answer is written, and would cut off what is still to be taken of it.
  const closeIdle = server.closeIdleConnections?.bind(server);
  const looks = new WeakMap<Socket, { readonly bytes: number; readonly count: number }>();
  const isTaking = (socket: Socket): boolean => {
    // Until all of it is taken, the answer that was written last has the connection.
    if (whoseTurn(socket)?.writableEnded !== true) return false;
    const { writableLength: bytes } = socket;
    const before = looks.get(socket);
    const count = before?.bytes === bytes ? before.count + 1 : 0;
    looks.set(socket, { bytes, count });
    return count < stoppedLooks;
  };
  server.closeIdleConnections = () => {
    if ([...sockets, ...spoken].filter(isTaking).length === 0) closeIdle?.();
  };
  server.on("session", (session: Http2Session) => {
    sessions.add(session);
    session.once("close", () => sessions.delete(session));
  });
  await new Promise<void>((resolve, reject) => {
    const refused = (error: NodeJS.ErrnoException): void => reject(refusal(error, host, port));
    server.once("error", refused);
    server.listen(port, host, () => {
      server.off("error", refused);
      // Whoever is inside stays: an error that nobody hears would end the process.
      server.on("error", failed);
      resolve();
    });
  });
  return {
    port: (server.address() as AddressInfo).port,
    get connections() {
      return sockets.size;
    },
    async close(graceMs) {
      const stopped = new Promise<void>((resolve) => server.close(() => resolve()));
      // Those too that did not come through the door, of which Node knows nothing.
      const left = [...sockets].map((socket) => new Promise((resolve) => socket.once("close", resolve)));
      // Those that become idle later, too: nobody waits for a client's keep-alive. HTTP/2 looks after its own.
      const idle = setInterval(() => server.closeIdleConnections(), idleLookMs);
      for (const session of sessions) session.close();
      const grace = setTimeout(() => {
        for (const socket of sockets) socket.destroy();
      }, graceMs);
      await stopped;
      await Promise.all(left);
      clearInterval(idle);
      clearTimeout(grace);
    },
  };
}

function refusal(error: NodeJS.ErrnoException, host: string, port: number): Error {
  const why: { readonly [code: string]: string } = {
    EADDRINUSE: `port ${port} on ${host} is taken; choose another with --port, or 0 for a free one`,
    EACCES: `port ${port} may not be used by this user; choose one above 1023 with --port`,
    EADDRNOTAVAIL: `${host} is no address of this machine; choose another with --host`,
    ENOTFOUND: `${host} is no name that is known here; choose another with --host`,
  };
  const line = why[error.code ?? ""];
  return line === undefined ? error : new Error(line, { cause: error });
}
