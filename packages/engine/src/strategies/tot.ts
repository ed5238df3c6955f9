// A tree of thoughts. Each level is asked for, scored, and gone on from at its best thought; where even the best of a
// level is poor, the search goes back to the best thought of an earlier level that it has not gone on from.
//
//   depth 0           the task
//   depth 1    a 0.8    b 0.7    c 0.4       tot.expand, tot.evaluate: on from a
//   depth 2    a1 0.3   a2 0.2               poor: tot.backtrack to b, at depth 1
//   depth 2             b1 0.9   b2 0.5      on from b1 …

import type { AnyEvent, Facts } from "@runwire/protocol";
import { limits } from "../limits.js";

export interface Thought {
  readonly text: string;
  /** From 1. */
  readonly depth: number;
  /** The thought that it goes on from; null for the task itself. */
  readonly parent: number | null;
  /** From 0 to 1; null where nobody could say. */
  readonly score: number | null;
  /** Whether the search went on from it. */
  readonly isTried: boolean;
}

export interface Tot {
  readonly kind: "tot";
  /** In the order in which they came. */
  readonly thoughts: readonly Thought[];
  /** Where the search stands: the place of a thought, or null for the task itself. */
  readonly at: number | null;
  /** Places of the thoughts that wait for their scores. */
  readonly open: readonly number[];
  /** Whole answers so far. */
  readonly asks: number;
  /** Unusable answers in a row. */
  readonly misses: number;
  readonly backtracks: number;
}

export const firstTot: Tot = {
  kind: "tot",
  thoughts: [],
  at: null,
  open: [],
  asks: 0,
  misses: 0,
  backtracks: 0,
};

export function advanceTot(tot: Tot, e: AnyEvent): Tot {
  switch (e.type) {
    case "tot.expand":
      return expanded(tot, stringsIn(e.payload.candidates));
    case "tot.evaluate":
      return evaluated(tot, e.payload);
    case "tot.backtrack": {
      const { to } = e.payload;
      if (typeof to !== "number" || tot.thoughts[to] === undefined) return tot;
      return { ...goneOnFrom(tot, to), backtracks: tot.backtracks + 1 };
    }
    case "model.completed": {
      if (!String(e.payload.purpose).startsWith("tot.")) return tot;
      const misses = e.payload.unusable === true ? tot.misses + 1 : 0;
      return { ...tot, asks: tot.asks + 1, misses };
    }
    default:
      return tot;
  }
}

/** What is to be asked next; null where the search is over. */
export function nextOfTot(tot: Tot): "expand" | "evaluate" | null {
  if (tot.open.length > 0) return "evaluate";
  if (tot.misses >= limits.strategyTriesMax || depthOf(tot) >= limits.thoughtDepthMax) return null;
  return canGoOn(tot) ? "expand" : null;
}

/** How many thoughts lead to where it stands. */
export function depthOf({ thoughts, at }: Tot): number {
  return at === null ? 0 : (thoughts[at]?.depth ?? 0);
}

/** The thoughts that lead to where it stands, the first one first. */
export function pathOf({ thoughts, at }: Tot): readonly Thought[] {
  const path: Thought[] = [];
  for (let place = at; place !== null; ) {
    const thought: Thought | undefined = thoughts[place];
    if (thought === undefined) break;
    path.unshift(thought);
    place = thought.parent;
  }
  return path;
}

/** Where to go back to after a level was scored; null where going on is better. */
export function retreatFrom(tot: Tot): { readonly to: number; readonly reason: string } | null {
  const { thoughts, at, backtracks } = tot;
  const here = at === null ? undefined : thoughts[at];
  if (here?.score == null || here.score >= limits.thoughtScoreMin) return null;
  if (backtracks >= limits.backtracksMax || !canGoOn(tot)) return null;
  const { score, depth } = here;
  const better = thoughts
    .map((thought, to) => ({ thought, to }))
    .filter(({ thought }) => !thought.isTried && thought.depth < depth && (thought.score ?? 0) > score)
    .sort((a, b) => (b.thought.score ?? 0) - (a.thought.score ?? 0));
  const [best] = better;
  if (best === undefined) return null;
  const reason = `the best of depth ${depth} scores ${score}, less than ${limits.thoughtScoreMin}`;
  return { to: best.to, reason };
}

/** The place of the best; of those that are equally good, of the first. */
export function chosenOf(scores: readonly number[]): number {
  return scores.reduce((best, score, i) => (score > (scores[best] ?? 0) ? i : best), 0);
}

export function totGuidance(tot: Tot): string {
  const path = pathOf(tot);
  if (path.length === 0) return "";
  return `${pathHeading}\n${path.map(({ text }) => `- ${text}`).join("\n")}`;
}

export const pathHeading = "Several ways were weighed before. Follow this line of thought:";
export const sofarHeading = "The line of thought so far:";
export const openHeading = "These are the thoughts on how to go on:";

/** Whether there is room for a level: two asks, each of which may have to be asked again. */
function canGoOn({ asks, misses }: Tot): boolean {
  return asks - misses + 2 * limits.strategyTriesMax <= limits.searchAsksMax;
}

function expanded(tot: Tot, candidates: readonly string[]): Tot {
  const { thoughts, at } = tot;
  const depth = depthOf(tot) + 1;
  const more = candidates.map((text): Thought => ({ text, depth, parent: at, score: null, isTried: false }));
  return { ...tot, thoughts: [...thoughts, ...more], open: more.map((_, i) => thoughts.length + i) };
}

function evaluated(tot: Tot, { chosen, scores }: Facts): Tot {
  const given = Array.isArray(scores) ? scores : [];
  const thoughts = tot.thoughts.map((thought, place) => {
    const score: unknown = given[tot.open.indexOf(place)];
    return tot.open.includes(place) && typeof score === "number" ? { ...thought, score } : thought;
  });
  const to = tot.open[typeof chosen === "number" ? chosen : 0];
  const scored = { ...tot, thoughts, open: [] };
  return to === undefined ? scored : goneOnFrom(scored, to);
}

function goneOnFrom(tot: Tot, to: number): Tot {
  const thoughts = tot.thoughts.map((thought, place) =>
    place === to ? { ...thought, isTried: true } : thought,
  );
  return { ...tot, thoughts, at: to };
}

function stringsIn(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
}
