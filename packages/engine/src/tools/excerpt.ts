// The beginning and the end of a text of any length, in bounded memory.

export interface Excerpt {
  add(text: string): void;
  /** With a note in place of what was left out. */
  read(): string;
  /** How much was left out. */
  leftOutBytes(): number;
}

export function excerptOf(headBytesMax: number, tailBytesMax: number): Excerpt {
  let head = Buffer.alloc(0);
  let tail = Buffer.alloc(0);
  let total = 0;
  const leftOutBytes = (): number => total - head.length - tail.length;
  return {
    add(text) {
      const bytes = Buffer.from(text);
      const forHead = bytes.subarray(0, headBytesMax - head.length);
      head = Buffer.concat([head, forHead]);
      tail = Buffer.concat([tail, bytes.subarray(forHead.length)]);
      tail = tail.subarray(Math.max(0, tail.length - tailBytesMax));
      total += bytes.length;
    },
    read() {
      if (leftOutBytes() === 0) return Buffer.concat([head, tail]).toString();
      return `${head.toString()}\n[… ${leftOutBytes()} bytes left out …]\n${tail.toString()}`;
    },
    leftOutBytes,
  };
}
