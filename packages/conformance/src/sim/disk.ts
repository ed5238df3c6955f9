// A disk that is slow, full, in doubt, or gone: it stands between a store and what it writes. A write that was under way
// when the power failed is stored or not, and nobody is told which; one that fails in the middle is stored or not, and
// whoever asked is told that nobody knows.

import { copyFileSync, existsSync, renameSync, rmSync } from "node:fs";
import { RunwireError } from "@runwire/protocol";
import type { Awaits } from "./awaits.js";

export interface WriterUnderTest {
  write(list: readonly never[]): Promise<void>;
  readonly condition: "ok" | "full" | "broken";
  truncate(): Promise<void>;
  close(): Promise<void>;
}

/** Lets a commit happen, or fails in its place as a database does, with an `errcode`. */
export type Through = (commit: () => void, list: readonly Row[]) => Promise<void>;

/** A row of a write begins with what is done. */
type Row = readonly [name: string, ...unknown[]];

export interface BlobsUnderTest {
  put(key: never, content: Uint8Array): Promise<void>;
  open(key: never, range?: never): Promise<never>;
  remove(key: never): Promise<void>;
  list(): AsyncIterable<never>;
}

/** What becomes of a write that fails in the middle. */
export interface Doubt {
  /** Whether those see it who read the file before the restart. */
  readonly seen: boolean;
  /** Whether it is there after the restart. */
  readonly kept: boolean;
}

export const doubts: readonly Doubt[] = [true, false].flatMap((seen) =>
  [true, false].map((kept) => ({ seen, kept })),
);

/** That a run begins, or that a blob is referred to. */
export const doubtedRows = ["addRun", "addBlobRef"] as const;
export type DoubtedRow = (typeof doubtedRows)[number];

export interface Disk {
  /** Whether there is room. */
  full: boolean;
  /**
   * Is called once, at the next write: before it is stored, or after it is stored and before anybody knows. What is
   * answered calls it off.
   */
  ambush(moment: "before" | "after", strike: () => void): () => void;
  /**
   * The next write, or the next that does what is named, fails in the middle, and all that were asked for meanwhile fail too,
   * until the store is opened again. What is answered calls it off.
   */
  doubt(how: Doubt, name?: DoubtedRow): () => void;
  /** Whether one has failed in the middle since the store was opened. */
  readonly isBroken: boolean;
  /** Nothing is written any more, and nobody is answered, until it is opened again. */
  die(): void;
  /** What a restart finds is there; to be called when nobody has the files open. */
  restart(): void;
  open(path: string, openWriter: (through: Through) => WriterUnderTest): WriterUnderTest;
  openBlobs(blobs: BlobsUnderTest): BlobsUnderTest;
  /** `trespasses` are writes that were asked for when it was known that one is in doubt. */
  readonly counts: {
    writes: number;
    refused: number;
    lost: number;
    doubts: number;
    trespasses: number;
  };
}

const writeMsMax = 30;
const slowMsMax = 3000;

/** `slowShare` is of the writes that take long: so long that whoever is told too early has time to be wrong. */
export function disk(random: () => number, slowShare: number, awaits: Awaits): Disk {
  const counts = { writes: 0, refused: 0, lost: 0, doubts: 0, trespasses: 0 };
  let life = 0;
  let isFull = false;
  let ambush: { readonly moment: "before" | "after"; readonly strike: () => void } | undefined;
  let coming: { readonly how: Doubt; readonly name: DoubtedRow | undefined } | undefined;
  let isBroken = false;
  /** Since when whoever writes can know it. */
  let isKnown = false;
  /** What the next start finds, and nobody sees before it. */
  let late: (() => void) | undefined;
  /** Files as they were before a write that the next start does not find. */
  let copies: readonly string[] = [];
  const leaving = new Set<(error: Error) => void>();

  const writeMs = (dice: number): number =>
    Math.floor(dice < slowShare ? (dice / slowShare) * slowMsMax : dice ** 4 * writeMsMax);

  function struck(moment: "asked" | "before" | "after"): void {
    awaits.struck(moment);
    if (ambush?.moment !== moment) return;
    const { strike } = ambush;
    ambush = undefined;
    strike();
  }

  function doubtOf(list: readonly Row[]): Doubt | undefined {
    if (coming === undefined) return undefined;
    const { how, name } = coming;
    if (name !== undefined && !list.some(([done]) => done === name)) return undefined;
    coming = undefined;
    return how;
  }

  function failInTheMiddle({ seen, kept }: Doubt, path: string, commit: () => void): void {
    counts.doubts += 1;
    isBroken = true;
    setTimeout(() => {
      isKnown = isBroken;
    }, 0);
    if (!seen) late = kept ? commit : undefined;
    else {
      if (!kept) copies = [path, `${path}-wal`].filter((file) => existsSync(file));
      for (const file of copies) copyFileSync(file, copyOf(file));
      commit();
    }
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
      ambush = mine;
      return () => {
        if (ambush === mine) ambush = undefined;
      };
    },
    doubt(how, name) {
      const mine = { how, name };
      coming = mine;
      return () => {
        if (coming === mine) coming = undefined;
      };
    },
    get isBroken() {
      return isBroken;
    },
    die() {
      life += 1;
      isFull = false;
      for (const leave of leaving) leave(gone());
      leaving.clear();
    },
    restart() {
      const [path] = copies;
      if (path === undefined) return;
      for (const end of ["", "-wal", "-shm"]) rmSync(`${path}${end}`, { force: true });
      for (const file of copies) renameSync(copyOf(file), file);
      copies = [];
    },
    open(path, openWriter) {
      const mine = life;
      coming = undefined;
      isBroken = false;
      isKnown = false;
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
      const writer = openWriter(async (commit, list) => {
        if (isKnown && mine === life) counts.trespasses += 1;
        struck("asked");
        await pause();
        struck("before");
        if (isDead()) throw gone();
        if (isBroken) throw failed("disk I/O error", ioError);
        if (isFull) {
          counts.refused += 1;
          throw failed("database or disk is full", full);
        }
        const doubt = doubtOf(list);
        if (doubt === undefined) commit();
        else failInTheMiddle(doubt, path, commit);
        counts.writes += 1;
        struck("after");
        await pause();
        if (isDead()) throw gone();
        if (doubt !== undefined) throw failed("disk I/O error", ioError);
      });
      return {
        get condition() {
          return writer.condition;
        },
        write: writer.write,
        truncate: writer.truncate,
        close() {
          late?.();
          late = undefined;
          return writer.close();
        },
      };
    },
    openBlobs(blobs) {
      const mine = life;
      const checkAlive = (): void => {
        if (mine !== life) throw gone();
      };
      return {
        async put(key, content) {
          awaits.struck("putting");
          checkAlive();
          if (isFull) throw new RunwireError("KAI-SERVER-STORE-0002");
          await blobs.put(key, content);
          awaits.struck("put");
          checkAlive();
        },
        open: (key, range) => blobs.open(key, range),
        async remove(key) {
          checkAlive();
          await blobs.remove(key);
        },
        list: () => blobs.list(),
      };
    },
  };
}

/** What SQLite answers. */
const ioError = 10;
const full = 13;

function failed(message: string, errcode: number): Error {
  return Object.assign(new Error(message), { errcode });
}

function gone(): Error {
  return new RunwireError("KAI-SERVER-STORE-0001", "the machine is gone");
}

function copyOf(file: string): string {
  return `${file}.before`;
}
