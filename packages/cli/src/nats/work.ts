// Requests that are at hand: those of one run in their order, so many at a time, and no more than fit. What NATS delivers
// is taken at once, because its library would keep all of it without a limit.

import type { Msg } from "@nats-io/transport-node";
import { type Clock, wait } from "@runwire/client";
import { RunwireError } from "@runwire/protocol";

export interface Work {
  take(run_id: string, msg: Msg): void;
  /** Resolves when all that was taken is done, or could not be for too long; what is left then is said. */
  done(): Promise<void>;
}

/** Does it in its turn. */
export type Turn = <T>(work: () => Promise<T>) => Promise<T>;

export interface WorkParts {
  readonly clock: Clock;
  say(line: string): void;
  /** What of it asks the server takes its turn; `onAway` is told where another try is waited for. */
  answer(run_id: string, msg: Msg, turn: Turn, onAway: (error: RunwireError) => void): Promise<object>;
}

/** Asked of the server at a time. */
const atOnceMax = 64;
/** Taken and not done, in messages and in bytes. */
export const waitingMax = 10_000;
const waitingBytesMax = 64 * 1024 * 1024;
/** For what is at hand when the bridge leaves. */
export const leaveMsMax = 5000;

export function openWork({ clock, say, answer }: WorkParts): Work {
  const turn = turns(atOnceMax);
  const lines = new Map<string, Promise<void>>();
  /** Why the first of a run's line waits. */
  const away = new Map<string, RunwireError>();
  let waiting = 0;
  let waitingBytes = 0;
  let droppedCount = 0;

  async function work(run_id: string, msg: Msg): Promise<void> {
    try {
      const told = await answer(run_id, msg, turn, (error) => away.set(run_id, error)).catch(
        (error: unknown) => {
          const known =
            error instanceof RunwireError ? error : new RunwireError("KAI-SERVER-BUG-0001", String(error));
          if (!msg.reply) say(`${run_id}: ${known.message} [${known.code}]`);
          return known.toJSON();
        },
      );
      if (msg.reply) msg.respond(JSON.stringify(told));
    } catch (error) {
      say(String(error));
    }
    away.delete(run_id);
    waiting -= 1;
    waitingBytes -= msg.data.length;
    if (waiting <= waitingMax / 2) tellDropped();
  }

  function drop(): void {
    if (droppedCount === 0) say(`${waiting} messages wait for the server; those that come now are dropped`);
    droppedCount += 1;
  }

  function tellDropped(): void {
    if (droppedCount > 0)
      say(`${droppedCount} messages were dropped, because too many waited for the server`);
    droppedCount = 0;
  }

  return {
    take(run_id, msg) {
      const isFull = waiting >= waitingMax || waitingBytes + msg.data.length > waitingBytesMax;
      const full = isFull ? new RunwireError("KAI-LIMIT-RATE-0001", `${waiting} messages wait`) : undefined;
      // Whoever asks for an answer is told at once, and may ask again.
      const refusal = full ?? (msg.reply ? away.get(run_id) : undefined);
      if (refusal !== undefined) {
        if (msg.reply) msg.respond(JSON.stringify(refusal));
        else drop();
        return;
      }
      waiting += 1;
      waitingBytes += msg.data.length;
      const done = (lines.get(run_id) ?? Promise.resolve())
        .then(() => work(run_id, msg))
        .then(() => {
          if (lines.get(run_id) === done) lines.delete(run_id);
        });
      lines.set(run_id, done);
    },
    async done() {
      const left = new AbortController();
      const late = wait(clock, leaveMsMax, left.signal).catch(() => {});
      await Promise.race([Promise.all(lines.values()), late]);
      left.abort();
      tellDropped();
      if (waiting > 0) say(`${waiting} messages are left undone: the server did not answer in time`);
    },
  };
}

function turns(max: number): Turn {
  const line: (() => void)[] = [];
  let free = max;
  return async (work) => {
    if (free > 0) free -= 1;
    else await new Promise<void>((resolve) => line.push(resolve));
    try {
      return await work();
    } finally {
      const next = line.shift();
      if (next === undefined) free += 1;
      else next();
    }
  };
}
