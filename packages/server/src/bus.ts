// Carries "this log has moved" between the store and the hub, and nothing else: a lost hint costs latency,
// never data.

export interface Bus {
  publish(log: string): void;
  listen(log: string, heard: () => void): () => void;
}

export function memoryBus(): Bus {
  const listeners = new Map<string, Set<() => void>>();
  return {
    publish(log) {
      for (const heard of listeners.get(log) ?? []) heard();
    },
    listen(log, heard) {
      const set = listeners.get(log) ?? new Set();
      listeners.set(log, set.add(heard));
      return () => {
        set.delete(heard);
        if (set.size === 0) listeners.delete(log);
      };
    },
  };
}
