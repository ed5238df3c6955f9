// A wire is a dialect in a framing: what turns events into the bytes of one kind of connection. Bytes are made
// once per range of events and shared by all its readers.

import { type Dialect, type Message, sseFrame } from "@runwire/protocol";

export interface Wire {
  /** Tells apart what may not share bytes. */
  readonly name: string;
  readonly dialect: Dialect;
  frame(messages: readonly Message[]): Buffer;
}

export type Framing = "sse" | "sse-mux" | "ndjson" | "websocket";

/** `chunked` puts HTTP/1.1 chunk framing around the bytes, so that one socket write sends them. */
export function wire(dialect: Dialect, framing: Framing, chunked: boolean): Wire {
  const frame = frames[framing];
  return {
    name: `${dialect.name}/${framing}${chunked ? "/chunked" : ""}`,
    dialect,
    frame: (messages) => (chunked ? chunk(frame(messages)) : frame(messages)),
  };
}

const frames: { readonly [F in Framing]: (messages: readonly Message[]) => Buffer } = {
  sse: (messages) => Buffer.from(joinLines(messages, sseFrame)),
  // Several runs share the connection; its cursor is a block of its own.
  "sse-mux": (messages) => Buffer.from(joinLines(messages, ({ id: _, ...message }) => sseFrame(message))),
  ndjson: (messages) => Buffer.from(joinLines(messages, ({ data }) => `${data}\n`)),
  websocket: (messages) => Buffer.concat(messages.map(({ data }) => websocketText(data))),
};

function joinLines(messages: readonly Message[], line: (message: Message) => string): string {
  let text = "";
  for (const message of messages) text += line(message);
  return text;
}

/** HTTP/1.1: `<size in hex>\r\n<bytes>\r\n`. Nothing for nothing: an empty chunk would end the body. */
export function chunk(bytes: Buffer): Buffer {
  if (bytes.length === 0) return bytes;
  const head = Buffer.from(`${bytes.length.toString(16)}\r\n`, "latin1");
  return Buffer.concat([head, bytes, crlf]);
}

const crlf = Buffer.from("\r\n");

/** An unmasked, unfragmented text frame (RFC 6455, 5.2). */
function websocketText(text: string): Buffer {
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
