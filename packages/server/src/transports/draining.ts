import type { Duplex, Writable } from "node:stream";

/**
 * Whether "drain" is still to come and the kernel has not taken it all: a large write that went out at once blocks
 * nobody. What the last write answered is not enough: a short one, like a pong, finds room before all has drained, and
 * whoever took that for a yes would never hear that it has.
 */
export function waitsForDrain(socket: Duplex): boolean {
  return socket.writableNeedDrain && socket.writableLength > 0;
}

/** Settles when what was written has been taken, or never will be. */
export function drained(stream: Writable): Promise<void> {
  return new Promise((resolve) => {
    const go = (): void => {
      stream.off("drain", go).off("close", go);
      resolve();
    };
    stream.once("drain", go).once("close", go);
  });
}
