// A recorded run on the terminal, with the lines that `tail` has. What goes on is drawn for the moment that is shown.

import type { Clock } from "@runwire/client";
import { type Event, is } from "@runwire/protocol";
import type { Line } from "./line.js";
import { ruleOf } from "./lines.js";
import { liveLines, wheelMs } from "./live.js";
import { type Paced, paced } from "./pace.js";
import { render } from "./render.js";
import type { Screen } from "./screen.js";
import { firstTimeline, type Manner, type Timeline } from "./timeline.js";
import { durationWords } from "./words.js";

export interface PlayOptions {
  readonly screen: Screen;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly speed: number;
  /** Whether what goes on is drawn. */
  readonly live: boolean;
  readonly full: boolean;
  readonly children: "show" | "hide";
}

export async function play(shown: AsyncIterable<Shown>, options: PlayOptions): Promise<void> {
  const { screen, clock, speed, live } = options;
  // Nobody is asked here, so nobody is told how to answer.
  const manner = (): Manner => ({ ...options, prompts: true, columns: screen.columns });
  let timeline: Timeline | undefined;
  let lines: Line[] = [];
  let eventMs = 0;
  let seenMs = clock.nowMs();
  let cancelTick = (): void => {};

  function draw(): void {
    const nowMs = eventMs + (speed === Number.POSITIVE_INFINITY ? 0 : (clock.nowMs() - seenMs) * speed);
    screen.draw(lines, timeline === undefined || !live ? [] : liveLines(timeline, nowMs, manner()), false);
    lines = [];
  }

  function tick(): void {
    draw();
    cancelTick = clock.after(wheelMs, tick);
  }

  if (live) tick();
  try {
    for await (const { event, laterMs, isPast } of shown) {
      const before: Timeline = timeline?.run_id === event.run_id ? timeline : firstTimeline(event.run_id);
      const rendered = render(before, { kind: "event", event }, manner());
      timeline = rendered.timeline;
      [eventMs, seenMs] = [Date.parse(event.ts), clock.nowMs()];
      if (isPast) continue;
      if (laterMs !== null) lines.push(ruleOf(`${durationWords(laterMs)} later`));
      lines.push(...rendered.lines);
      if (lines.length > 0) draw();
    }
  } finally {
    cancelTick();
    if (lines.length > 0) draw();
    screen.clear();
  }
}

/** An event to show, or one from before what is shown, which only adds to what is known. */
export interface Shown extends Paced {
  readonly isPast: boolean;
}

/** From a step on. A step begins where the one before it ends; without one, all of it. */
export async function* shownFrom(
  events: AsyncIterable<Event>,
  step: number,
  pace: Parameters<typeof paced>[1],
): AsyncGenerator<Shown, void> {
  const all = events[Symbol.asyncIterator]();
  const rest: AsyncIterable<Event> = { [Symbol.asyncIterator]: () => all };
  let lastStep = -1;
  while (lastStep < step - 1) {
    const { value: event, done } = await all.next();
    if (done === true) throw new Error(`--from-step: ${noStep(step, lastStep)}`);
    pace.signal.throwIfAborted();
    if (event.child_id === null && is(event, "step.boundary")) lastStep = event.payload.step_index;
    yield { event, laterMs: null, isPast: true };
  }
  for await (const one of paced(rest, pace)) yield { ...one, isPast: false };
}

function noStep(step: number, last: number): string {
  if (last < 0) return `there is no step ${step}; it has none`;
  return `there is no step ${step}; the last is ${last}`;
}
