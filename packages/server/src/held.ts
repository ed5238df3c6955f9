/** What a value is counted for beside its characters. */
const valueBytes = 32;
/** It is counted no further than this. */
export const heldBytesMax = 16 * 1024 * 1024;

/** Objects within objects that are known again: a state keeps nearly all of them from the one before. */
const levelsKnown = 3;

/**
 * About what an encoder's state keeps in memory. Texts, which may be long, are not looked at. States are never changed, and
 * have most members, and theirs, from the one before: those are counted once.
 */
export function heldBytes(state: unknown): number {
  return Math.min(weigh(state, levelsKnown), heldBytesMax);
}

const known = new WeakMap<object, number>();

function weigh(value: unknown, levels: number): number {
  if (typeof value !== "object" || value === null || levels === 0) return counted(value);
  let bytes = known.get(value);
  if (bytes !== undefined) return bytes;
  bytes = valueBytes;
  for (const [name, member] of Object.entries(value)) {
    bytes += 2 * name.length + weigh(member, levels - 1);
    if (bytes >= heldBytesMax) break;
  }
  known.set(value, bytes);
  return bytes;
}

function counted(value: unknown): number {
  if (typeof value !== "object" || value === null)
    return valueBytes + (typeof value === "string" ? 2 * value.length : 0);
  const open: unknown[] = [value];
  let bytes = 0;
  while (open.length > 0 && bytes < heldBytesMax) {
    const one = open.pop();
    bytes += valueBytes;
    if (typeof one === "string") bytes += 2 * one.length;
    else if (typeof one === "object" && one !== null) {
      for (const [name, member] of Object.entries(one)) {
        bytes += 2 * name.length;
        open.push(member);
      }
    }
  }
  return bytes;
}
