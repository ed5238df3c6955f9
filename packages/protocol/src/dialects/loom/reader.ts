// Loom as its receivers need it: whatever came twice counts once, what came too early waits a little for what belongs
// before it, and the runs of a stream are told apart. What is right is folded into what each run has come to.

import type { Facts } from "../../events.js";
import { limits } from "../../limits.js";
import { isObject } from "../../parse.js";
import type { Violation } from "../../validate.js";
import { emptyRun, type LoomRun, readInto } from "./book.js";
import { isCount } from "./words.js";

export interface LoomReader {
  /** Takes a message as it came; answers those that are now in their order. */
  read(data: string): readonly Facts[];
  /** Lets go of what still waits: nothing will come before it any more. */
  end(): readonly Facts[];
  /** What the runs have come to, in the order in which they began. */
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
  /** The texts of those that were taken, to know them again. */
  readonly taken: Map<number, string>;
}

export function loomReader(): LoomReader {
  const runs: LoomRun[] = [];
  const problems: Violation[] = [];
  const streams = new Map<string, Stream>();

  function streamOf({ session_id }: Facts): Stream {
    const name = typeof session_id === "string" ? session_id : "";
    const known = streams.get(name);
    if (known !== undefined) return known;
    const fresh: Stream = { run: -1, last: null, ended: true, early: new Map(), taken: new Map() };
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
    // Without numbers, the order of the lines is all there is.
    if (!isCount(event_id)) return [take(stream, heard)];
    if (begins(stream, message, event_id, data)) {
      const rest = release(stream, Number.POSITIVE_INFINITY);
      begin(stream);
      return [...rest, take(stream, heard)];
    }
    if (stream.last !== null && event_id <= stream.last) {
      const before = stream.taken.get(event_id);
      if (before !== undefined && before !== data)
        problems.push({ rule: "LOOM-ORDER", what: `\`event_id\` ${event_id} came again as something else` });
      return [];
    }
    stream.early.set(event_id, stream.early.get(event_id) ?? heard);
    return release(stream, limits.messagesEarlyMax);
  }

  /** A run's first message: `run_start`, or, once a run has ended, a number that begins again. */
  function begins(stream: Stream, { type }: Facts, event_id: number, text: string): boolean {
    if (stream.last === null) return stream.early.size === 0;
    if (stream.taken.get(event_id) === text) return false;
    return event_id <= stream.last && (type === "run_start" || stream.ended);
  }

  function begin(stream: Stream): void {
    stream.last = null;
    stream.ended = false;
    stream.taken.clear();
    stream.run = runs.push(emptyRun) - 1;
  }

  /** In their order: those that follow at once, and the first ones where too many wait. */
  function release(stream: Stream, waitingMax: number): readonly Facts[] {
    const out: Facts[] = [];
    for (;;) {
      const next = Math.min(...stream.early.keys());
      const isNext = stream.last === null || next === stream.last + 1;
      if (!Number.isFinite(next)) return out;
      if (!isNext && waitingMax !== Number.POSITIVE_INFINITY && stream.early.size <= waitingMax) return out;
      const heard = stream.early.get(next) as Heard;
      stream.early.delete(next);
      out.push(take(stream, heard));
    }
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
    end: () => [...streams.values()].flatMap((stream) => release(stream, Number.POSITIVE_INFINITY)),
    get runs() {
      return runs;
    },
    get problems() {
      return problems;
    },
  };
}

function parsed(data: string): Facts | undefined {
  try {
    const value: unknown = JSON.parse(data);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
