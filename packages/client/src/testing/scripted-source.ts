// A source without a wire: each connection plays one scene. What `follow` does can so be tested for every
// cut without a network.

import { type Event, type LogDialect, type Message, runwire } from "@runwire/protocol";
import type { Batches, Cursors, Ending, Source } from "../sources/source.js";
import { run_id } from "./log.js";

/** What one connection brings, and how it ends; a scene without an end hangs until it is aborted. */
export type Scene = (at: Cursors) => {
  readonly batches: readonly (readonly Message[])[];
  readonly ending?: Ending;
};

export interface ScriptedSource extends Source {
  /** The cursor that each connection was opened with. */
  readonly opened: number[];
}

export function scriptedSource(scenes: readonly Scene[], more: Partial<Source> = {}): ScriptedSource {
  const opened: number[] = [];
  async function* play(at: Cursors, signal: AbortSignal): Batches {
    const scene = scenes[opened.length];
    opened.push(at.get(run_id) ?? -1);
    if (scene === undefined) throw new Error("opened more often than scripted");
    const { batches, ending } = scene(at);
    yield [];
    yield* batches;
    if (ending !== undefined) return ending;
    return await new Promise<Ending>((resolve) => {
      const stop = () => resolve({ close: "broken", cause: signal.reason });
      if (signal.aborted) stop();
      signal.addEventListener("abort", stop);
    });
  }
  return { dialect: runwire, runs: [run_id], silenceMsMax: 37_500, open: play, ...more, opened };
}

export function messagesOf(events: readonly Event[], dialect: LogDialect = runwire): readonly Message[] {
  return events.flatMap((event) => dialect.step(dialect.first, event)[1]);
}

/** What a server sends to a reader of this log that stands at its cursor. */
export function after(log: readonly Event[], at: Cursors): readonly Event[] {
  return log.filter(({ pos }) => pos > (at.get(run_id) ?? 0));
}
