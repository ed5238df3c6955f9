// What the demo thinks before it begins, where it is asked to: which ways there are and what each is worth, or which
// parts a task has. At first sight it is best to go by what matters most; where nobody has said what that is, this leads
// nowhere, and it has to think again.

import type { ModelRequest, Purpose } from "../model.js";
import { doneHeading } from "../strategies/got.js";
import { openHeading, sofarHeading } from "../strategies/tot.js";
import { aspectsIn, drawbacksPrefix, knownIn } from "./subjects.js";
import { helperPrefix, type Turn, turnOf } from "./turn.js";

interface Thinking {
  readonly reasoning: string;
  readonly text: string;
}

/** The last message says what is wanted; those before it are the conversation. */
export function thoughtFor({ messages, system }: ModelRequest, purpose: Purpose): Thinking {
  const wish =
    messages.at(-1)?.role === "user" ? String((messages.at(-1) as { content: string }).content) : "";
  const turn = turnOf({ messages: messages.slice(0, -1), system });
  switch (purpose) {
    case "tot.expand": {
      const ways = waysFrom(turn, numberedIn(wish, sofarHeading));
      return {
        reasoning: "How would one go about this? I can think of more than one way.",
        text: JSON.stringify({ candidates: ways.map(([way]) => way) }),
      };
    }
    case "tot.evaluate": {
      const ways = waysFrom(turn, numberedIn(wish, sofarHeading));
      const open = numberedIn(wish, openHeading);
      const scores = open.map((text) => ways.find(([way]) => way === text)?.[1] ?? 0);
      return { reasoning: "What would each of these lead to?", text: JSON.stringify({ scores }) };
    }
    case "got.plan":
      return {
        reasoning: "These do not depend on each other; only the comparison needs them all.",
        text: JSON.stringify({ nodes: partsOf(turn) }),
      };
    case "got.expand":
      return { reasoning: "", text: JSON.stringify({ nodes: moreFrom(turn, wish) }) };
  }
}

type Way = readonly [text: string, score: number];

/** The ways to go on from a line of thought, with what each is worth. */
function waysFrom({ task, subjects }: Turn, path: readonly string[]): readonly Way[] {
  const names = listed(subjects);
  const first: readonly Way[] = [
    ["Find out what matters most, and go by that.", 0.9],
    [`Look into ${names}, and compare what comes back.`, 0.7],
    ["Answer from memory, which is quick.", 0.3],
  ];
  const [aspect] = aspectsIn(task);
  const byWhatMatters: readonly Way[] =
    aspect === undefined
      ? [
          ["Take it that speed matters most.", 0.4],
          ["Take it that everything matters alike.", 0.3],
          ["Guess from the words of the question.", 0.2],
        ]
      : [
          [`Look into ${names}, and rank them by ${aspect}.`, 0.9],
          [`Leave out what is not known for ${aspect}.`, 0.6],
          ["Ask whether that is all that matters.", 0.3],
        ];
  const byLooking: readonly Way[] = [
    ["Have all of them looked into at the same time.", 0.9],
    ["Look into one after the other, and stop at the first that is good.", 0.6],
    ["Look into the best known only.", 0.4],
  ];
  const last: readonly Way[] = [
    ["Say of each what is good and what is not, and which to try first.", 0.9],
    ["Tell everything that was found, and leave the choice to whoever asked.", 0.6],
    ["Name the best one, and nothing else.", 0.5],
  ];
  if (path.length === 0) return first;
  if (path.length > 1) return last;
  return path[0] === first[0]?.[0] ? byWhatMatters : byLooking;
}

interface DemoPart {
  readonly id: string;
  readonly task: string;
  readonly depends_on: readonly string[];
}

export const sideBySide = "Put side by side: ";

/** Each subject by itself, and then all of them. */
function partsOf({ subjects }: Turn): readonly DemoPart[] {
  const each = subjects.map((subject) => ({
    id: idOf(subject),
    task: `${helperPrefix}${subject}`,
    depends_on: [],
  }));
  if (each.length < 2) return each;
  const all = {
    id: "side-by-side",
    task: `${sideBySide}${listed(subjects)}`,
    depends_on: each.map(({ id }) => id),
  };
  return [...each, all];
}

/** The first of what it knows is looked at twice. */
function moreFrom({ subjects }: Turn, wish: string): readonly DemoPart[] {
  const [first = ""] = subjects;
  const id = idOf(first);
  if (!wish.includes(`\n${doneHeading(id)}\n`) || knownIn(first).length === 0) return [];
  return [
    {
      id: `drawbacks-of-${id}`,
      task: `${helperPrefix}${drawbacksPrefix}${first}`,
      depends_on: [id],
    },
  ];
}

function idOf(subject: string): string {
  return (
    subject
      .toLowerCase()
      .replace(/[^a-z0-9]+/g, "-")
      .replace(/^-|-$/g, "") || "part"
  );
}

function listed(names: readonly string[]): string {
  return names.length < 2 ? names.join() : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}

/** The numbered lines below a heading. */
function numberedIn(text: string, heading: string): readonly string[] {
  const at = text.indexOf(`${heading}\n`);
  if (at < 0) return [];
  const [block = ""] = text.slice(at + heading.length + 1).split("\n\n");
  return block.split("\n").map((line) => line.replace(/^\d+\. /, ""));
}
