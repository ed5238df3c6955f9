// HTTP by hand: one connection, bytes in, bytes out, read only when told to. For what no proper client sends.

import { once } from "node:events";
import { connect, type Socket } from "node:net";

export interface RawConnection {
  readonly socket: Socket;
  /** All that has come so far, one character a byte. */
  readonly text: string;
  write(bytes: string | Uint8Array): void;
  until(holds: (text: string) => boolean): Promise<void>;
  /** Settles when the other side has ended, with whether it did so cleanly. */
  readonly ended: Promise<{ readonly clean: boolean }>;
}

export async function rawConnection(url: string): Promise<RawConnection> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), noDelay: true });
  await once(socket, "connect");
  const chunks: Buffer[] = [];
  const waiting = new Set<() => void>();
  let over = false;
  let clean = false;
  const text = (): string => Buffer.concat(chunks).toString("latin1");
  const look = (): void => {
    for (const one of [...waiting]) one();
  };
  socket.on("data", (bytes) => {
    chunks.push(bytes);
    look();
  });
  socket.on("end", () => {
    clean = true;
  });
  socket.on("error", () => {
    clean = false;
  });
  const ended = new Promise<{ clean: boolean }>((resolve) => {
    socket.on("close", () => {
      over = true;
      look();
      resolve({ clean });
    });
  });
  return {
    socket,
    get text() {
      return text();
    },
    write: (bytes) => void socket.write(bytes),
    ended,
    until: (holds) =>
      new Promise((resolve, reject) => {
        const one = (): void => {
          if (holds(text())) resolve();
          else if (over) reject(new Error(`the connection ended first, after ${JSON.stringify(text())}`));
          else return;
          waiting.delete(one);
        };
        waiting.add(one);
        one();
      }),
  };
}

/** The whole answer to one request, to the end of the connection. */
export async function rawAnswer(url: string, request: string | Uint8Array): Promise<string> {
  const raw = await rawConnection(url);
  raw.write(request);
  await raw.ended;
  return raw.text;
}

export function requestText(
  url: string,
  method: string,
  path: string,
  headers: readonly string[] = [],
  body = "",
): string {
  const { host } = new URL(url);
  const length = body === "" ? [] : [`Content-Length: ${Buffer.byteLength(body)}`];
  const lines = [`${method} ${path} HTTP/1.1`, `Host: ${host}`, ...length, ...headers];
  return `${lines.join("\r\n")}\r\n\r\n${body}`;
}

/** What asks for a WebSocket. */
export const upgradeLines = [
  "Connection: Upgrade",
  "Upgrade: websocket",
  "Sec-WebSocket-Version: 13",
  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
];

/** The body of an answer that came in chunks, without their sizes. */
export function dechunked(answer: string): string {
  const parts: string[] = [];
  for (let at = answer.indexOf("\r\n\r\n") + 4; ; ) {
    const lineEnd = answer.indexOf("\r\n", at);
    const bytes = Number.parseInt(answer.slice(at, lineEnd), 16);
    if (!(bytes > 0)) return Buffer.from(parts.join(""), "latin1").toString();
    parts.push(answer.slice(lineEnd + 2, lineEnd + 2 + bytes));
    at = lineEnd + 2 + bytes + 2;
  }
}
