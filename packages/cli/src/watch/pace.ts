// A recorded timeline at its own pace. Nobody waits for what took long: such a gap is shortened, and said.

import { type Clock, wait } from "@runwire/client";
import type { Event } from "@runwire/protocol";

export interface Pace {
  /** How many times as fast; infinite for no waiting at all. */
  readonly speed: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

export interface Paced {
  readonly event: Event;
  /** What had passed before it, where that was shortened. */
  readonly laterMs: number | null;
}

/** The longest that anybody waits for an event. */
export const gapMsMax = 3000;

export function pauseOf(passedMs: number, speed: number): { readonly waitMs: number; readonly cut: boolean } {
  if (speed === Number.POSITIVE_INFINITY || !(passedMs > 0)) return { waitMs: 0, cut: false };
  const waitMs = passedMs / speed;
  return waitMs > gapMsMax ? { waitMs: gapMsMax, cut: true } : { waitMs, cut: false };
}

/** Each event when its time has come. A run's clock begins with its first event. */
export async function* paced(
  events: AsyncIterable<Event>,
  { speed, clock, signal }: Pace,
): AsyncGenerator<Paced, void> {
  let last: Event | undefined;
  // Waits add up to the recorded time, whatever drawing costs and timers round.
  let owedMs = 0;
  let readyMs = clock.nowMs();
  for await (const event of events) {
    signal.throwIfAborted();
    const isSame = last?.run_id === event.run_id;
    const passedMs = last !== undefined && isSame ? Date.parse(event.ts) - Date.parse(last.ts) : 0;
    const { waitMs, cut } = pauseOf(passedMs, speed);
    owedMs += waitMs;
    const leftMs = owedMs - (clock.nowMs() - readyMs);
    if (leftMs >= 1) await wait(clock, leftMs, signal);
    if (waitMs > 0) [readyMs, owedMs] = [clock.nowMs(), Math.min(0, leftMs)];
    last = event;
    yield { event, laterMs: cut ? passedMs : null };
  }
}
