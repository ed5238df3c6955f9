// Those who look at the list of runs: what it has once shown is there.

import type { World } from "./world.js";

export interface Listing {
  readonly tenant: string;
  readonly shown: ReadonlySet<string>;
}

export function listRuns(world: World, name: string): Listing {
  const shown = new Set<string>();
  world.accompany(`${name} of lists`, async (signal) => {
    while (!signal.aborted) {
      const { runs } = await world.persistently(() => world.api.listRuns());
      for (const { run_id } of runs) shown.add(run_id);
      await world.sleep(world.whole(100, 5000));
    }
  });
  return { tenant: world.tenant, shown };
}
