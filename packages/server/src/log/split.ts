// What is too long for one event: a delta becomes several, anything else is refused.

import { type Draft, type Facts, limits, type NodeText, nodeTexts, RunwireError } from "@runwire/protocol";
import { charsBeside } from "./groups.js";

/**
 * A delta longer than the limit becomes several, each with all other members, and of `nodes` its own; no character is
 * cut in two.
 */
export function splitDelta(draft: Draft): readonly Draft[] {
  const { text, nodes } = draft.payload as Facts;
  // What sounds is joined by its chunks; a text beside them is a member like any other.
  if (draft.type === "audio.delta") return [draft];
  const bytesMax = limits.deltaBytesMax;
  if (typeof text !== "string" || text.length * 3 <= bytesMax) return [draft];
  const bytes = Buffer.byteLength(text);
  if (bytes <= bytesMax) return [draft];
  if (bytes > limits.eventBytesMax) throw tooLarge();
  const charsMax = bytes === text.length ? bytesMax : Math.floor(bytesMax / 3);
  const repeatedChars = Math.ceil(text.length / charsMax) * charsBeside("text", draft.payload as Facts);
  if (repeatedChars > limits.batchBytesMax) throw tooLarge();
  const turns = nodeTexts(draft.payload as Facts);
  const pieces: Draft[] = [];
  for (let from = 0; from < text.length; ) {
    let to = Math.min(from + charsMax, text.length);
    if (to < text.length && isPair(text.charCodeAt(to - 1), text.charCodeAt(to))) to -= 1;
    const said = { text: text.slice(from, to), ...(turns === nodes && { nodes: turnsIn(turns, from, to) }) };
    pieces.push({ ...draft, payload: { ...draft.payload, ...said } as never });
    from = to;
  }
  return pieces;
}

/** Who says which stretch of a part of the text. */
function turnsIn(turns: readonly NodeText[], from: number, to: number): readonly NodeText[] {
  let end = 0;
  return turns.flatMap((turn) => {
    const begin = end;
    end += turn.chars;
    const chars = Math.min(end, to) - Math.max(begin, from);
    return chars > 0 ? [{ ...turn, chars }] : [];
  });
}

function isPair(high: number, low: number): boolean {
  return high >= 0xd800 && high <= 0xdbff && low >= 0xdc00 && low <= 0xdfff;
}

export function tooLarge(): RunwireError {
  return new RunwireError("KAI-REQUEST-SIZE-0001", `an event may have ${limits.eventBytesMax} bytes`);
}
