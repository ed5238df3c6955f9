/** What a value is counted for beside its characters. */
const valueBytes = 32;
/** It is counted no further than this. */
export const heldBytesMax = 16 * 1024 * 1024;

/**
 * About what an encoder's state keeps in memory. Texts, which may be long, are not looked at. States are never changed, and
 * have most members from the one before: those are counted once.
 */
export function heldBytes(state: unknown): number {
  if (typeof state !== "object" || state === null) return counted(state);
  let bytes = valueBytes;
  for (const member of Object.values(state)) {
    bytes += typeof member === "object" && member !== null ? countedOnce(member) : counted(member);
  }
  return Math.min(bytes, heldBytesMax);
}

const known = new WeakMap<object, number>();

function countedOnce(member: object): number {
  const bytes = known.get(member) ?? counted(member);
  known.set(member, bytes);
  return bytes;
}

function counted(value: unknown): number {
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
  return Math.min(bytes, heldBytesMax);
}
