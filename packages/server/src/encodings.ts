// Where a dialect that numbers its messages itself stands in a log. An encoder's state is a function of the log, so it
// is folded; marks on the way keep whoever comes back from folding a long run from its beginning each time.

import type { Dialect, EncoderState, View } from "@runwire/protocol";
import { heldBytes, heldBytesMax } from "./held.js";
import { readBytesMax } from "./reading.js";
import type { RunKey, Store } from "./store.js";

export interface Encodings {
  /** The state after the event at this position. */
  at(key: RunKey, view: View, dialect: Dialect, pos: number): Promise<EncoderState>;
  /**
   * As far as a log goes without saying a message of a higher number; undefined where it has never said that many. The
   * event that follows may say some that the client has had, and some that it has not.
   */
  upTo(key: RunKey, view: View, dialect: Dialect, number: number): Promise<Mark | undefined>;
  /** Runs of this tenant were erased: a state may remember what they said. */
  forget(tenant: string): void;
}

export interface Mark {
  readonly pos: number;
  readonly state: EncoderState;
}

/** Of all runs together. A state is some hundred bytes, or as large as an event that it remembers. */
const marksBytesMax = 4 * heldBytesMax;
/** Events between two of them: whoever writes in small steps asks at each, and would leave one each time. */
const marksApart = 512;

/** Those of one log in one dialect. */
interface Marks {
  bytes: number;
  readonly list: (Mark & { readonly bytes: number })[];
}

export function encodings(store: Store): Encodings {
  const kept = new Map<string, Marks>();
  let bytes = 0;

  function marksOf(name: string): Marks {
    const known = kept.get(name) ?? { bytes: 2 * name.length, list: [] };
    // Those that were asked for last are forgotten last.
    forget(name);
    kept.set(name, known);
    bytes += known.bytes;
    forgetOldest();
    return known;
  }

  function keep(name: string, known: Marks, mark: Mark): void {
    const { list } = known;
    // Forgotten while this fold waited: what is put there now nobody would find, or count down.
    if (kept.get(name) !== known || mark.pos <= (list.at(-1)?.pos ?? 0)) return;
    const markBytes = heldBytes(mark.state);
    if (markBytes >= heldBytesMax) return;
    const isNear = mark.pos - (list.at(-2)?.pos ?? 0) < marksApart;
    const replaced = isNear ? list.pop() : undefined;
    const added = markBytes - (replaced?.bytes ?? 0);
    list.push({ ...mark, bytes: markBytes });
    known.bytes += added;
    bytes += added;
    forgetOldest();
  }

  function forget(name: string): void {
    bytes -= kept.get(name)?.bytes ?? 0;
    kept.delete(name);
  }

  function forgetOldest(): void {
    for (const oldest of kept.keys()) {
      if (bytes <= marksBytesMax) break;
      forget(oldest);
    }
  }

  /** Folds for as long as `goesOn` says so of the mark after an event. */
  async function fold(
    key: RunKey,
    view: View,
    dialect: Dialect,
    goesOn: (mark: Mark) => boolean,
  ): Promise<Mark> {
    const name = `${key.tenant}/${key.run_id}/${view}/${dialect.name}`;
    const known = marksOf(name);
    let at: Mark = known.list.findLast(goesOn) ?? { pos: 0, state: dialect.first };
    for (;;) {
      const { events } = await store.read(key, view, at.pos, readBytesMax);
      if (events.length === 0) return at;
      for (const e of events) {
        const next = { pos: e.pos, state: dialect.step(at.state, e)[0] };
        if (!goesOn(next)) return at;
        at = next;
      }
      keep(name, known, at);
    }
  }

  return {
    at: async (key, view, dialect, pos) => (await fold(key, view, dialect, (mark) => mark.pos <= pos)).state,
    async upTo(key, view, dialect, number) {
      const { cursor } = dialect;
      if (typeof cursor === "string") throw new Error(`${dialect.name} does not number its messages`);
      let isBeyond = false;
      const mark = await fold(key, view, dialect, ({ state }) => {
        isBeyond = cursor.last(state) > number;
        return !isBeyond;
      });
      return isBeyond || cursor.last(mark.state) === number ? mark : undefined;
    },
    forget(tenant) {
      for (const name of kept.keys()) if (name.startsWith(`${tenant}/`)) forget(name);
    },
  };
}
