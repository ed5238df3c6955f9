// Run ids are a tenant's own, so whatever is kept by run is kept by tenant and run: a map of maps. One name made of
// both would have to be put together and hashed at every look.

export interface RunMap<T> {
  get(tenant: string, run_id: string): T | undefined;
  has(tenant: string, run_id: string): boolean;
  set(tenant: string, run_id: string, value: T): void;
  delete(tenant: string, run_id: string): void;
  /** What is kept of one tenant. */
  of(tenant: string): ReadonlyMap<string, T>;
  values(): IterableIterator<T>;
  /** Of all tenants; each costs one look. */
  readonly size: number;
}

const nothing: ReadonlyMap<string, never> = new Map<string, never>();

export function runMap<T>(): RunMap<T> {
  const tenants = new Map<string, Map<string, T>>();
  return {
    get: (tenant, run_id) => tenants.get(tenant)?.get(run_id),
    has: (tenant, run_id) => tenants.get(tenant)?.has(run_id) ?? false,
    set(tenant, run_id, value) {
      const runs = tenants.get(tenant);
      if (runs === undefined) tenants.set(tenant, new Map([[run_id, value]]));
      else runs.set(run_id, value);
    },
    delete(tenant, run_id) {
      const runs = tenants.get(tenant);
      runs?.delete(run_id);
      if (runs?.size === 0) tenants.delete(tenant);
    },
    of: (tenant) => tenants.get(tenant) ?? nothing,
    *values() {
      for (const runs of tenants.values()) yield* runs.values();
    },
    get size() {
      let size = 0;
      for (const runs of tenants.values()) size += runs.size;
      return size;
    },
  };
}
