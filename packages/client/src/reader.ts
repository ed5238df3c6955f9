// Turns the messages of any number of connections into each run's log, once and in order. It holds the
// cursors; the reconnect loop asks it where to begin again and hands it what arrives.

import {
  type Event,
  endsRun,
  isFinal,
  type Message,
  RunwireError,
  type Transcript,
  limits as wire,
} from "@runwire/protocol";
import { type Entry, messageReader, type SnapshotAt } from "./decode.js";
import type { Reader } from "./reconnect.js";
import type { Cursors, Ending, Source } from "./sources/source.js";
import { type Track, track } from "./track.js";

/** What a log says, and where it could not be read whole. */
export type Followed =
  | { readonly kind: "event"; readonly event: Event }
  /** Stands for every event up to `at`. */
  | {
      readonly kind: "snapshot";
      readonly run_id: string;
      readonly at: number;
      readonly transcript: Transcript;
    }
  /** The server's log is another one now: forget this run's events, they come anew. */
  | { readonly kind: "reset"; readonly run_id: string }
  /** Events `from` to `to`, both included, were not sent and could not be had (or were not asked for). */
  | { readonly kind: "gap"; readonly run_id: string; readonly from: number; readonly to: number }
  /** An event of a type that this client does not know was skipped. */
  | { readonly kind: "unknown"; readonly run_id: string; readonly at: number; readonly type: string };

const anotherLog: Ending = { close: "broken", cause: new Error("the log was reset") };
const allRead: Ending = { close: "finished" };

export function reader(source: Source, after: Cursors, repairs: boolean): Reader<Followed> {
  const read = messageReader(source.dialect);
  const tracks = new Map<string, Track>();
  for (const run_id of source.runs) tracks.set(run_id, track(after.get(run_id) ?? 0));

  function trackOf(run_id: string): Track {
    const run = tracks.get(run_id) ?? track(after.get(run_id) ?? 0);
    tracks.set(run_id, run);
    return run;
  }

  /** Only for what the source said it would read: a file may hold any number of runs. */
  function isFinished(): boolean {
    return source.runs.length > 0 && source.runs.every((run_id) => trackOf(run_id).ended);
  }

  function begin({ run_id, at, transcript }: SnapshotAt): Followed {
    const run = trackOf(run_id);
    run.moveTo(at);
    run.ended = transcript.state !== null && isFinal(transcript.state);
    return { kind: "snapshot", run_id, at, transcript };
  }

  function accept(entry: Entry): Followed {
    const { event, run_id, at, type } = entry;
    const run = trackOf(run_id);
    run.accept(entry);
    if (event === null) return { kind: "unknown", run_id, at, type };
    if (endsRun(event)) run.ended = true;
    return { kind: "event", event };
  }

  async function* take(
    messages: readonly Message[],
    signal: AbortSignal,
  ): AsyncGenerator<readonly Followed[], Ending | undefined> {
    let items: Followed[] = [];
    let ending: Ending | undefined;
    try {
      for (const message of messages) {
        const said = read(message);
        if (said.kind === "entry") {
          const verdict = trackOf(said.run_id).judge(said);
          if (verdict === "seen") continue;
          if (verdict === "gap") {
            if (items.length > 0) yield items;
            items = [];
            ending = yield* fill(said, signal);
          }
          if (verdict === "reset") {
            items.push({ kind: "reset", run_id: said.run_id });
            tracks.set(said.run_id, track(0));
            // The new log's beginning went by as duplicates of the old one's: it must be read again.
            if (said.at !== 1) ending = anotherLog;
          }
          if (ending !== undefined) break;
        }
        items.push(said.kind === "snapshot" ? begin(said) : accept(said));
        if (trackOf(said.run_id).ended && isFinished()) {
          ending = allRead;
          break;
        }
      }
    } catch (error) {
      // What was read before it stands.
      if (items.length > 0) yield items;
      if (!(error instanceof RunwireError)) throw error;
      // The next connection asks for its headers or ticket anew; whether they are good is its to find out.
      if (error.code === "KAI-AUTH-TOKEN-0003") return { close: "leaving" };
      if (!error.row.retry) throw error;
      return { close: "broken", cause: error };
    }
    if (items.length > 0) yield items;
    return ending;
  }

  /** Reads what is missing before `entry` from the stored events, or says that it is missing. */
  async function* fill(
    entry: Entry,
    signal: AbortSignal,
  ): AsyncGenerator<readonly Followed[], Ending | undefined> {
    const { run_id } = entry;
    const run = trackOf(run_id);
    const to = entry.at - 1;
    while (repairs && source.page !== undefined && run.cursor < to) {
      const page = await source.page(
        run_id,
        run.cursor,
        Math.min(to - run.cursor, wire.pageEventsMax),
        signal,
      );
      // The connection goes too: the next one begins before the gap, and catching up skips nothing.
      if ("close" in page) return page;
      const items: Followed[] = [];
      for (const message of page) {
        const said = read(message);
        if (said.kind === "entry" && said.at <= to && run.judge(said) === "next") items.push(accept(said));
      }
      if (items.length === 0) break;
      yield items;
    }
    if (run.cursor < to) {
      yield [{ kind: "gap", run_id, from: run.cursor + 1, to }];
      run.moveTo(to);
    }
    return undefined;
  }

  return {
    at: () =>
      new Map([...tracks].filter(([, run]) => !run.ended).map(([run_id, run]) => [run_id, run.cursor])),
    take,
  };
}
