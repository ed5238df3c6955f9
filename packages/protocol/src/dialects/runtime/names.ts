// What the documents tell of the rows.

import { eventTypes, type NamedType } from "../../events.js";
import { camelId } from "./ids.js";
import { type Row, rows } from "./rows.js";
import { isFactType } from "./tell.js";

export interface RuntimeName {
  readonly type: NamedType;
  /** What its messages are called. */
  readonly as: readonly string[];
  /** Members that stand elsewhere or have another name: `call_id → toolCallId`. */
  readonly members: readonly string[];
}

/** Every type of the log that has a name, with its name in a runtime event stream. */
export function runtimeNames(): readonly RuntimeName[] {
  return (Object.keys(eventTypes) as NamedType[]).map((type) => {
    const own = rows.filter((row) => row.type === type);
    if (own.length === 0) return { type, as: [isFactType(type) ? type : `x.runwire.${type}`], members: [] };
    const members = own.flatMap(membersTold);
    const isPartial = own.every(({ needs }) => needs !== undefined);
    const names = [...own.map(({ as }) => as), ...(isPartial ? [`x.runwire.${type}`] : [])];
    return { type, as: [...new Set(names)], members: [...new Set(members)] };
  });
}

function membersTold({ ids = {}, names = {}, within }: Row): readonly string[] {
  return [
    ...Object.entries(ids).map(([name, id]) => `${name} → ${camelId[id]}`),
    ...Object.entries(names).map(([name, wire]) => `${name} → payload.${wire}`),
    ...(within === undefined ? [] : [`all → payload.${within}`]),
  ];
}
