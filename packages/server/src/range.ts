// A range is a stretch of one log, read once and shared: its events, what they weigh, and the bytes that each
// wire makes of them.

import { type EncoderState, endsRun, type Message, type StoredEvent } from "@runwire/protocol";
import { weightOf } from "./log/record.js";
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
  readonly events: readonly StoredEvent[];
  /** Whether its one event ends the run. */
  readonly terminal: boolean;
  readonly weights: Weights;
  readonly encoded: Map<string, Encoded>;
}

export interface Encoded {
  readonly bytes: Buffer;
  /** How many messages these are. */
  readonly messages: number;
  readonly state: EncoderState;
}

export const noWeight: Weights = { all: 0, reasoning: 0, text: 0 };

/** Ranges of consecutive events; a terminal event gets one of its own, because the end is told per reader. */
export function toRanges(after: number, events: readonly StoredEvent[]): readonly Range[] {
  const last = events.at(-1);
  if (last === undefined) return [];
  if (!endsRun(last)) return [rangeOf(after, events, false)];
  const end = rangeOf(last.pos - 1, [last], true);
  return events.length === 1 ? [end] : [rangeOf(after, events.slice(0, -1), false), end];
}

function rangeOf(after: number, events: readonly StoredEvent[], terminal: boolean): Range {
  let all = 0;
  let reasoning = 0;
  let text = 0;
  for (const e of events) {
    const weight = weightOf(e);
    all += weight;
    if (e.type === "reasoning.delta") reasoning += weight;
    else if (e.type === "text.delta") text += weight;
  }
  const to = events.at(-1)?.pos ?? after;
  return { after, to, events, terminal, weights: { all, reasoning, text }, encoded: new Map() };
}

/** The part of a range that a reader inside it has not had; the range itself where it has had none. */
export function restOf(range: Range, cursor: number): Range {
  if (cursor === range.after) return range;
  return rangeOf(
    cursor,
    range.events.filter((e) => e.pos > cursor),
    range.terminal,
  );
}

export function encode(range: Range, wire: Wire, state: EncoderState): Encoded {
  let made = range.encoded.get(wire.name);
  if (made === undefined) {
    made = encodeEvents(range.events, wire, state);
    range.encoded.set(wire.name, made);
  }
  return made;
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
export function numberAfter({ events }: Range, { dialect }: Wire, state: EncoderState): number {
  const { cursor } = dialect;
  return typeof cursor === "object" ? cursor.last(state) : (events.at(-1)?.[cursor] ?? 0);
}

export function plus(a: Weights, b: Weights): Weights {
  return { all: a.all + b.all, reasoning: a.reasoning + b.reasoning, text: a.text + b.text };
}

export function minus(a: Weights, b: Weights): Weights {
  return { all: a.all - b.all, reasoning: a.reasoning - b.reasoning, text: a.text - b.text };
}
