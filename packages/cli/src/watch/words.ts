// Small facts in few words: what a tool was given and gave back, how long it took, what was used.

import { beginningOf, elsewhere, type Facts, isObject, type ToolError, type Usage } from "@runwire/protocol";
import { oneLine } from "./harmless.js";

const wordsMax = 200;

/** What a call was given. */
export function inputIn(payload: Facts): unknown {
  return shownOf(payload, "input");
}

/** What it gave. */
export function outputIn(payload: Facts): unknown {
  return shownOf(payload, "output");
}

/** Of what lies beside the log, how it begins and how much it is. */
function shownOf(payload: Facts, member: string): unknown {
  const where = elsewhere(payload, member);
  return where === undefined
    ? payload[member]
    : `${where.preview}… (${where.bytes.toLocaleString("en")} bytes in all)`;
}

export function inputWords(input: unknown, charsMax = wordsMax): string {
  if (!isObject(input)) return valueWords(input, charsMax);
  const members = Object.entries(input);
  const [only] = members;
  if (only !== undefined && members.length === 1) return valueWords(only[1], charsMax);
  return short(
    members.map(([name, value]) => `${name}: ${valueWords(value, charsMax)}`).join(", "),
    charsMax,
  );
}

/** What is meant to be read, where the output says which member that is. */
export function outputWords(output: unknown): string {
  const { text } = isObject(output) ? output : { text: undefined };
  return valueWords(typeof text === "string" ? text : output);
}

export function wholeWords(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? "");
}

export function failureWords(error: ToolError | string | null | undefined): string {
  if (error == null) return "failed";
  return short(typeof error === "string" ? error : (error.message ?? error.code));
}

function valueWords(value: unknown, charsMax = wordsMax): string {
  if (value === undefined || value === null) return "";
  return short(typeof value === "string" ? value : JSON.stringify(value), charsMax);
}

function short(text: string, charsMax = wordsMax): string {
  const line = oneLine(beginningOf(text, 4 * charsMax));
  return line.length > charsMax ? `${beginningOf(line, charsMax - 1)}…` : line;
}

export function durationWords(ms: number): string {
  const seconds = Math.max(0, ms) / 1000;
  if (seconds < 59.95) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60];
  if (hours > 0) return `${hours} h ${minutes} min`;
  return `${minutes} min ${whole % 60} s`;
}

export function ageWords(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)}h`;
  return `${Math.floor(seconds / 86_400)}d`;
}

const counted = [
  ["input_tokens", "tokens in"],
  ["output_tokens", "out"],
  ["reasoning_tokens", "reasoning"],
  ["cached_tokens", "cached"],
  ["requests", "requests"],
] as const;

/** Empty where nothing was used, or nobody said. */
export function usageWords(usage: Usage): string {
  const counts = counted.flatMap(([member, word]) => {
    const count = usage[member] ?? 0;
    return count === 0 ? [] : [`${count.toLocaleString("en")} ${word}`];
  });
  const cost = usage.cost_usd ?? 0;
  const dollars = cost === 0 ? "" : `$${cost.toFixed(cost < 1 ? 4 : 2)}`;
  const isWhole = (usage.unpriced_requests ?? 0) === 0;
  const costs = isWhole ? dollars : dollars === "" ? "cost not known" : `at least ${dollars}`;
  return [...counts, ...(costs === "" ? [] : [costs])].join(", ");
}
