// Follows logs for their readers. Whoever reads at the head shares one read and one encoding per commit; whoever
// is behind reads ranges from the store at its own pace and shares those too. Nobody's events wait in a queue
// here: the tail is a bounded cache of what some reader has not had, and one that falls out of it goes back to the
// store. Where all have had everything it is empty, so that what is sent at once is not kept for anybody.

import type { View } from "@runwire/protocol";
import type { Bus } from "./bus.js";
import { isFeedLog } from "./log/record.js";
import { noWeight, plus, type Range, restOf, toRanges, type Weights } from "./range.js";
import { readBytesMax } from "./reading.js";
import { type LogRanges, sharedRanges } from "./shared-ranges.js";
import type { RunKey, Store } from "./store.js";

/** What the hub tells a reader. */
export interface Listener {
  /** The log has moved on; tells whether the reader has now had all of it. */
  moved(): boolean;
  /** The log is no longer there. */
  gone(): void;
  /** The log could not be read on. */
  failed(): void;
  /** How far it is behind the head; undefined until it has once been there. */
  lagBytes(): number | undefined;
}

/** A log with readers, one for all of them. */
export interface Followed {
  /** Everything up to here can be read without waiting for a commit. */
  readonly end: number;
  /** What all that came since the hub follows this log weighs. */
  readonly weights: Weights;
  /** The next events after a position: at once where they are in the tail, undefined at the end. */
  next(after: number): Range | Promise<Range | undefined> | undefined;
  leave(listener: Listener): void;
}

export interface Hub {
  follow(key: RunKey, view: View, listener: Listener): Promise<Followed>;
  /** Reads a tenant's logs anew: runs of it were erased, and its feeds no longer say what they said of them. */
  forget(tenant: string): void;
  levels(): HubLevels;
}

/** What an operator looks at. */
export interface HubLevels {
  /** How far each reader that has reached the head of its log is behind it. */
  readonly lagsBytes: readonly number[];
  readonly rangesCachedBytes: number;
}

const tailBytesMax = 64 * 1024;

export function hub(store: Store, bus: Bus): Hub {
  const logs = new Map<string, Promise<FollowedLog>>();
  const open = new Set<FollowedLog>();
  const shared = sharedRanges();

  async function openLog(name: string, key: RunKey, view: View): Promise<FollowedLog> {
    // Listen before the first read: an append between the two still rings.
    let log: FollowedLog | undefined;
    let rang = false;
    const unlisten = bus.listen(key, () => {
      rang = true;
      log?.ring();
    });
    const head = await store.head(key).catch((error: unknown) => {
      // Whoever comes next tries anew.
      unlisten();
      logs.delete(name);
      throw error;
    });
    log = followedLog(store, key, view, head?.views[view].pos ?? 0, shared.of(name), () => {
      unlisten();
      logs.delete(name);
      if (log !== undefined) open.delete(log);
    });
    open.add(log);
    // What is not there was erased since its reader looked for it, and will not ring again. A feed begins when it is first
    // written to.
    const isGone = head === undefined && !isFeedLog(key.run_id);
    if (rang || isGone) log.ring();
    return log;
  }

  return {
    async follow(key, view, listener) {
      const name = `${key.tenant}/${key.run_id}/${view}`;
      for (;;) {
        let opening = logs.get(name);
        if (opening === undefined) {
          opening = openLog(name, key, view);
          logs.set(name, opening);
        }
        const log = await opening;
        // The last reader may have left while this one waited.
        if (logs.get(name) === opening) {
          log.join(listener);
          return log;
        }
      }
    },
    forget(tenant) {
      shared.forget(tenant);
      for (const log of open) if (log.tenant === tenant) log.forget();
    },
    levels() {
      const lagsBytes: number[] = [];
      for (const { listeners } of open)
        for (const listener of listeners) {
          const lagBytes = listener.lagBytes();
          if (lagBytes !== undefined) lagsBytes.push(lagBytes);
        }
      return { lagsBytes, rangesCachedBytes: shared.bytes };
    },
  };
}

interface FollowedLog extends Followed {
  readonly tenant: string;
  readonly listeners: ReadonlySet<Listener>;
  forget(): void;
  ring(): void;
  join(listener: Listener): void;
}

function followedLog(
  store: Store,
  key: RunKey,
  view: View,
  from: number,
  shared: LogRanges,
  closed: () => void,
): FollowedLog {
  const listeners = new Set<Listener>();
  // Consecutive ranges up to the end; the oldest are forgotten first.
  let tail: Range[] = [];
  let tailBytes = 0;
  let reading = false;
  let again = false;

  function ring(): void {
    again = true;
    if (!reading) void readOn();
  }

  async function readOn(): Promise<void> {
    reading = true;
    try {
      while (again && listeners.size > 0) {
        again = false;
        const stretch = await store.read(key, view, log.end, readBytesMax);
        if (stretch.last === undefined) {
          const head = await store.head(key);
          // Erased, or moved on by more than is kept. Had it only just moved, it would have rung.
          const isGone = head === undefined || (head.views[view].pos > log.end && !again);
          if (isGone) for (const listener of [...listeners]) listener.gone();
          continue;
        }
        again = true;
        for (const range of toRanges(log.end, stretch)) push(range);
        let isBehind = false;
        // One that leaves meanwhile is not told, which is right.
        for (const listener of listeners) if (!listener.moved()) isBehind = true;
        if (!isBehind) forget();
      }
    } catch {
      // Each is told, and asks again by itself; why a read fails is the store's to say.
      for (const listener of [...listeners]) listener.failed();
    } finally {
      reading = false;
    }
  }

  function push(range: Range): void {
    tail.push(range);
    tailBytes += range.weights.all;
    log.end = range.to;
    shared.forgetEnds();
    log.weights = plus(log.weights, range.weights);
    let drop = 0;
    while (tailBytes > tailBytesMax && drop < tail.length - 1) tailBytes -= tail[drop++]?.weights.all ?? 0;
    if (drop > 0) tail = tail.slice(drop);
  }

  function forget(): void {
    tail = [];
    tailBytes = 0;
  }

  function next(after: number): Range | Promise<Range | undefined> | undefined {
    if (after >= log.end) return undefined;
    const first = tail[0];
    if (first !== undefined && after >= first.after) {
      // Readers at the head ask for the last range, so the search begins there.
      for (let i = tail.length - 1; i >= 0; i--) {
        const range = tail[i] as Range;
        if (range.after <= after) return restOf(range, after);
      }
    }
    return shared.read(
      after,
      async () => toRanges(after, await store.read(key, view, after, readBytesMax))[0],
      () => log.end,
    );
  }

  // Plain members: every reader looks at them at every event, and a getter would make each look a call.
  const log = {
    tenant: key.tenant,
    listeners,
    end: from,
    weights: noWeight,
    ring,
    next,
    forget,
    join(listener: Listener) {
      listeners.add(listener);
      // It may have rung while nobody listened.
      if (again) ring();
    },
    leave(listener: Listener) {
      listeners.delete(listener);
      if (listeners.size > 0) return;
      shared.forgetEnds();
      closed();
    },
  };
  return log;
}
