// A graph of parts as a model draws it, made sound: parts have names of their own, depend on parts that there are, and
// never on themselves, however far around. What had to be mended is told.

import { isObject } from "@runwire/protocol";
import { limits } from "../limits.js";
import { shortened } from "../shortened.js";
import { itemsIn, listIn, textIn, valuesIn } from "./heard.js";

/** A part of the task, and the parts whose results it needs. */
export interface Part {
  readonly id: string;
  readonly task: string;
  readonly deps: readonly string[];
}

export interface Drawn {
  readonly parts: readonly Part[];
  /** What was left out of it. */
  readonly mended: readonly string[];
}

interface Given {
  readonly name: string;
  readonly task: string;
  readonly deps: readonly string[];
}

/** `known` are the parts that there are already, on which new ones may depend; at most so many are added. */
export function graphIn(text: string, known: readonly Part[], partsMax: number): Drawn {
  const values = valuesIn(text);
  const told = values
    .map((value) => itemsIn(value, "nodes", "parts", "tasks").map(givenIn))
    .map((given) => given.filter(({ task }) => task !== ""))
    .find((given) => given.length > 0);
  // Who answers with an object, and names none in it, means none.
  const listed = values.some(isObject) ? [] : listIn(text);
  return sound(told ?? listed.map((task): Given => ({ name: "", task, deps: [] })), known, partsMax);
}

function givenIn(item: unknown): Given {
  const task = textIn(item, "task", "prompt", "description", "title");
  if (!isObject(item)) return { name: "", task, deps: [] };
  const name = item.id ?? item.name;
  const deps = [item.depends_on, item.deps, item.dependencies].find(Array.isArray) ?? [];
  return { name: isName(name) ? String(name) : "", task, deps: deps.filter(isName).map(String) };
}

function isName(value: unknown): boolean {
  return (typeof value === "string" && value.trim() !== "") || typeof value === "number";
}

function sound(given: readonly Given[], known: readonly Part[], partsMax: number): Drawn {
  const mended: string[] = [];
  if (given.length > partsMax) mended.push(`${given.length - partsMax} parts too many`);
  const taken = new Set(known.map(({ id }) => id));
  /** Ids by the names that were given: two of one name cannot both be meant by it. */
  const ids = new Map(known.map(({ id }) => [id, id]));
  const kept = given.slice(0, partsMax).map((part, i) => {
    const id = freeId(part.name, i + 1, taken);
    taken.add(id);
    if (part.name !== "" && !ids.has(part.name)) ids.set(part.name, id);
    return { ...part, id };
  });
  const parts: Part[] = kept.map(({ id, task }) => ({
    id,
    task: shortened(task, limits.nodeTaskCharsMax),
    deps: [],
  }));
  // One edge after the other: the one that would close a circle is left out.
  for (const [i, { id, deps }] of kept.entries()) {
    for (const name of new Set(deps)) {
      const dep = ids.get(name);
      if (dep === undefined) mended.push(`${id} needs ${short(name)}, which is not there`);
      else if (leadsTo(parts, dep, id)) mended.push(`${id} needs ${dep}, which would be a circle`);
      else parts[i] = { ...(parts[i] as Part), deps: [...new Set([...(parts[i] as Part).deps, dep])] };
    }
  }
  return { parts, mended };
}

const nameCharsMax = 40;

/** Short, and without what would be hard to read in a line. */
function short(name: string): string {
  return shortened(name.trim().replace(/[^\p{L}\p{N}._-]+/gu, "-"), nameCharsMax);
}

function freeId(name: string, place: number, taken: ReadonlySet<string>): string {
  const wanted = short(name);
  if (wanted !== "" && !taken.has(wanted)) return wanted;
  let n = place;
  while (taken.has(`n${n}`)) n += 1;
  return `n${n}`;
}

/** Whether a part needs another, or is it. */
function leadsTo(parts: readonly Part[], from: string, to: string, seen = new Set<string>()): boolean {
  if (from === to) return true;
  if (seen.has(from)) return false;
  seen.add(from);
  const { deps = [] } = parts.find(({ id }) => id === from) ?? {};
  return deps.some((dep) => leadsTo(parts, dep, to, seen));
}

export function edgesIn(parts: readonly Part[]): number {
  return parts.reduce((sum, { deps }) => sum + deps.length, 0);
}
