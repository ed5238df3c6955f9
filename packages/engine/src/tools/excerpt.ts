// The beginning and the end of a text of any length, in bounded memory.

export interface Excerpt {
  add(text: string): void;
  /** With a note in place of what was left out. */
  read(): string;
  /** How much was left out. */
  leftOutBytes(): number;
}

/** `whereabouts` ends the note: where the rest can be had. */
export function excerptOf(headBytesMax: number, tailBytesMax: number, whereabouts = ""): Excerpt {
  let head = Buffer.alloc(0);
  let tail = Buffer.alloc(0);
  let total = 0;
  /** Where something is left out between them, neither shows a part of a character. */
  const ends = (): readonly [Buffer, Buffer] =>
    head.length + tail.length === total ? [head, tail] : [wholeBeginning(head), wholeEnd(tail)];
  const leftOutBytes = (): number => ends().reduce((left, end) => left - end.length, total);
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
      const leftOut = leftOutBytes();
      if (leftOut === 0) return Buffer.concat([head, tail]).toString();
      const [beginning, end] = ends();
      return `${beginning.toString()}\n[… ${leftOut} bytes left out${whereabouts} …]\n${end.toString()}`;
    },
    leftOutBytes,
  };
}

function wholeBeginning(utf8: Buffer): Buffer {
  let last = utf8.length - 1;
  while (last >= 0 && isContinued(utf8[last])) last -= 1;
  const first = utf8[last] ?? 0;
  const charBytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
  return utf8.length - last < charBytes ? utf8.subarray(0, last) : utf8;
}

function wholeEnd(utf8: Buffer): Buffer {
  let first = 0;
  while (isContinued(utf8[first])) first += 1;
  return utf8.subarray(first);
}

/** A byte of a character that began before it. */
function isContinued(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}
