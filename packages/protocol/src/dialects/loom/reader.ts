// Loom as its receivers need it: whatever came twice counts once, what came too early waits a little for what belongs
// before it, and the runs of a stream are told apart. What is right is folded into what each run has come to.
//
// What comes before the first message of a run is either that run's, and came too early, or the rest of another, whose
// beginning nobody has heard. It is shown at once, and waits until that is known:
//
//   3 1 2 4    a later message of the run comes, or it comes again with the rest: it is of this run
//   3 1 2 3'   its number comes as something else, or the run or the stream ends before it: it is of another

import type { Facts } from "../../events.js";
import { limits } from "../../limits.js";
import { isCount, isObject } from "../../parse.js";
import type { Violation } from "../../validate.js";
import { emptyRun, type LoomRun, readInto } from "./book.js";
import { wordOf } from "./words.js";

export interface LoomReader {
  /** Takes a message as it came; answers those that are now in their order. */
  read(data: string): readonly Facts[];
  /** Lets go of what still waits: nothing will come before it any more. */
  end(): readonly Facts[];
  /** What the runs have come to, in the order in which they began, with what waits only for what comes after it. */
  readonly runs: readonly LoomRun[];
  /** What was not JSON, and what came again as something else; neither is part of a run. */
  readonly problems: readonly Violation[];
}

interface Heard {
  readonly message: Facts;
  readonly text: string;
}

/** One session's messages; the runs of a session follow each other. */
interface Stream {
  run: number;
  last: number | null;
  ended: boolean;
  /** Those that came too early, by `event_id`. */
  readonly early: Map<number, Heard>;
  /** Those of them that came before the run's first message, and may be of another run. */
  before: Set<number>;
  /** The texts of those that were taken, to know them again. */
  readonly taken: Map<number, string>;
  /** Those of an ended run that came again, from its first on: the next run may begin as it did. */
  again: Heard[];
}

