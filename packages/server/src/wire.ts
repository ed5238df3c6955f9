// A wire is a dialect in a framing: what turns events into the bytes of one kind of connection. Bytes are made
// once per range of events and shared by all its readers.

import { type Dialect, isOfLog, type LogDialect, type Message, sseHead, sseTail } from "@runwire/protocol";
import { countOf, endOf, type Lines, payloadEndOf, seqOf, startOf, typeOf } from "./log/lines.js";

export interface Wire {
  /** Tells apart what may not share bytes. */
  readonly name: string;
  readonly dialect: Dialect;
  readonly framing: Framing;
  frame(messages: readonly Message[]): Buffer;
  /** The same of stored lines, where they are what the dialect says. */
  readonly frameLines?: (lines: Lines) => { readonly bytes: Buffer; readonly messages: number };
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
  const text = texts[framing];
  const frame =
    text === undefined
      ? (messages: readonly Message[]) => Buffer.concat(messages.map(({ data }) => websocketText(data)))
      : (messages: readonly Message[]) => bytesOf(messages, text, chunked);
  if (!isOfLog(dialect)) return { name, dialect, framing, frame };
  const head =
    text === undefined
      ? (_: string, dataBytes: number) => websocketHead(dataBytes)
      : (id: string) => text.head({ id });
  const tail = text?.tail ?? "";
  return {
    name,
    dialect,
    framing,
    frame,
    frameLines: (lines) => ofLines(lines, dialect, head, tail, chunked),
  };
}

interface TextFraming {
  head(message: Omit<Message, "data">): string;
  readonly tail: string;
}

const texts: { readonly [F in Framing]: TextFraming | undefined } = {
  sse: { head: sseHead, tail: sseTail },
  // Several runs share the connection; its cursor is a block of its own.
  "sse-mux": { head: ({ id: _, ...message }) => sseHead(message), tail: sseTail },
  ndjson: { head: () => "", tail: "\n" },
  websocket: undefined,
  // None of the three holds a tab or a line break where the next one begins.
  "in-process": { head: ({ id = "", event = "" }) => `${id}\t${event}\t`, tail: "\n" },
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

// Messages are written into one scratch buffer and copied out once: joining the strings first costs half as much
// again. HTTP/1.1 chunk framing is `<size in hex>\r\n<bytes>\r\n`; the room for its head is kept in front.
const scratchBytes = 1024 * 1024;
const scratchBytesMax = 4 * scratchBytes;
let scratch = Buffer.allocUnsafe(scratchBytes);
const headRoom = 16;

function bytesOf(messages: readonly Message[], { head, tail }: TextFraming, chunked: boolean): Buffer {
  let at = headRoom;
  for (const message of messages) {
    const text = `${head(message)}${message.data}${tail}`;
    // No character takes more than three bytes a unit; those of a long text, like a snapshot's, are worth counting.
    makeRoom(at, text.length < scratchBytes ? text.length * 3 : Buffer.byteLength(text));
    at += scratch.write(text, at);
  }
  return copied(at, chunked);
}

function ofLines(
  lines: Lines,
  { carries, cursor, says }: LogDialect,
  head: (id: string, dataBytes: number) => string,
  tail: string,
  chunked: boolean,
): { readonly bytes: Buffer; readonly messages: number } {
  let at = headRoom;
  let messages = 0;
  for (let i = 0; i < countOf(lines); i++) {
    if (carries !== "all" && !carries.has(typeOf(lines, i))) continue;
    const start = startOf(lines, i);
    const end = says === "line" ? endOf(lines, i) : payloadEndOf(lines, i);
    const close = says === "line" ? "" : "}";
    const number = cursor === "pos" ? lines.firstPos + i : seqOf(lines, i);
    const before = head(String(number), end - start + close.length);
    makeRoom(at, before.length + end - start + close.length + tail.length);
    at = writeBytes(before, at);
    lines.bytes.copy(scratch, at, start, end);
    at = writeBytes(tail, writeBytes(close, at + end - start));
    messages += 1;
  }
  return { bytes: copied(at, chunked), messages };
}

function makeRoom(at: number, bytes: number): void {
  const needed = at + bytes + 2;
  if (needed <= scratch.length) return;
  const larger = Buffer.allocUnsafe(needed * 2);
  scratch.copy(larger, 0, 0, at);
  scratch = larger;
}

/** A character a byte; for a few of them a call of Node's costs more. */
function writeBytes(text: string, from: number): number {
  let at = from;
  for (let i = 0; i < text.length; i++) scratch[at++] = text.charCodeAt(i);
  return at;
}

function copied(end: number, chunked: boolean): Buffer {
  // Nothing for nothing: an empty chunk would end the body.
  if (!chunked || end === headRoom) return takeOut(headRoom, end);
  const head = `${(end - headRoom).toString(16)}\r\n`;
  const from = headRoom - head.length;
  writeBytes(head, from);
  return takeOut(from, writeBytes("\r\n", end));
}

function takeOut(from: number, to: number): Buffer {
  const bytes = Buffer.from(scratch.subarray(from, to));
  // What a single large message needed is not kept for the small ones that follow.
  if (scratch.length > scratchBytesMax) scratch = Buffer.allocUnsafe(scratchBytes);
  return bytes;
}

export function chunk(bytes: Buffer): Buffer {
  const head = Buffer.from(`${bytes.length.toString(16)}\r\n`, "latin1");
  return Buffer.concat([head, bytes, crlf]);
}

const crlf = Buffer.from("\r\n");

/** An unmasked, unfragmented text frame (RFC 6455, 5.2). */
export function websocketText(text: string): Buffer {
  const head = websocketHead(Buffer.byteLength(text));
  return Buffer.concat([Buffer.from(head, "latin1"), Buffer.from(text)]);
}

/** A character a byte. */
function websocketHead(dataBytes: number): string {
  if (dataBytes < 126) return String.fromCharCode(0x81, dataBytes);
  if (dataBytes < 65536) return String.fromCharCode(0x81, 126, dataBytes >> 8, dataBytes & 0xff);
  const length = [0, 0, 0, 0, dataBytes >>> 24, dataBytes >>> 16, dataBytes >>> 8, dataBytes];
  return String.fromCharCode(0x81, 127, ...length.map((byte) => byte & 0xff));
}
