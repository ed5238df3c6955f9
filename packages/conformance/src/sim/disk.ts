// A disk that is slow, full, or gone: it stands between a store and what it writes. A write that was under way when the
// power failed is stored or not, and nobody is told which.

import { RunwireError } from "@runwire/protocol";

export interface WriterUnderTest {
  write(list: readonly never[]): Promise<void>;
  readonly condition: "ok" | "full" | "broken";
  truncate(): Promise<void>;
  close(): Promise<void>;
}

/** Of a write: it is asked for, it is about to be stored, it is stored and nobody knows. */
export type Moment = "asked" | "before" | "after";

export interface Disk {
  /** Whether there is room. */
  full: boolean;
  /**
   * Is called once, at the next write: before it is stored, or after it is stored and before anybody knows. What is
   * answered calls it off.
   */
  ambush(moment: "before" | "after", strike: () => void): () => void;
  /** Is called at every moment of every write, until it is called off. */
  watch(seen: (moment: Moment) => void): () => void;
  /** Nothing is written any more, and nobody is answered, until it is opened again. */
  die(): void;
  open(writer: WriterUnderTest): WriterUnderTest;
  readonly counts: { writes: number; refused: number; lost: number };
}

const writeMsMax = 30;
const slowMsMax = 3000;

/** `slowShare` is of the writes that take long: so long that whoever is told too early has time to be wrong. */
export function disk(random: () => number, slowShare: number): Disk {
  const counts = { writes: 0, refused: 0, lost: 0 };
  let life = 0;
  let isFull = false;
  let waiting: { readonly moment: "before" | "after"; readonly strike: () => void } | undefined;
  const watching = new Set<(moment: Moment) => void>();
  const leaving = new Set<(error: Error) => void>();

  const writeMs = (dice: number): number =>
    Math.floor(dice < slowShare ? (dice / slowShare) * slowMsMax : dice ** 4 * writeMsMax);

  function struck(moment: Moment): void {
    for (const seen of watching) seen(moment);
    if (waiting?.moment !== moment) return;
    const { strike } = waiting;
    waiting = undefined;
    strike();
  }

  return {
    counts,
    get full() {
      return isFull;
    },
    set full(value) {
      isFull = value;
    },
    ambush(moment, strike) {
      const mine = { moment, strike };
      waiting = mine;
      return () => {
        if (waiting === mine) waiting = undefined;
      };
    },
    watch(seen) {
      watching.add(seen);
      return () => void watching.delete(seen);
    },
    die() {
      life += 1;
      isFull = false;
      for (const leave of leaving) leave(gone());
      leaving.clear();
    },
    open(writer) {
      const mine = life;
      const pause = (): Promise<void> =>
        new Promise((resolve, reject) => {
          leaving.add(reject);
          setTimeout(() => {
            leaving.delete(reject);
            resolve();
          }, writeMs(random()));
        });
      const isDead = (): boolean => {
        if (mine === life) return false;
        counts.lost += 1;
        return true;
      };
      return {
        get condition() {
          return isFull ? "full" : "ok";
        },
        async write(list) {
          struck("asked");
          await pause();
          struck("before");
          if (isDead()) throw gone();
          if (isFull) {
            counts.refused += 1;
            throw new RunwireError("KAI-SERVER-STORE-0002", "database or disk is full");
          }
          await writer.write(list);
          counts.writes += 1;
          struck("after");
          await pause();
          if (isDead()) throw gone();
        },
        truncate: () => writer.truncate(),
        close: () => writer.close(),
      };
    },
  };
}

function gone(): RunwireError {
  return new RunwireError("KAI-SERVER-STORE-0001", "the machine is gone");
}
