// Ranges that readers behind the head have read: a thousand that reconnect at once read and encode them once.

import { type Range, rangeBytes } from "./range.js";

interface SharedRanges {
  readonly bytes: number;
  forget(tenant: string): void;
  of(log: string): LogRanges;
}

/** Those of one log. */
export interface LogRanges {
  read(
    after: number,
    load: () => Promise<Range | undefined>,
    end: () => number,
  ): Range | Promise<Range | undefined>;
  /** Of ranges up to the head: they are good until the log moves, and for those who read it at the same time. */
  forgetEnds(): void;
}

const sharedBytesMax = 64 * 1024 * 1024;

export function sharedRanges(): SharedRanges {
  const kept = new Map<string, KeptRange>();
  const loading = new Map<string, Promise<Range | undefined>>();
  let bytes = 0;

  function drop(name: string): void {
    bytes -= kept.get(name)?.bytes ?? 0;
    kept.delete(name);
  }

  function keep(name: string, range: Range, isWhole: boolean): void {
    drop(name);
    const known: KeptRange = { range, isWhole, bytes: 0 };
    kept.set(name, known);
    range.grown = () => {
      if (kept.get(name) === known) count(known);
    };
    count(known);
  }

  function count(known: KeptRange): void {
    bytes -= known.bytes;
    known.bytes = rangeBytes(known.range);
    bytes += known.bytes;
    for (const oldest of kept.keys()) {
      if (bytes <= sharedBytesMax) break;
      drop(oldest);
    }
  }

  return {
    get bytes() {
      return bytes;
    },
    forget(tenant) {
      for (const name of kept.keys()) if (name.startsWith(`${tenant}/`)) drop(name);
    },
    of(log) {
      const ends = new Set<string>();
      return {
        read(after, load, end) {
          const name = `${log}/${after}`;
          const known = kept.get(name);
          if (known !== undefined && (known.isWhole || known.range.to === end()))
            return known.isWhole ? inNextTurn(known.range) : known.range;
          let pending = loading.get(name);
          if (pending === undefined) {
            pending = load().then(
              (range) => {
                loading.delete(name);
                if (range === undefined) return range;
                const isWhole = range.to < end();
                keep(name, range, isWhole);
                if (!isWhole) ends.add(name);
                return range;
              },
              (error: unknown) => {
                loading.delete(name);
                throw error;
              },
            );
            loading.set(name, pending);
          }
          return pending;
        },
        forgetEnds() {
          for (const name of ends) if (kept.get(name)?.isWhole === false) drop(name);
          ends.clear();
        },
      };
    },
  };
}

interface KeptRange {
  readonly range: Range;
  /** Of memory, as it was last counted. */
  bytes: number;
  /** Whether there was more behind it. One up to the head may grow, and is good only until the log moves. */
  readonly isWhole: boolean;
}

/** So that others come first: a reader that takes whatever it is given would be sent a long log in one turn of the loop. */
function inNextTurn<T>(value: T): Promise<T> {
  return new Promise((resolve) => setImmediate(resolve, value));
}
