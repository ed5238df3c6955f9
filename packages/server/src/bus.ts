// Carries "this log has moved" between the store and the hub, and nothing else: a lost hint costs latency,
// never data.

import { runMap } from "./run-map.js";
import type { RunKey } from "./store.js";

export interface Bus {
  publish(log: RunKey): void;
  listen(log: RunKey, heard: () => void): () => void;
}

export function memoryBus(): Bus {
  const listeners = runMap<Set<() => void>>();
  return {
    publish({ tenant, run_id }) {
      for (const heard of listeners.get(tenant, run_id) ?? []) heard();
    },
    listen({ tenant, run_id }, heard) {
      const set = listeners.get(tenant, run_id) ?? new Set();
      listeners.set(tenant, run_id, set.add(heard));
      return () => {
        set.delete(heard);
        if (set.size === 0) listeners.delete(tenant, run_id);
      };
    },
  };
}
