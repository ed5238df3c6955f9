// Those who look at a run now and then, as it is by then: its transcript, and the bytes that were spilled from it.

import { createHash } from "node:crypto";
import { expect } from "vitest";
import { fold, meaning } from "../suites/store/soundness.js";
import { spilledFrom } from "./blobs.js";
import type { World } from "./world.js";

export function lookAt(world: World, run_id: string): void {
  const key = { tenant: world.tenant, run_id };
  world.accompany(`who looks at ${run_id}`, async (signal) => {
    while (!signal.aborted) {
      await world.sleep(world.whole(100, 10_000));
      const { length } = world.audit.log(key, "default");
      const { pos, transcript } = await world.persistently(() => world.api.snapshot(run_id));
      if (pos < length) throw new Error(`${run_id}: the transcript is of ${pos}, and ${length} were there`);
      const now = world.audit.log(key, "default");
      // What is newer than the last look at the log is compared the next time.
      if (pos <= now.length) expect(meaning(transcript)).toEqual(meaning(fold(run_id, now.slice(0, pos))));
      const spilled = now.flatMap(spilledFrom);
      if (spilled.length > 0) await look(world, world.pick(spilled).ref, signal);
    }
  });
}

/** Of a connection that has gone silent. */
const patienceMs = 60_000;

/** It is there, and nothing else is given for it; the answer may be cut off, or never come. */
async function look(world: World, ref: string, over: AbortSignal): Promise<void> {
  const { base, fetch: ask = fetch } = world.endpoint;
  const waiting = new AbortController();
  const stop = (): void => waiting.abort();
  const patience = setTimeout(stop, patienceMs);
  over.addEventListener("abort", stop);
  let content: ArrayBuffer;
  try {
    const answer = await ask(`${base}/v1/blobs/${ref}`, { signal: waiting.signal });
    if (answer.status === 404) throw new RangeError(`${ref} is not there`);
    content = await answer.arrayBuffer();
    if (answer.status !== 200) return;
  } catch (error) {
    if (error instanceof RangeError) throw error;
    return;
  } finally {
    clearTimeout(patience);
    over.removeEventListener("abort", stop);
  }
  expect(`blob_${createHash("sha256").update(new Uint8Array(content)).digest("hex")}`).toBe(ref);
}
