// What a model has answered, read forgivingly: JSON alone, in a fence, or with prose around it; else a list as people
// write one. Nothing in here throws: what cannot be read is nothing.

import { isObject } from "@runwire/protocol";
import { limits } from "../limits.js";
import { shortened } from "../shortened.js";

/** Where a JSON value may begin is tried at so many places. */
const beginningsMax = 50;

/** The JSON objects and arrays of a text, in their order: prose has brackets too. */
export function valuesIn(text: string): readonly unknown[] {
  const values: unknown[] = [];
  let tried = 0;
  let after = 0;
  for (const { index } of text.matchAll(/[[{]/g)) {
    if (index < after) continue;
    if (tried++ >= beginningsMax) break;
    const end = endOf(text, index);
    if (end === null) continue;
    try {
      values.push(JSON.parse(text.slice(index, end)));
      after = end;
    } catch {
      // A bracket of the prose: a value may begin further on.
    }
  }
  return values;
}

/** Where a value that begins here ends, by its brackets; null where it does not. */
function endOf(text: string, from: number): number | null {
  let depth = 0;
  let isString = false;
  for (let i = from; i < text.length; i++) {
    const char = text[i];
    if (isString) {
      if (char === "\\") i += 1;
      else if (char === '"') isString = false;
    } else if (char === '"') isString = true;
    else if (char === "{" || char === "[") depth += 1;
    else if (char === "}" || char === "]") {
      depth -= 1;
      if (depth === 0) return i + 1;
    }
  }
  return null;
}

/** The list that an answer is, or has under one of these names, or under any. */
export function itemsIn(value: unknown, ...names: readonly string[]): readonly unknown[] {
  if (Array.isArray(value)) return value;
  if (!isObject(value)) return [];
  const named = names.map((name) => value[name]).find(Array.isArray);
  return named ?? Object.values(value).find(Array.isArray) ?? [];
}

/** The first of these members that is a text with something in it. */
export function textIn(value: unknown, ...members: readonly string[]): string {
  if (typeof value === "string") return value.trim();
  if (!isObject(value)) return "";
  const texts = members.map((member) => value[member]).filter((text) => typeof text === "string");
  return texts.find((text) => text.trim() !== "")?.trim() ?? "";
}

const listItem = /^[ \t]*(?:[-*•]|\(?\d{1,3}[.):])[ \t]+(.+)$/gm;

/** Lines of a list, numbered or with marks. */
export function listIn(text: string): readonly string[] {
  return [...text.matchAll(listItem)].map(([, item = ""]) => item.trim());
}

/** Different thoughts, each on one line, as many as are kept. */
export function candidatesIn(text: string): readonly string[] {
  const told = valuesIn(text).map((value) =>
    itemsIn(value, "candidates", "thoughts").map((item) =>
      textIn(item, "thought", "text", "candidate", "content", "title"),
    ),
  );
  const found = told.find((items) => items.some((one) => one !== "")) ?? listIn(text);
  const lines = found.map((one) => shortened(one.replace(/\s+/g, " ").trim(), limits.thoughtCharsMax));
  return [...new Set(lines.filter((line) => line !== ""))].slice(0, limits.thoughtsMax);
}

/** One for each thought, from 0 to 1; none where there is no number at all. What has none is worth nothing. */
export function scoresIn(text: string, count: number): readonly number[] {
  const told = valuesIn(text)
    .map((value) =>
      itemsIn(value, "scores").map((item) => numberIn(isObject(item) ? (item.score ?? item.value) : item)),
    )
    .filter((numbers) => numbers.some((one) => one !== null));
  // A note in brackets may have a number too, but hardly as many.
  const found = told.find(({ length }) => length === count) ?? told[0] ?? listIn(text).map(lastNumberIn);
  if (!found.some((one) => one !== null)) return [];
  const scores = Array.from({ length: count }, (_, i) => Math.max(0, found[i] ?? 0));
  const most = Math.max(...scores);
  // Some count to ten, and some to a hundred, whatever they were asked for.
  const scale = most <= 1 ? 1 : most <= 10 ? 10 : most <= 100 ? 100 : most;
  return scores.map((score) => Math.round((score / scale) * 100) / 100);
}

function numberIn(value: unknown): number | null {
  if (typeof value === "string") return lastNumberIn(value);
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

/** Of the end of a line, where its number is. */
const numberCharsMax = 40;

/** `a thought: 0.7`, `7/10`, `70 %`. */
function lastNumberIn(text: string): number | null {
  const end = text.slice(-numberCharsMax);
  const found = /(\d+(?:\.\d+)?)\s*(?:\/\s*\d+|%)?\s*[.)\]]?\s*$/.exec(end)?.[1];
  return found === undefined ? null : Number(found);
}
