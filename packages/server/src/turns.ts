// What must be done one after the other in a run, because it begins with what the one before it has left.

import { runMap } from "./run-map.js";
import type { RunKey } from "./store.js";

export interface Turns {
  /** Acts once all that asked before it, for this run, are done. */
  take<T>(key: RunKey, act: () => Promise<T>): Promise<T>;
}

export function turns(): Turns {
  const last = runMap<Promise<void>>();
  return {
    take({ tenant, run_id }, act) {
      const acted = (last.get(tenant, run_id) ?? Promise.resolve()).then(act);
      // Whoever asked hears why it failed; those behind it have their turn all the same.
      const over = acted.then(
        () => {},
        () => {},
      );
      last.set(tenant, run_id, over);
      void over.then(() => {
        if (last.get(tenant, run_id) === over) last.delete(tenant, run_id);
      });
      return acted;
    },
  };
}
