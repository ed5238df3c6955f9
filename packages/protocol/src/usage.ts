import type { Facts } from "./events.js";
import { type Mine, mineOf } from "./folding.js";
import { limits } from "./limits.js";

/** Sums of every number that `usage` events carry, by member name. */
export interface Usage {
  readonly [member: string]: number;
}

/** Whoever follows a run remembers its sums: names beyond their limits are left out. */
export function addedUsage(mine: Mine | null, usage: Usage, payload: Facts): Usage {
  const sums = mineOf<{ [member: string]: number }>(mine, usage);
  let names = Object.keys(sums).length;
  for (const [member, value] of Object.entries(payload)) {
    if (typeof value !== "number") continue;
    if (Object.hasOwn(sums, member)) {
      sums[member] = (sums[member] ?? 0) + value;
    } else if (names < limits.usageNamesMax && member.length <= limits.usageNameCharsMax) {
      sums[member] = value;
      names += 1;
    }
  }
  return sums;
}
