// What the demo knows by heart: a few subjects, what is to be found about each, and what each is good for. And what it
// makes of a question: the things to look into.

import { quote } from "./quote.js";

export const aspects = ["speed", "many features", "a small download"] as const;
export type Aspect = (typeof aspects)[number];

interface Subject {
  readonly name: string;
  readonly isNamed: RegExp;
  readonly fact: string;
  /** How good it is at each, in the order of the aspects; more is better. */
  readonly marks: readonly [number, number, number];
}

const topics: readonly { readonly about: RegExp; readonly subjects: readonly Subject[] }[] = [
  {
    about: /\b(chart|plot|graph)/i,
    subjects: [
      {
        name: "uPlot",
        isNamed: /\buplot\b/i,
        fact: "very small and very fast for time series; few chart types, little interaction.",
        marks: [3, 1, 3],
      },
      {
        name: "ECharts",
        isNamed: /\becharts\b/i,
        fact: "many chart types and good defaults; the largest download of the three.",
        marks: [2, 3, 1],
      },
      {
        name: "Observable Plot",
        isNamed: /\bobservable plot\b/i,
        fact: "concise marks and scales for exploring data; not made for live updates.",
        marks: [1, 2, 2],
      },
    ],
  },
  {
    about: /\b(database|store|sql)/i,
    subjects: [
      {
        name: "SQLite",
        isNamed: /\bsqlite\b/i,
        fact: "one file, no server, hard to beat on a single machine; one writer at a time.",
        marks: [2, 1, 3],
      },
      {
        name: "PostgreSQL",
        isNamed: /\bpostgres(ql)?\b/i,
        fact: "many writers, rich types and extensions; a server that someone must run.",
        marks: [1, 3, 1],
      },
      {
        name: "DuckDB",
        isNamed: /\bduckdb\b/i,
        fact: "columns and fast analysis inside a process; not for many small writes.",
        marks: [3, 2, 2],
      },
    ],
  },
  {
    about: /\b(framework|front.?end|ui\b)/i,
    subjects: [
      {
        name: "React",
        isNamed: /\bReact\b/,
        fact: "the largest ecosystem and the most people who know it; a runtime comes with it.",
        marks: [1, 3, 1],
      },
      {
        name: "Svelte",
        isNamed: /\bsvelte\b/i,
        fact: "compiles itself away and reads like plain markup; a smaller ecosystem.",
        marks: [3, 2, 2],
      },
      {
        name: "Lit",
        isNamed: /\bLit\b/,
        fact: "thin layer over web components that any page can use; you bring the rest.",
        marks: [2, 1, 3],
      },
    ],
  },
];

const known = topics.flatMap(({ subjects }) => subjects);
const unknownFact = "nothing is written about it here; the demo knows only a few subjects by heart.";
const listedMax = 5;
const subjectCharsMax = 60;

/** By what the question names, or by what it is about; else by what was asked before it, the last first. */
export function subjectsOf(question: string, before: readonly string[] = []): readonly string[] {
  const asked = [question, ...before.toReversed()];
  const found = asked.map(subjectsIn).find((subjects) => subjects.length > 0);
  return found ?? ["what it is for", "what it costs", "what people say"];
}

/** None where it names none, and is about nothing that the demo knows. */
export function subjectsIn(question: string): readonly string[] {
  const listed = /\b(?:compare|between|of)\s+(.+?,.+?)(?:[.?!]|$)/i.exec(question)?.[1] ?? "";
  const items = itemsOf(listed);
  if (items.length >= 2 && !numberWord.test(items[0] ?? "")) return items.slice(0, listedMax);
  const names = knownIn(question);
  if (names.length > 0) return names;
  const topic = topics.find(({ about }) => about.test(question));
  if (topic !== undefined) return topic.subjects.slice(0, countIn(question)).map(({ name }) => name);
  const pair = itemsOf(/\b(?:compare|between)\s+(.+? and .+?)(?:[.?!]|$)/i.exec(question)?.[1] ?? "");
  return pair.length === 2 && !numberWord.test(pair[0] ?? "") ? pair : [];
}

/** `a, b and c`; what says how to go about it is none of them. */
export function itemsOf(list: string): readonly string[] {
  const items = list.split(/,\s*(?:and\s+)?|\s+and\s+/).map((item) => item.trim());
  const isItem = (item: string): boolean =>
    item !== "" && !/^(?:in|with|for|by|please|but|then|briefly|save)\b/i.test(item);
  return items.filter(isItem).map((item) => knownBy(item)?.name ?? quote(item, subjectCharsMax));
}

/** Those that the demo knows something about, in the order in which they are named. */
export function knownIn(text: string): readonly string[] {
  return known
    .map(({ name, isNamed }) => ({ name, at: text.search(isNamed) }))
    .filter(({ at }) => at >= 0)
    .sort((a, b) => a.at - b.at)
    .map(({ name }) => name);
}

export const drawbacksPrefix = "the drawbacks of ";

export function factOn(subject: string): string {
  if (!subject.startsWith(drawbacksPrefix)) return knownBy(subject)?.fact ?? unknownFact;
  // What is good comes first, and what is not comes after it.
  return knownBy(subject.slice(drawbacksPrefix.length))?.fact.split("; ")[1] ?? unknownFact;
}

export function saysNothing(fact: string): boolean {
  return fact.includes(unknownFact);
}

const wishes: readonly (readonly [Aspect, RegExp])[] = [
  ["speed", /\b(speed|fast|quick)/i],
  ["many features", /\b(features?|rich|powerful)\b/i],
  ["a small download", /\b(small|size|download|light|tiny)/i],
];

/** What matters to somebody who says this. */
export function aspectsIn(text: string): readonly Aspect[] {
  return wishes.filter(([, says]) => says.test(text)).map(([aspect]) => aspect);
}

/** The best of them at all of this; the first of those that are equally good. */
export function bestOf(subjects: readonly string[], wanted: readonly Aspect[]): string | undefined {
  const markOf = (subject: string): number =>
    wanted.reduce((sum, aspect) => sum + (knownBy(subject)?.marks[aspects.indexOf(aspect)] ?? 0), 0);
  return subjects.toSorted((a, b) => markOf(b) - markOf(a))[0];
}

function knownBy(subject: string): Subject | undefined {
  return known.find(({ name }) => name.toLowerCase() === subject.toLowerCase());
}

const numbers = ["two", "three", "four", "five"];
const numberWord = new RegExp(`^(?:the\\s+)?(?:${numbers.join("|")}|[2-9])\\b`, "i");

function countIn(question: string): number | undefined {
  const said = new RegExp(`\\b(?:${numbers.join("|")}|[2-9])\\b`, "i").exec(question)?.[0];
  if (said === undefined) return undefined;
  return numbers.includes(said.toLowerCase()) ? numbers.indexOf(said.toLowerCase()) + 2 : Number(said);
}
