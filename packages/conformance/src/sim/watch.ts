// What spins on promises lets no timer ring, a test's own time limit among them, and a world that hangs would look like
// one that takes its time. So a thread looks whether worlds move, names the one that does not, and ends the process.

import { Worker } from "node:worker_threads";

/** Of the machine's own time; the longest step takes a few seconds. */
const stillMsMax = 180_000;

export interface Watch {
  /** The world has moved. */
  beat(): void;
  over(): void;
}

/** Beats, worlds that are lived, and the seed of the last. */
let beats: Int32Array | undefined;

function watched(): Int32Array {
  const shared = new Int32Array(new SharedArrayBuffer(3 * Int32Array.BYTES_PER_ELEMENT));
  new Worker(new URL("./watch-thread.js", import.meta.url), {
    workerData: { beats: shared, stillMsMax },
    execArgv: [],
  }).unref();
  return shared;
}

export function watch(seed: number): Watch {
  beats ??= watched();
  const shared = beats;
  Atomics.add(shared, 0, 1);
  Atomics.add(shared, 1, 1);
  Atomics.store(shared, 2, seed);
  return {
    beat: () => void Atomics.add(shared, 0, 1),
    over: () => void Atomics.sub(shared, 1, 1),
  };
}