export function loomReader(): LoomReader {
  const runs: LoomRun[] = [];
  const problems: Violation[] = [];
  const streams = new Map<string, Stream>();

  function streamOf({ session_id }: Facts): Stream {
    const name = typeof session_id === "string" ? session_id : "";
    const known = streams.get(name);
    if (known !== undefined) return known;
    const fresh: Stream = {
      ...{ run: -1, last: null, ended: true },
      ...{ early: new Map(), before: new Set(), taken: new Map(), again: [] },
    };
    streams.set(name, fresh);
    return fresh;
  }

  function read(data: string): readonly Facts[] {
    const message = parsed(data);
    if (message === undefined) {
      problems.push({ rule: "LOOM-JSON", what: "it is not a JSON object" });
      return [];
    }
    const stream = streamOf(message);
    const heard: Heard = { message, text: data };
    const { event_id } = message;
    // Without numbers, the order of the lines is all there is; an end is that of what waits, too.
    if (!isCount(event_id)) {
      const isNext = stream.run >= 0 && stream.ended && isOfRun(message);
      const before = isNext || endsRun(message) ? settle(stream) : [];
      if (isNext) begin(stream);
      return [...before, take(stream, heard)];
    }
    if (!begins(stream, message, event_id, data)) {
      noteAgain(stream, heard, event_id);
      return place(stream, heard, event_id);
    }
    const same = isAfterThose(stream.again, event_id) ? stream.again : [];
    const left = settle(stream);
    begin(stream);
    const first = event_id - same.length;
    return [...left, ...[...same, heard].flatMap((one, i) => place(stream, one, first + i))];
  }

  function place(stream: Stream, heard: Heard, event_id: number): readonly Facts[] {
    const out: Facts[] = [];
    const { text } = heard;
    const waiting = stream.early.get(event_id)?.text;
    if (waiting !== undefined && waiting !== text) out.push(...part(stream, othersThan(stream, event_id)));
    const known = stream.taken.get(event_id) ?? stream.early.get(event_id)?.text;
    if (known !== undefined && known !== text)
      problems.push({ rule: "LOOM-ORDER", what: `\`event_id\` ${event_id} came again as something else` });
    else if (stream.last === null || event_id > stream.last) {
      stream.early.set(event_id, heard);
      stream.before.delete(event_id);
      out.push(...release(stream, limits.messagesEarlyMax));
      if (stream.ended) out.push(...part(stream, strangers(stream)));
    }
    return out;
  }

  /** A run's first message that comes: `run_start`, or, once a run has ended, a number that begins again. */
  function begins(stream: Stream, { type }: Facts, event_id: number, text: string): boolean {
    if (stream.last === null) return stream.early.size === 0;
    if (stream.taken.get(event_id) === text) return false;
    return event_id <= stream.last && (type === "run_start" || stream.ended);
  }

  function begin(stream: Stream): void {
    stream.last = null;
    stream.ended = false;
    stream.taken.clear();
    stream.before.clear();
    stream.again = [];
    stream.run = runs.push(emptyRun) - 1;
  }

  /** Nothing comes any more before what waits. */
  function settle(stream: Stream): readonly Facts[] {
    return [...part(stream, strangers(stream)), ...release(stream, Number.POSITIVE_INFINITY)];
  }

  /** Those that came before the run's first message, and that no later one of the run comes after. */
  function strangers({ early, before }: Stream): readonly number[] {
    const last = Math.max(...[...early.keys()].filter((number) => !before.has(number)));
    return [...before].filter((number) => number > last);
  }

  /** Those that wait and are of another run than a message that has the number of one of them. */
  function othersThan({ early, before, last }: Stream, event_id: number): readonly number[] {
    if (last !== null) return before.has(event_id) ? [...before] : [];
    // Neither run has its first message. In the order in which they came: what then counts from further down is of the next.
    const numbers = [...early.keys()];
    const at = numbers.indexOf(event_id);
    return numbers.filter((number, i) => i <= at || number > event_id);
  }

  /** Makes a run of some that wait, before the one that they waited for. */
  function part(stream: Stream, numbers: readonly number[]): readonly Facts[] {
    const messages = inOrder(stream, numbers);
    if (messages.length === 0) return [];
    for (const number of numbers) {
      stream.early.delete(number);
      stream.before.delete(number);
    }
    const at = stream.run;
    runs.splice(at, 0, messages.reduce(readInto, emptyRun));
    for (const other of streams.values()) if (other.run >= at) other.run += 1;
    return messages;
  }

  /** In their order: those that follow at once, and the first ones where too many wait. */
  function release(stream: Stream, waitingMax: number): readonly Facts[] {
    const out: Facts[] = [];
    for (;;) {
      const next = Math.min(...stream.early.keys());
      if (!Number.isFinite(next)) return out;
      const isNext = stream.last === null ? isFirst(stream, next) : isAfter(stream, stream.last, next);
      if (!isNext && waitingMax !== Number.POSITIVE_INFINITY && stream.early.size <= waitingMax) return out;
      const heard = stream.early.get(next) as Heard;
      stream.early.delete(next);
      stream.before.delete(next);
      if (stream.last === null && isStart(heard.message)) stream.before = new Set(stream.early.keys());
      out.push(take(stream, heard));
    }
  }

  /** A run's first message; or, once its end has come, the first that came: who listens from its middle on has no other. */
  function isFirst({ early }: Stream, event_id: number): boolean {
    const all = [...early.values()].map(({ message }) => message);
    return all.some(endsRun) || all.some((message) => message.event_id === event_id && isStart(message));
  }

  function isAfter(stream: Stream, last: number, event_id: number): boolean {
    return event_id === last + 1 && !strangers(stream).includes(event_id);
  }

  function take(stream: Stream, { message, text }: Heard): Facts {
    if (stream.run < 0 || (stream.ended && message.type === "run_start")) begin(stream);
    if (isCount(message.event_id)) {
      stream.last = message.event_id;
      stream.taken.set(message.event_id, text);
      const [oldest] = stream.taken.keys();
      if (stream.taken.size > limits.messagesSeenMax && oldest !== undefined) stream.taken.delete(oldest);
    }
    const run = readInto(runs[stream.run] ?? emptyRun, message);
    runs[stream.run] = run;
    stream.ended = run.state !== "running";
    return message;
  }

  return {
    read,
    end: () => [...streams.values()].flatMap(settle),
    get runs() {
      const shown = [...runs];
      for (const stream of streams.values()) {
        const messages = inOrder(stream, following(stream));
        if (messages.length > 0) shown[stream.run] = messages.reduce(readInto, shown[stream.run] ?? emptyRun);
      }
      return shown;
    },
    get problems() {
      return problems;
    },
  };
}

/** What comes again, one after the other. All of a run up to its end is that run again, and no other. */
function noteAgain(stream: Stream, heard: Heard, event_id: number): void {
  const { again, taken, ended } = stream;
  const { message, text } = heard;
  const isAgain = ended && taken.get(event_id) === text && !endsRun(message);
  const first = again[0]?.message.event_id;
  if (isAgain && isAfterThose(again, event_id)) again.push(heard);
  else if (isAgain && isCount(first) && event_id >= first && event_id < first + again.length) return;
  else stream.again = isAgain && isStart(message) ? [heard] : [];
}

function isAfterThose(again: readonly Heard[], event_id: number): boolean {
  return again.at(-1)?.message.event_id === event_id - 1;
}

/** Those that wait with nothing missing before them, as far as anybody knows. */
function following({ early, last }: Stream): readonly number[] {
  const numbers = [...early.keys()].toSorted((a, b) => a - b);
  return last === null ? numbers : numbers.filter((number, i) => number === last + 1 + i);
}

function inOrder({ early }: Stream, numbers: readonly number[]): readonly Facts[] {
  return numbers
    .toSorted((a, b) => a - b)
    .flatMap((number) => {
      const heard = early.get(number);
      return heard === undefined ? [] : [heard.message];
    });
}

function isStart({ type, event_id }: Facts): boolean {
  return type === "run_start" || Number(event_id) <= 1;
}

function endsRun({ type }: Facts): boolean {
  return typeof type !== "string" || type === "run_error";
}

/** What else a connection says, such as a pong, is of no run. */
function isOfRun(message: Facts): boolean {
  return wordOf(message.type) !== undefined || typeof message.reply === "string";
}

function parsed(data: string): Facts | undefined {
  try {
    const value: unknown = JSON.parse(data);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
