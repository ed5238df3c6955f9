// Which nodes of a graph say what, where nodes that run side by side speak in turns. A delta names its node in `node`, or
// in its scope's `node_id`; or in that of its `envelope`, where the name is no id here. One that was joined from several of
// them keeps the turns in `nodes`.

import type { Facts, Scope } from "./events.js";
import { isObject } from "./parse.js";

/** A stretch of a delta's text, and who said it, as far as that was named. */
export interface NodeText {
  readonly node?: string;
  readonly node_id?: string;
  /** UTF-16 units, as strings count here. */
  readonly chars: number;
}

/** The stretches of a delta; one, where it was not joined from several. */
export function nodeTexts(payload: Facts, scope: Scope = {}): readonly NodeText[] {
  const chars = typeof payload.text === "string" ? payload.text.length : 0;
  const { node, nodes } = payload;
  if (isTurns(nodes, chars)) return nodes;
  const { node_id = nodeIdIn(payload.envelope) } = scope;
  return [
    {
      ...(typeof node === "string" ? { node } : {}),
      ...(node_id === undefined ? {} : { node_id }),
      chars,
    },
  ];
}

function nodeIdIn(envelope: unknown): string | undefined {
  return isObject(envelope) && typeof envelope.node_id === "string" ? envelope.node_id : undefined;
}

/** A producer may have a member of this name that means something else. */
function isTurns(nodes: unknown, chars: number): nodes is readonly NodeText[] {
  if (!Array.isArray(nodes) || nodes.length === 0) return false;
  let sum = 0;
  for (const one of nodes) {
    if (!isObject(one) || !Number.isInteger(one.chars) || Number(one.chars) <= 0) return false;
    const { node, node_id } = one;
    if (
      (node !== undefined && typeof node !== "string") ||
      (node_id !== undefined && typeof node_id !== "string")
    )
      return false;
    sum += Number(one.chars);
  }
  return sum === chars;
}
