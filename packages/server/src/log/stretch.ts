// A stretch of a log: consecutive events, as a store gives them. Where it holds them as lines, events are made for who
// asks for them; most readers of an old log are sent its lines as they are.

import type { StoredEvent } from "@runwire/protocol";
import { countOf, eventOf, type Lines, linesBetween } from "./lines.js";

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

/** Its events (after, to]. */
export function between(of: Stretch, after: number, to: number): Stretch {
  const { lines } = of;
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
