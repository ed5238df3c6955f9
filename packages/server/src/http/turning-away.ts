// A browser tells its page neither the status nor the body that refuse a WebSocket, only how one is closed that was open.
// So why it cannot be read is told by a close: the connection is opened, and closed at once. Who is refused for who it is,
// and not for what it asks, gets no connection at all, but a status.

import type { RunwireError } from "@runwire/protocol";
import { type Asked, handshake } from "./handshake.js";
import { hangUp } from "./refusal.js";

/** A browser fails where it offered subprotocols and none was taken. */
const open = handshake(([first]) => first);

/** What fits into a close frame beside its code. */
const reasonBytesMax = 123;

export function isToldByClose({ row: { status, close } }: RunwireError): boolean {
  return close !== undefined && status !== 401 && status !== 403;
}

/** Rejects where what was asked is no handshake. */
export async function turnAway(asked: Asked, error: RunwireError): Promise<void> {
  const ws = await open(asked);
  ws.on("error", () => {});
  ws.close(error.row.close, reasonOf(error));
  hangUp(asked.socket);
}

function reasonOf({ code, message }: RunwireError): string {
  const bytes = Buffer.from(`${code}: ${message}`);
  if (bytes.length <= reasonBytesMax) return bytes.toString();
  // Cut before a character, and not in it.
  let end = reasonBytesMax;
  while (((bytes[end] as number) & 0xc0) === 0x80) end -= 1;
  return bytes.toString("utf8", 0, end);
}
