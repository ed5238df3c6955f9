import type { Duplex } from "node:stream";

/**
 * Whether "drain" is still to come and the kernel has not taken it all: a large write that went out at once blocks
 * nobody. What the last write answered is not enough: a short one, like a ping, finds room before all has drained, and
 * whoever took that for a yes would never hear that it has.
 */
export function waitsForDrain(socket: Duplex): boolean {
  return socket.writableNeedDrain && socket.writableLength > 0;
}
