// A stretch of a log: consecutive events, as a store gives them. Where it holds them as lines, or as records, events are
// made for who asks for them; most readers of an old log are sent its lines as they are.

import type { StoredEvent, View } from "@runwire/protocol";
import { countOf, eventOf, type Lines, linesBetween } from "./lines.js";
import { eventIn, type Record } from "./record.js";

export interface Stretch {
  readonly events: readonly StoredEvent[];
  readonly last: StoredEvent | undefined;
  readonly lines: Lines | undefined;
  /** Whether it keeps events beside its lines, because somebody has asked for them. */
  readonly hasMadeEvents: boolean;
}

export function stretchOf(events: readonly StoredEvent[]): Stretch {
  return { events, last: events.at(-1), lines: undefined, hasMadeEvents: false };
}

export const nothing = stretchOf([]);

export function stretchOfLines(lines: Lines): Stretch {
  return new LineStretch(lines);
}

/** Of one log and view, which all of them are in, without a gap. */
export function stretchOfRecords(records: readonly Record[], log: string, view: View): Stretch {
  return new RecordStretch(records, log, view);
}

/** Its events (after, to]. */
export function between(of: Stretch, after: number, to: number): Stretch {
  const { lines } = of;
  if (of instanceof RecordStretch) return of.between(after, to);
  if (lines === undefined) return stretchOf(of.events.filter(({ pos }) => pos > after && pos <= to));
  return new LineStretch(linesBetween(lines, after, to));
}

class LineStretch implements Stretch {
  #events: readonly StoredEvent[] | undefined;

  constructor(readonly lines: Lines) {}

  get events(): readonly StoredEvent[] {
    this.#events ??= Array.from({ length: countOf(this.lines) }, (_, i) => eventOf(this.lines, i));
    return this.#events;
  }

  get hasMadeEvents(): boolean {
    return this.#events !== undefined;
  }

  get last(): StoredEvent | undefined {
    const count = countOf(this.lines);
    return count === 0 ? undefined : eventOf(this.lines, count - 1);
  }
}

/** Keeps no events: the records are there anyway, and whoever reads it says each event once. */
class RecordStretch implements Stretch {
  readonly lines = undefined;
  readonly hasMadeEvents = false;

  constructor(
    readonly records: readonly Record[],
    readonly log: string,
    readonly view: View,
  ) {}

  get events(): readonly StoredEvent[] {
    return this.records.map((record) => eventIn(record, this.log, this.view));
  }

  get last(): StoredEvent | undefined {
    const last = this.records.at(-1);
    return last && eventIn(last, this.log, this.view);
  }

  between(after: number, to: number): RecordStretch {
    const first = (this.last?.pos ?? 0) - this.records.length + 1;
    const records = this.records.slice(Math.max(0, after + 1 - first), Math.max(0, to + 1 - first));
    return new RecordStretch(records, this.log, this.view);
  }
}
