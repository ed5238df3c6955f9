// Bytes that come in pieces and are needed as a whole. They are copied into one buffer that doubles: a piece that is
// kept as it came holds all that was read with it, and a body of single bytes would take hundreds for each.

export interface GatheredBytes {
  readonly length: number;
  add(piece: Buffer): void;
  /** All of them; it begins anew. */
  take(): Buffer;
}

const none = Buffer.alloc(0);

export function gatheredBytes(): GatheredBytes {
  let room = none;
  let length = 0;
  return {
    get length() {
      return length;
    },
    add(piece) {
      const needed = length + piece.length;
      if (needed > room.length) {
        const larger = Buffer.allocUnsafe(Math.max(needed, room.length * 2));
        room.copy(larger, 0, 0, length);
        room = larger;
      }
      piece.copy(room, length);
      length = needed;
    },
    take() {
      const whole = room.subarray(0, length);
      room = none;
      length = 0;
      return whole;
    },
  };
}
