// A wire read into logs, and logs said on a wire: what conversion is made of. One input may hold several runs, each of
// which is a log with numbers and an encoder of its own.
//
// What the wire had is kept: ids, times, numbers, the run's name. What it had not is made from what came before, so that
// the same input always gives the same logs; a time that nobody said is the last that was said, or the first there is.
//
// Checked by `laws/convert.test.ts` of the conformance kit.

import type { Dialect, EncoderState, Message } from "./dialect.js";
import { type Draft, type Event, endsRun, type Facts, is, isCore } from "./events.js";
import { idSource, isId } from "./ids.js";
import { limits } from "./limits.js";
import { parseWireDraft } from "./parse.js";
import { isFinal } from "./state.js";

export interface LogReader {
  /** The events of one message, each of the log that its `run_id` names. Throws as a decoder does. */
  read(data: string): readonly Event[];
  /** How many logs have begun. */
  readonly runs: number;
}

export interface LogWriter {
  /** What is said for an event; logs may come in turns. */
  say(e: Event): readonly Message[];
}

/** Where a log has got to. */
interface Place {
  readonly pos: number;
  readonly seq: number;
  readonly ts: string;
  readonly ended: boolean;
}

const firstPlace: Place = { pos: 0, seq: 0, ts: "1970-01-01T00:00:00.000Z", ended: false };

export function logReader(dialect: Dialect): LogReader {
  const decoder = dialect.decoder();
  const ids = idSource(() => 0);
  const places = recent<Place>();
  let current: string | undefined;
  /** By the decoder's count, and by ours. */
  let counted = 0;
  let runs = 0;

  /** The log that a draft belongs to; one that the wire does not name goes on, or is another where that has ended. */
  function logOf(draft: Draft, isNext: boolean): string {
    if (draft.run_id !== undefined) return draft.run_id;
    const place = current === undefined ? undefined : places.get(current);
    const isOver = decoder.runs === undefined && place?.ended === true;
    if (current !== undefined && !isNext && !isOver) return current;
    const { run_id } = draft.payload as Facts;
    if (is(draft, "turn.started") && isId(run_id) && places.get(run_id) === undefined) return run_id;
    return ids.next("run", Date.parse(draft.ts ?? firstPlace.ts));
  }

  function numbered(run_id: string, place: Place, draft: Draft): Event {
    const { type, payload, child_id = null, scope, ts = place.ts } = draft;
    const seq = draft.seq ?? place.seq + (isCore(type) ? 1 : 0);
    // A dialect without `pos` counts what it carries: there, a place in the log is its `seq`.
    const pos = draft.pos ?? Math.max(place.pos + 1, draft.seq ?? 0);
    const id = draft.id ?? ids.next("evt", Date.parse(ts));
    const event: Event = { id, ts, type, run_id, child_id, pos, seq, payload };
    places.set(run_id, { pos, seq, ts, ended: place.ended || endsRun(event) });
    return scope === undefined ? event : { ...event, scope };
  }

  function eventsOf(run_id: string, draft: Draft): readonly Event[] {
    const place = places.get(run_id);
    if (place !== undefined) return [numbered(run_id, place, draft)];
    runs += 1;
    if (begins(draft)) return [numbered(run_id, firstPlace, draft)];
    const { ts } = draft;
    const running: Draft = { type: "run.lifecycle", payload: { state: "running", reason: null } };
    const first = numbered(run_id, firstPlace, ts === undefined ? running : { ...running, ts });
    return [first, numbered(run_id, places.get(run_id) ?? firstPlace, draft)];
  }

  return {
    get runs() {
      return runs;
    },
    read(data) {
      const drafts = decoder.decode({ data }).map((draft) => checked(dialect, draft));
      const count = decoder.runs?.() ?? 0;
      const isNext = count > counted;
      counted = count;
      return drafts.flatMap((draft, i) => {
        current = logOf(draft, isNext && i === 0);
        return eventsOf(current, draft);
      });
    },
  };
}

export function logWriter(dialect: Dialect): LogWriter {
  const states = recent<{ readonly state: EncoderState }>();
  return {
    say(e) {
      const { state } = states.get(e.run_id) ?? { state: dialect.first };
      const [next, messages] = dialect.step(state, e);
      states.set(e.run_id, { state: next });
      return messages;
    },
  };
}

/** A part of a log may begin anywhere; a whole one with its first state. */
function begins(draft: Draft): boolean {
  if (draft.pos !== undefined || draft.seq !== undefined) return true;
  return draft.child_id == null && is(draft, "run.lifecycle") && !isFinal(draft.payload.state);
}

/** Decoders of a log check what they read; of the others it is made sure here that it can be an event. */
function checked(dialect: Dialect, draft: Draft): Draft {
  return typeof dialect.cursor === "string" ? draft : parseWireDraft(draft);
}

/** A map that forgets what nobody has touched for longest. */
function recent<T>(): { get(key: string): T | undefined; set(key: string, value: T): void } {
  const kept = new Map<string, T>();
  return {
    get: (key) => kept.get(key),
    set(key, value) {
      kept.delete(key);
      kept.set(key, value);
      if (kept.size <= limits.logsReadMax) return;
      for (const oldest of kept.keys()) return void kept.delete(oldest);
    },
  };
}
