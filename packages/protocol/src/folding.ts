// What a fold gathers may be many: calls, requests, parts. A copy of them for each event, or a look at all of them, costs
// the square of the log, so whoever folds many events copies each of these once and goes on in its own copy, and looks
// once for those that it asks for again and again. What a fold was given is never changed.

/** What one fold has made, and nobody else has seen. */
export interface Mine {
  readonly copies: WeakSet<object>;
  /** Names of members by their group. */
  readonly groups: WeakMap<object, Map<string, Set<string>>>;
}

interface Members<V> {
  readonly [name: string]: V;
}

/** What a member is looked for as; null where nobody looks for it. */
export type GroupOf<V> = (value: V) => string | null;

export function newFold(): Mine {
  return { copies: new WeakSet(), groups: new WeakMap() };
}

/** The same object where this fold has made it, otherwise a copy; always a copy where each step stands for itself. */
export function mineOf<T extends object>(mine: Mine | null, given: T): { -readonly [K in keyof T]: T[K] } {
  if (mine?.copies.has(given)) return given;
  const copy = (Array.isArray(given) ? [...given] : { ...given }) as T;
  mine?.copies.add(copy);
  return copy;
}

/** `groupOf` is that of `namesIn`, where those are ever asked for. */
export function withMember<V>(
  mine: Mine | null,
  all: Members<V>,
  name: string,
  value: V,
  groupOf?: GroupOf<V>,
): Members<V> {
  const own = mineOf<{ [name: string]: V }>(mine, all);
  if (groupOf !== undefined) leaveGroup(mine, own, name, groupOf);
  own[name] = value;
  const group = groupOf?.(value) ?? null;
  if (group !== null) namesOf(mine?.groups.get(own), group)?.add(name);
  return own;
}

export function withoutMember<V>(
  mine: Mine | null,
  all: Members<V>,
  name: string,
  groupOf?: GroupOf<V>,
): Members<V> {
  if (!Object.hasOwn(all, name)) return all;
  const own = mineOf<{ [name: string]: V }>(mine, all);
  if (groupOf !== undefined) leaveGroup(mine, own, name, groupOf);
  delete own[name];
  return own;
}

/** A copy with one more, and without the oldest where those are too many: an encoder copies what it remembers at each event. */
export function remembering<V>(all: Members<V>, name: string, value: V, max: number): Members<V> {
  const copy: { [name: string]: V } = { ...all, [name]: value };
  const names = Object.keys(copy);
  // Names that look like numbers come first, however young they are.
  const oldest = names.find((one) => one !== name);
  if (names.length > max && oldest !== undefined) delete copy[oldest];
  return copy;
}

export function withItem<T>(mine: Mine | null, list: readonly T[], item: T): readonly T[] {
  return withItems(mine, list, [item]);
}

/** One by one: a call takes no more arguments than its stack has room for. */
export function withItems<T>(mine: Mine | null, list: readonly T[], items: readonly T[]): readonly T[] {
  const own = mineOf<T[]>(mine, list as T[]) as T[];
  for (const item of items) own.push(item);
  return own;
}

/** The members of a group. A fold looks at all of them once. */
export function namesIn<V>(
  mine: Mine | null,
  all: Members<V>,
  groupOf: GroupOf<V>,
  group: string,
): readonly string[] {
  if (mine === null) return Object.keys(all).filter((name) => groupOf(all[name] as V) === group);
  let groups = mine.groups.get(all);
  if (groups === undefined) {
    groups = new Map();
    for (const [name, value] of Object.entries(all)) {
      const its = groupOf(value);
      if (its !== null) namesOf(groups, its)?.add(name);
    }
    mine.groups.set(all, groups);
  }
  return [...(groups.get(group) ?? [])];
}

function namesOf(groups: Map<string, Set<string>> | undefined, group: string): Set<string> | undefined {
  const names = groups?.get(group) ?? new Set();
  groups?.set(group, names);
  return groups && names;
}

function leaveGroup<V>(mine: Mine | null, all: Members<V>, name: string, groupOf: GroupOf<V>): void {
  if (!Object.hasOwn(all, name)) return;
  const group = groupOf(all[name] as V);
  if (group !== null) mine?.groups.get(all)?.get(group)?.delete(name);
}
