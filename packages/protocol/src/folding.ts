// What a fold gathers may be many: calls, requests, parts. A copy of them for each event costs the square of the log, so
// whoever folds many events copies each of these once and goes on in its own copy. What a fold was given is never changed.

/** The copies that one fold has made, and nobody else has seen. */
export type Mine = WeakSet<object>;

/** The same object where this fold has made it, otherwise a copy; always a copy where each step stands for itself. */
export function mineOf<T extends object>(mine: Mine | null, given: T): { -readonly [K in keyof T]: T[K] } {
  if (mine?.has(given)) return given;
  const copy = (Array.isArray(given) ? [...given] : { ...given }) as T;
  mine?.add(copy);
  return copy;
}

export function withMember<V>(
  mine: Mine | null,
  all: { readonly [name: string]: V },
  name: string,
  value: V,
): { readonly [name: string]: V } {
  const own = mineOf<{ [name: string]: V }>(mine, all);
  own[name] = value;
  return own;
}

export function withoutMember<V>(
  mine: Mine | null,
  all: { readonly [name: string]: V },
  name: string,
): { readonly [name: string]: V } {
  if (!Object.hasOwn(all, name)) return all;
  const own = mineOf<{ [name: string]: V }>(mine, all);
  delete own[name];
  return own;
}

export function withItem<T>(mine: Mine | null, list: readonly T[], item: T): readonly T[] {
  const own = mineOf<T[]>(mine, list as T[]) as T[];
  own.push(item);
  return own;
}
