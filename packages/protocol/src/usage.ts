import type { Facts } from "./events.js";
import { type Mine, mineOf } from "./folding.js";

/** Sums of every number that `usage` events carry, by member name. */
export interface Usage {
  readonly [member: string]: number;
}

export function addedUsage(mine: Mine | null, usage: Usage, payload: Facts): Usage {
  const sums = mineOf<{ [member: string]: number }>(mine, usage);
  for (const [member, value] of Object.entries(payload)) {
    if (typeof value === "number")
      sums[member] = (Object.hasOwn(sums, member) ? (sums[member] ?? 0) : 0) + value;
  }
  return sums;
}
