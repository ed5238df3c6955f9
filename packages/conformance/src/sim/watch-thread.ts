// See watch.ts.

import { writeSync } from "node:fs";
import { workerData } from "node:worker_threads";

const { beats, stillMsMax } = workerData as { readonly beats: Int32Array; readonly stillMsMax: number };
let seen = -1;

setInterval(() => {
  const [beat = 0, living = 0, seed = 0] = [0, 1, 2].map((at) => Atomics.load(beats, at));
  if (living > 0 && beat === seen) {
    // Streams of a thread go through the one that hangs.
    writeSync(2, `simulator: the world of RUNWIRE_SEED=${seed} has not moved for ${stillMsMax / 1000} s\n`);
    process.kill(process.pid, "SIGKILL");
  }
  seen = beat;
}, stillMsMax);
