// What must be done one after the other, because it begins with what the one before it has left.

import { runMap } from "./run-map.js";

export interface Turns {
  /** Acts once all that asked before it, under this name of the tenant's, are done. */
  take<T>(tenant: string, name: string, act: () => Promise<T>): Promise<T>;
}

export function turns(): Turns {
  const last = runMap<Promise<void>>();
  return {
    take(tenant, name, act) {
      const acted = (last.get(tenant, name) ?? Promise.resolve()).then(act);
      // Whoever asked hears why it failed; those behind it have their turn all the same.
      const over = acted.then(
        () => {},
        () => {},
      );
      last.set(tenant, name, over);
      void over.then(() => {
        if (last.get(tenant, name) === over) last.delete(tenant, name);
      });
      return acted;
    },
  };
}
