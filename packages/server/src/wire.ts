// A wire is a dialect in a framing: what turns events into the bytes of one kind of connection. Bytes are made
// once per range of events and shared by all its readers.

import { type Dialect, type Message, sseFrame } from "@runwire/protocol";

export interface Wire {
  /** Tells apart what may not share bytes. */
  readonly name: string;
  readonly dialect: Dialect;
  readonly framing: Framing;
  frame(messages: readonly Message[]): Buffer;
}

export type Framing = "sse" | "sse-mux" | "ndjson" | "websocket" | "in-process";

/** `chunked` puts HTTP/1.1 chunk framing around the bytes, so that one socket write sends them. */
export function wire(dialect: Dialect, framing: Framing, chunked: boolean): Wire {
  const known = wires.get(dialect) ?? new Map<string, Wire>();
  wires.set(dialect, known);
  const name = `${dialect.name}/${framing}${chunked ? "/chunked" : ""}`;
  const found = known.get(name) ?? newWire(name, dialect, framing, chunked);
  known.set(name, found);
  return found;
}

/** One for all of its readers: ranges are asked for by its name at every write. */
const wires = new WeakMap<Dialect, Map<string, Wire>>();

function newWire(name: string, dialect: Dialect, framing: Framing, chunked: boolean): Wire {
  const line = lines[framing];
  const frame =
    line === undefined
      ? (messages: readonly Message[]) => Buffer.concat(messages.map(({ data }) => websocketText(data)))
      : (messages: readonly Message[]) => bytesOf(messages, line, chunked);
  return { name, dialect, framing, frame };
}

const lines: { readonly [F in Framing]: ((message: Message) => string) | undefined } = {
  sse: sseFrame,
  // Several runs share the connection; its cursor is a block of its own.
  "sse-mux": ({ id: _, ...message }) => sseFrame(message),
  ndjson: ({ data }) => `${data}\n`,
  websocket: undefined,
  // None of the three holds a tab or a line break where the next one begins.
  "in-process": ({ id = "", event = "", data }) => `${id}\t${event}\t${data}\n`,
};

/** The messages of an in-process write. They share its bytes with other readers, and are each reader's own. */
export function messagesIn(bytes: Buffer): readonly Message[] {
  return bytes
    .toString()
    .split("\n")
    .slice(0, -1)
    .map((line) => {
      const afterId = line.indexOf("\t");
      const afterEvent = line.indexOf("\t", afterId + 1);
      const [id, event] = [line.slice(0, afterId), line.slice(afterId + 1, afterEvent)];
      const data = line.slice(afterEvent + 1);
      return { ...(id === "" ? {} : { id }), ...(event === "" ? {} : { event }), data };
    });
}

// Lines are written into one scratch buffer and copied out once: joining the strings first costs half as much
// again. HTTP/1.1 chunk framing is `<size in hex>\r\n<bytes>\r\n`; the room for its head is kept in front.
let scratch = Buffer.allocUnsafe(1024 * 1024);
const headRoom = 16;

function bytesOf(messages: readonly Message[], line: (message: Message) => string, chunked: boolean): Buffer {
  let at = headRoom;
  for (const message of messages) {
    const text = line(message);
    // No character takes more than three bytes a unit.
    const needed = at + text.length * 3 + 2;
    if (needed > scratch.length) scratch = Buffer.concat([scratch.subarray(0, at)], needed * 2);
    at += scratch.write(text, at);
  }
  // Nothing for nothing: an empty chunk would end the body.
  if (!chunked || at === headRoom) return Buffer.from(scratch.subarray(headRoom, at));
  const head = `${(at - headRoom).toString(16)}\r\n`;
  const from = headRoom - head.length;
  scratch.write(head, from, "latin1");
  at += scratch.write("\r\n", at, "latin1");
  return Buffer.from(scratch.subarray(from, at));
}

export function chunk(bytes: Buffer): Buffer {
  const head = Buffer.from(`${bytes.length.toString(16)}\r\n`, "latin1");
  return Buffer.concat([head, bytes, crlf]);
}

const crlf = Buffer.from("\r\n");

/** An unmasked, unfragmented text frame (RFC 6455, 5.2). */
export function websocketText(text: string): Buffer {
  const length = Buffer.byteLength(text);
  const headBytes = length < 126 ? 2 : length < 65536 ? 4 : 10;
  const frame = Buffer.allocUnsafe(headBytes + length);
  frame[0] = 0x81;
  if (headBytes === 2) frame[1] = length;
  else if (headBytes === 4) {
    frame[1] = 126;
    frame.writeUInt16BE(length, 2);
  } else {
    frame[1] = 127;
    frame.writeBigUInt64BE(BigInt(length), 2);
  }
  frame.write(text, headBytes);
  return frame;
}
