// Those who follow the list of runs: a snapshot, then every change, without a gap, across everything that happens.

import { followRuns, type RunChange } from "@runwire/client";
import { type Event, isFinal } from "@runwire/protocol";
import { expect } from "vitest";
import { expectOwn } from "./strangers.js";
import type { World } from "./world.js";

export interface Feeding {
  readonly tenant: string;
  readonly heard: readonly RunChange[];
}

export function followList(world: World, name: string): Feeding {
  const heard: RunChange[] = [];
  const shown = expectOwn(world);
  world.accompany(`${name} of the list`, async (signal) => {
    const { time, endpoint } = world;
    for (;;) {
      const after = heard.at(-1)?.pos;
      const options = { ...endpoint, signal, random: time.random, ...(after === undefined ? {} : { after }) };
      const patience = world.whole(0, 2) === 0 ? world.whole(1, 10) : Number.POSITIVE_INFINITY;
      let batches = 0;
      for await (const changes of followRuns(options)) {
        for (const change of changes) {
          const next = (heard.at(-1)?.pos ?? 0) + 1;
          if (change.kind === "change" && change.pos !== next)
            throw new Error(`the list says ${change.pos}, and ${next} was next`);
          if (change.kind === "snapshot" && heard.length > 0) throw new Error("the list began anew");
          heard.push(change);
          if (change.kind === "change") shown(change.run_id);
          else for (const { root_id } of change.runs) shown(root_id);
        }
        batches += 1;
        if (batches >= patience) break;
      }
      await world.sleep(world.whole(0, 3000));
    }
  });
  return { tenant: world.tenant, heard };
}

/** What was heard after its snapshot is what the feed holds there; it may not have come to the end. */
export function expectFed({ heard }: Feeding, log: readonly Event[]): void {
  const [first, ...changes] = heard;
  if (first === undefined) return;
  expect(first.kind).toBe("snapshot");
  const told = changes.map((change) => (change.kind === "change" ? [change.run_id, change.type] : []));
  const from = log.filter(({ pos }) => pos > first.pos).slice(0, told.length);
  // Each entry is of the run that it names. What was erased since it was heard says no more than that.
  expect(told).toEqual(
    from.map(({ child_id, type }, i) => [child_id, type === "x.runwire.erased" ? told[i]?.[1] : type]),
  );
  const ends = log.filter(({ type, payload }) => {
    const { state } = payload as { state?: never };
    return type === "run.lifecycle" && isFinal(state as never);
  });
  expect(new Set(ends.map(({ child_id }) => child_id)).size).toBe(ends.length);
}
