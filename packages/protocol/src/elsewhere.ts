// Large members lie beside the log. What stands in their place in the event is empty or cut, and says nothing; the
// event's `spilled` says by member where the whole is, and how it begins.

import type { Facts } from "./events.js";
import { isObject } from "./parse.js";

export interface Elsewhere extends Facts {
  readonly blob_ref: string;
  readonly bytes: number;
  readonly preview: string;
}

/** Undefined for a member that is where it belongs. */
export function elsewhere({ spilled }: Facts, member: string): Elsewhere | undefined {
  const where = isObject(spilled) && Object.hasOwn(spilled, member) ? spilled[member] : undefined;
  if (!isObject(where)) return undefined;
  const { blob_ref, bytes, preview } = where;
  const isWhere = typeof blob_ref === "string" && typeof bytes === "number" && typeof preview === "string";
  return isWhere ? (where as Elsewhere) : undefined;
}
