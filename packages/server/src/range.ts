// A range is a stretch of one log, read once and shared: its events, what they weigh, and the bytes that each
// wire makes of them.

import {
  type EncoderState,
  type EventType,
  endsRun,
  type Message,
  type StoredEvent,
} from "@runwire/protocol";
import { heldBytes } from "./held.js";
import { countOf, lineWeight, typeOf } from "./log/lines.js";
import { weightOf } from "./log/record.js";
import { between, type Stretch, stretchOf } from "./log/stretch.js";
import type { Wire } from "./wire.js";

/** Bytes by what may be skipped. */
export interface Weights {
  readonly all: number;
  readonly reasoning: number;
  readonly text: number;
}

export interface Range {
  /** Events (after, to]. */
  readonly after: number;
  readonly to: number;
  readonly stretch: Stretch;
  readonly last: StoredEvent;
  /** Whether its one event ends the run. */
  readonly terminal: boolean;
  readonly weights: Weights;
  readonly encoded: Map<string, Encoded & { readonly stateBytes: number }>;
  /** Tells whoever keeps it that more was made of it. */
  grown?: () => void;
}

export interface Encoded {
  readonly bytes: Buffer;
  /** How many messages these are. */
  readonly messages: number;
  readonly state: EncoderState;
}

export const noWeight: Weights = { all: 0, reasoning: 0, text: 0 };

/** Ranges of consecutive events; a terminal event gets one of its own, because the end is told per reader. */
export function toRanges(after: number, stretch: Stretch): readonly Range[] {
  const { last } = stretch;
  if (last === undefined) return [];
  if (!endsRun(last)) return [rangeOf(after, stretch, last, false)];
  const end = rangeOf(last.pos - 1, stretchOf([last]), last, true);
  const before = between(stretch, after, last.pos - 1);
  return before.last === undefined ? [end] : [rangeOf(after, before, before.last, false), end];
}

function rangeOf(after: number, stretch: Stretch, last: StoredEvent, terminal: boolean): Range {
  return { after, to: last.pos, last, stretch, terminal, weights: weigh(stretch), encoded: new Map() };
}

function weigh(stretch: Stretch): Weights {
  const weights = { all: 0, reasoning: 0, text: 0 };
  const add = (type: EventType, weight: number): void => {
    weights.all += weight;
    if (type === "reasoning.delta") weights.reasoning += weight;
    else if (type === "text.delta") weights.text += weight;
  };
  const { lines } = stretch;
  if (lines === undefined) for (const e of stretch.events) add(e.type, weightOf(e));
  else for (let i = 0; i < countOf(lines); i++) add(typeOf(lines, i), lineWeight(lines, i));
  return weights;
}

/** The part of a range that a reader inside it has not had; the range itself where it has had none. */
export function restOf(range: Range, cursor: number): Range {
  const { after, to, last, stretch, terminal } = range;
  return cursor === after ? range : rangeOf(cursor, between(stretch, cursor, to), last, terminal);
}

/** What events that are made of lines keep in memory, as a part of what they weigh. */
const madePart = 1.5;

/**
 * What it keeps in memory, about: itself, or the whole segment that its lines are of, and the events that were made of
 * them; what each wire made of it, and what that remembers. Before one has, it is counted as one that makes as much of it.
 */
export function rangeBytes({ stretch, weights, encoded }: Range): number {
  let bytes = stretch.lines?.bytes.length ?? weights.all;
  if (stretch.hasMadeEvents) bytes += madePart * weights.all;
  if (encoded.size === 0) bytes += weights.all;
  for (const { bytes: said, stateBytes } of encoded.values()) bytes += said.length + stateBytes;
  return bytes;
}

export function encode(range: Range, wire: Wire, state: EncoderState): Encoded {
  let made = range.encoded.get(wire.name);
  if (made === undefined) {
    const { lines } = range.stretch;
    const { bytes, ...others } =
      lines !== undefined && wire.frameLines !== undefined
        ? { ...wire.frameLines(lines), state }
        : encodeEvents(range.stretch.events, wire, state);
    made = { ...others, bytes: alone(bytes), stateBytes: heldBytes(others.state) };
    range.encoded.set(wire.name, made);
    range.grown?.();
  }
  return made;
}

/** Node cuts small buffers from slabs of 8 KB: of what is kept, a few hundred bytes would each keep one. */
export function alone(bytes: Buffer): Buffer {
  if (bytes.length === bytes.buffer.byteLength) return bytes;
  const own = Buffer.allocUnsafeSlow(bytes.length);
  bytes.copy(own);
  return own;
}

/** Messages up to the dialect's own number `heard` are left out. */
export function encodeEvents(
  events: readonly StoredEvent[],
  { dialect, frame }: Wire,
  first: EncoderState,
  heard = 0,
): Encoded {
  const messages: Message[] = [];
  let state = first;
  for (const e of events) {
    const [next, said] = dialect.step(state, e);
    state = next;
    for (const message of said) if (heard === 0 || Number(message.id) > heard) messages.push(message);
  }
  return { bytes: frame(messages), messages: messages.length, state };
}

/** The cursor of whoever has had this range, in the dialect's own number. */
export function numberAfter({ last }: Range, { dialect }: Wire, state: EncoderState): number {
  const { cursor } = dialect;
  return typeof cursor === "object" ? cursor.last(state) : last[cursor];
}

export function plus(a: Weights, b: Weights): Weights {
  return { all: a.all + b.all, reasoning: a.reasoning + b.reasoning, text: a.text + b.text };
}

export function minus(a: Weights, b: Weights): Weights {
  return { all: a.all - b.all, reasoning: a.reasoning - b.reasoning, text: a.text - b.text };
}
