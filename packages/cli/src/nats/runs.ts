// Which runs are published, and until when: all that live, and all that begin, each until its end is. How far this has
// come is a checkpoint, which is read at the next start: nothing that happens while no bridge runs is left out.

import {
  type Endpoint,
  followMessages,
  followRuns,
  gateway,
  type RunPage,
  type RunQuery,
  type RunRecord,
  type Status,
  systemClock,
  unlessAborted,
  wait,
} from "@runwire/client";
import { isFinal, messageOf, RunwireError, runStates } from "@runwire/protocol";
import { Overtaken, type Publisher } from "./publisher.js";
import type { Subjects } from "./subjects.js";

/** Everything of the feed up to `pos` has been published, but for these runs. */
export interface Checkpoint {
  readonly pos: number;
  readonly runs: readonly string[];
  /** When what is at `pos` happened: where the feed is no longer kept from there, the list is read back to here. */
  readonly ts: string;
}

export interface BridgeParts {
  readonly endpoint: Endpoint;
  readonly dialect: string;
  readonly subjects: Subjects;
  readonly publisher: Publisher;
  readonly signal: AbortSignal;
  readonly now: () => number;
  load(): Promise<Checkpoint | undefined>;
  /** Resolves when it is safe. What is so far is asked for at each try. */
  save(checkpoint: () => Checkpoint): Promise<void>;
  say(line: string): void;
  /** Called once whatever happens from now on is published, even if this process is killed. */
  ready(): void;
}

/** Each is a connection to the server. */
const runsAtOnceMax = 1000;
const againMs = 1000;
/** Remembered to have ended. */
const overMax = 20_000;
/** Clocks differ, and a run is in the list a moment before it is in the feed. */
const overlapMs = 60 * 60 * 1000;

/** Statuses that say something of the credentials. */
const refusals: ReadonlySet<number> = new Set([401, 403]);

