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
    const before: Facts[] = [];
    if (begins(stream, message, event_id, data)) {
      before.push(...release(stream, Number.POSITIVE_INFINITY));
      begin(stream);
    }
    const known = stream.taken.get(event_id) ?? stream.early.get(event_id)?.text;
    if (known !== undefined && known !== data)
      problems.push({ rule: "LOOM-ORDER", what: `\`event_id\` ${event_id} came again as something else` });
    if (known !== undefined || (stream.last !== null && event_id <= stream.last)) return [];
    stream.early.set(event_id, heard);
    return [...before, ...release(stream, limits.messagesEarlyMax)];
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
    stream.run = runs.push(emptyRun) - 1;
  }

  /** In their order: those that follow at once, and the first ones where too many wait. */
  function release(stream: Stream, waitingMax: number): readonly Facts[] {
    const out: Facts[] = [];
    for (;;) {
      const next = Math.min(...stream.early.keys());
      const isNext = stream.last === null ? isFirst(stream, next) : next === stream.last + 1;
      if (!Number.isFinite(next)) return out;
      if (!isNext && waitingMax !== Number.POSITIVE_INFINITY && stream.early.size <= waitingMax) return out;
      const heard = stream.early.get(next) as Heard;
      stream.early.delete(next);
      out.push(take(stream, heard));
    }
  }

  /** A run's first message; or, once its end has come, the first that came: who listens from its middle on has no other. */
  function isFirst({ early }: Stream, event_id: number): boolean {
    const isStart = event_id <= 1 || early.get(event_id)?.message.type === "run_start";
    return isStart || [...early.values()].some(({ message }) => endsRun(message));
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

function endsRun({ type }: Facts): boolean {
  return typeof type !== "string" || type === "run_error";
}

function parsed(data: string): Facts | undefined {
  try {
    const value: unknown = JSON.parse(data);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
