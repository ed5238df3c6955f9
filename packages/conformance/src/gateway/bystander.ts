// Someone who minds their own business while others attack: appends, reads along, and must notice nothing.

import { setTimeout as elapse } from "node:timers/promises";
import { allEvents, append, createRun, say } from "./calls.js";
import { openReading, streamPath } from "./readers.js";

export interface Bystander {
  /** Throws where anything was refused, lost, doubled or out of order. Says how much was written. */
  leave(): Promise<number>;
}

const paceMs = 5;

export async function bystander(url: string): Promise<Bystander> {
  const run_id = await createRun(url);
  const reading = await openReading("sse", url, streamPath({ run_id, dialect: "runwire", detail: "full" }));
  let leaving = false;
  let written = 0;

  async function write(): Promise<void> {
    await append(url, run_id, say("custom", { n: written }));
    written += 1;
    // The two that every run begins with come first.
    await reading.until(({ events }) => events.length === written + 2);
  }

  const living = (async () => {
    while (!leaving) {
      await write();
      await elapse(paceMs);
    }
    await write();
  })();
  // Told when it leaves.
  living.catch(() => {});

  return {
    async leave() {
      leaving = true;
      await living;
      reading.stop();
      const stored = await allEvents(url, run_id);
      const wrong = stored.slice(2).findIndex((e, n) => (e.payload as { n?: number }).n !== n);
      if (wrong >= 0 || stored.length !== written + 2 || reading.events.length !== written + 2)
        throw new Error(`the bystander wrote ${written}, ${stored.length} are stored; wrong from ${wrong}`);
      const differs = reading.events.findIndex((e, i) => e.id !== stored[i]?.id);
      if (differs >= 0) throw new Error(`the bystander heard another event than was stored at ${differs}`);
      return written;
    },
  };
}