/** Until the signal aborts. Throws what ends reading, and so does a refusal of its credentials. */
export async function publishRuns(parts: BridgeParts): Promise<void> {
  const { endpoint, say, subjects, publisher, dialect } = parts;
  // What no run can be read after ends them all, and is nobody's wish to leave.
  const failed = new AbortController();
  const signal = AbortSignal.any([parts.signal, failed.signal]);
  const server = gateway(endpoint);
  const known = await parts.load();
  const open = new Map<string, Promise<void>>();
  const line = new Set<string>();
  // The feed tells of a run's end too, and may do so late.
  const over = new Set<string>();
  let pos = known?.pos;
  let posMs = known === undefined ? parts.now() : Date.parse(known.ts);
  const saving = saver({ ...parts, signal }, () => ({
    pos: pos ?? 0,
    runs: [...open.keys(), ...line],
    ts: new Date(posMs).toISOString(),
  }));

  function take(run_id: string): void {
    if (open.has(run_id) || over.has(run_id) || line.has(run_id)) return;
    if (open.size >= runsAtOnceMax) {
      if (line.size === 0) say(`${runsAtOnceMax} runs are published at once; others wait`);
      line.add(run_id);
      return;
    }
    open.set(
      run_id,
      // One that failed stays among those that are open: the next start goes on with it.
      publishRun(run_id).then(
        () => left(run_id),
        (error: unknown) => failed.abort(error),
      ),
    );
  }

  function left(run_id: string): void {
    open.delete(run_id);
    over.add(run_id);
    for (const oldest of over) {
      if (over.size <= overMax) break;
      over.delete(oldest);
    }
    for (const next of line) {
      if (open.size >= runsAtOnceMax) break;
      line.delete(next);
      take(next);
    }
    saving.due();
  }

  async function publishRun(run_id: string): Promise<void> {
    while (!signal.aborted) {
      try {
        const out = await publisher.open(run_id, subjects.events(run_id));
        const { after } = out;
        const messages = followMessages({
          ...endpoint,
          run_id,
          dialect,
          signal,
          ...(after === undefined ? {} : { after }),
        });
        for await (const batch of messages) await out.publish(batch);
        return;
      } catch (error) {
        if (signal.aborted || error instanceof Overtaken) continue;
        // It is we who are refused, not this run.
        if (error instanceof RunwireError && refusals.has(error.row.status)) throw error;
        // Erased, or damaged.
        say(`${run_id}: ${messageOf(error)}; it is published no further`);
        return;
      }
    }
  }

  async function takeListed(): Promise<void> {
    for (const state of runStates.filter((one) => !isFinal(one))) {
      for await (const { run_id } of listed({ state })) take(run_id);
    }
    // The first time there is nothing to make up for.
    if (pos === undefined) return;
    const sinceMs = posMs - overlapMs;
    for await (const { run_id, created_at } of listed({})) {
      if (Date.parse(created_at) < sinceMs) return;
      take(run_id);
    }
  }

  async function* listed(query: RunQuery): AsyncGenerator<RunRecord, void> {
    let cursor: string | null | undefined;
    do {
      const page = await pageOf({ ...query, ...(cursor == null ? {} : { cursor }) });
      yield* page.runs;
      cursor = page.next;
    } while (cursor !== null);
  }

  async function pageOf(query: RunQuery): Promise<RunPage> {
    for (;;) {
      try {
        return await server.listRuns(query);
      } catch (error) {
        if (!(error instanceof RunwireError) || !error.row.retry) throw error;
        await wait(systemClock, againMs, signal);
      }
    }
  }

  for (const run_id of known?.runs ?? []) take(run_id);
  // From a checkpoint nothing need come; without one, what the list was must be known first.
  let isFirst = known === undefined;
  if (!isFirst) parts.ready();
  const changes = followRuns({
    ...endpoint,
    signal,
    onStatus: teller(say),
    ...(pos === undefined ? {} : { after: pos }),
  });
  try {
    for await (const batch of changes) {
      for (const change of batch) {
        if (change.kind === "snapshot") await takeListed();
        else take(change.run_id);
        // After it is taken: a checkpoint may be written at any moment.
        pos = change.pos;
        // Of the place, not of the reading: a backlog may be days old.
        posMs = change.kind === "snapshot" ? parts.now() : Date.parse(change.ts);
      }
      saving.due();
      if (isFirst) {
        isFirst = false;
        await unlessAborted(saving.done(), signal);
        parts.ready();
      }
    }
  } catch (error) {
    // What waits for NATS would go on doing so; the runs that are open stay in the checkpoint.
    failed.abort();
    if (!parts.signal.aborted) throw error;
    await saving.done();
    await Promise.allSettled(open.values());
  }
}

/** One at a time; what has changed meanwhile is one more. */
function saver(
  { save, signal, say }: BridgeParts,
  state: () => Checkpoint,
): { due(): void; done(): Promise<void> } {
  let isDue = false;
  let saving: Promise<void> | undefined;
  async function work(): Promise<void> {
    while (isDue && !signal.aborted) {
      isDue = false;
      await save(state);
    }
    saving = undefined;
  }
  return {
    due() {
      isDue = true;
      saving ??= work().catch((error: unknown) => {
        if (!signal.aborted) say(`the checkpoint cannot be written: ${String(error)}`);
        saving = undefined;
      });
    },
    done: async () => saving,
  };
}

/** Says once that the server is away, and once that it is back. */
function teller(say: (line: string) => void): (status: Status) => void {
  let wasAway = false;
  return (status) => {
    if (status.state === "waiting" && status.close === "broken" && !wasAway) {
      const { cause } = status;
      say(`the server is away${cause instanceof RunwireError ? ` [${cause.code}]` : ""}; waiting for it`);
      wasAway = true;
    } else if (status.state === "open" && wasAway) {
      say("the server is back");
      wasAway = false;
    }
  };
}
