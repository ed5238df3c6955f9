// One run's place in its log. Numbers are gapless, so what an entry is follows from its number alone, but
// for one question: a number already read is either a duplicate or the log was reset, and its id tells.
//
//   read so far  1 2 3 4 5          cursor 5
//   6            the next
//   8            a gap: 6 and 7 were not sent
//   4, same id   seen, after a reconnect
//   4, other id  reset: this is another log, and what was read of the old one no longer holds

import { limits } from "./limits.js";

interface Numbered {
  readonly at: number;
  readonly id: string;
}

export interface Track {
  /** The last number read; 0 for none. */
  readonly cursor: number;
  /** Whether the run's terminal event was read. */
  ended: boolean;
  judge(entry: Numbered): "next" | "seen" | "gap" | "reset";
  accept(entry: Numbered): void;
  /** Goes on after this number, as from a snapshot or over a gap. */
  moveTo(cursor: number): void;
}

export function track(after: number): Track {
  let cursor = after;
  const ids = new Map<number, string>();
  return {
    ended: false,
    get cursor() {
      return cursor;
    },
    judge({ at, id }) {
      if (at === cursor + 1) return "next";
      if (at > cursor) return "gap";
      // An id that is no longer remembered counts as another: folding anew is always right.
      return ids.get(at) === id ? "seen" : "reset";
    },
    accept({ at, id }) {
      cursor = at;
      ids.set(at, id);
      ids.delete(at - limits.idsKept);
    },
    moveTo(to) {
      cursor = to;
    },
  };
}
