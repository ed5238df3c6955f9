// The asks of a tree of thoughts. A level that was scored is the end of a step, so that one can go back to it.

import type { Draft } from "@runwire/protocol";
import { limits } from "../limits.js";
import type { Loop } from "../loop.js";
import { boundary } from "../steps.js";
import type { Work } from "../work.js";
import { askFor, type Reading } from "./asking.js";
import { candidatesIn, scoresIn } from "./heard.js";
import {
  advanceTot,
  chosenOf,
  depthOf,
  nextOfTot,
  openHeading,
  pathOf,
  retreatFrom,
  sofarHeading,
  type Tot,
} from "./tot.js";

const system = "You think about how to go about a task before anybody begins with it.";

export async function totStep(loop: Loop, work: Work, tot: Tot): Promise<void> {
  if (nextOfTot(tot) === "evaluate") await evaluate(loop, work, tot);
  else await expand(loop, work, tot);
}

async function expand(loop: Loop, work: Work, tot: Tot): Promise<void> {
  const depth = depthOf(tot) + 1;
  const wish = [
    ...sofar(tot),
    `Write ${limits.thoughtsAsked} different thoughts on ${tot.at === null ? "how to begin" : "how to go on from there"}, ` +
      "each a sentence that says what to do and why. Do not do it yet.",
    'Answer with JSON and nothing else: {"candidates": ["…", "…", "…"]}',
    ...again(tot),
  ].join("\n\n");
  await askFor(loop, work, {
    ...{ purpose: "tot.expand", system, wish },
    read(text): Reading | null {
      const candidates = candidatesIn(text);
      if (candidates.length === 0) return null;
      const events: Draft[] = [{ type: "tot.expand", payload: { candidates, depth } }];
      return { thought: `Thoughts at depth ${depth}:\n${numbered(candidates)}\n`, events };
    },
  });
}

async function evaluate(loop: Loop, work: Work, tot: Tot): Promise<void> {
  const candidates = tot.open.map((place) => tot.thoughts[place]?.text ?? "");
  const wish = [
    ...sofar(tot),
    `${openHeading}\n${numbered(candidates)}`,
    "Score each from 0 to 1: how likely it is that going on from it leads to a good answer. Be strict: less than " +
      `${limits.thoughtScoreMin} means that it leads nowhere.`,
    `Answer with JSON and nothing else, a number for each in their order: {"scores": [${candidates.map(() => "0.0").join(", ")}]}`,
    ...again(tot),
  ].join("\n\n");
  await askFor(loop, work, {
    ...{ purpose: "tot.evaluate", system, wish },
    async read(text): Promise<Reading | null> {
      const scores = scoresIn(text, candidates.length);
      if (scores.length === 0 && tot.misses + 1 < limits.strategyTriesMax) return null;
      const chosen = chosenOf(scores);
      const evaluated: Draft<"tot.evaluate"> = { type: "tot.evaluate", payload: { chosen, scores } };
      const after = advanceTot(tot, evaluated as never);
      const retreat = retreatFrom(after);
      const score = scores[chosen] === undefined ? "" : ` (${scores[chosen]})`;
      const going = `I go on from: ${candidates[chosen]}${score}\n`;
      if (retreat === null)
        return { thought: going, events: [evaluated], after: [await boundary(loop, "text-only")] };
      const { to, reason } = retreat;
      const { text: thought = "", depth: to_depth = 0 } = after.thoughts[to] ?? {};
      return {
        thought: `Back to depth ${to_depth}, as ${reason}: ${thought}\n`,
        events: [evaluated, { type: "tot.backtrack", payload: { reason, to_depth, to, thought } }],
        after: [await boundary(loop, "text-only")],
      };
    },
  });
}

function sofar(tot: Tot): readonly string[] {
  const path = pathOf(tot).map(({ text }) => text);
  return path.length === 0 ? [] : [`${sofarHeading}\n${numbered(path)}`];
}

function again({ misses }: Tot): readonly string[] {
  return misses === 0 ? [] : ["Your last answer could not be read. Write the JSON, and nothing around it."];
}

function numbered(texts: readonly string[]): string {
  return texts.map((text, i) => `${i + 1}. ${text}`).join("\n");
}
