// The edge where `unknown` becomes a Draft. Everything behind it is typed and checked.

import { RunwireError } from "./errors.js";
import { type Draft, type EventType, planIntents, type Scope, typeRow } from "./events.js";
import { isId } from "./ids.js";
import { limits } from "./limits.js";
import { isRunState } from "./state.js";

/**
 * A draft from parsed JSON. Throws PROTO-0001 for a malformed one and PROTO-0002 for an unknown type;
 * `where` ("line 3") begins the message.
 */
export function parseDraft(value: unknown, where = "event", bounds: JsonLimits = limits): Draft {
  if (!isObject(value)) throw malformed(where, "must be a JSON object with `type` and `payload`");
  const { type, payload, child_id, scope } = value;
  if (typeof type !== "string") throw malformed(where, "`type` must be a string");
  const checks = checksOf(type);
  if (checks === undefined) {
    const name = JSON.stringify(type.slice(0, 80));
    throw new RunwireError(
      "KAI-STREAM-PROTO-0002",
      `${where}: ${name} (a type of your own is \`x.<vendor>.<name>\`)`,
    );
  }
  if (!isObject(payload)) throw malformed(where, "`payload` must be an object");
  for (const check of checks) {
    const wrong = check(payload);
    if (wrong !== undefined) throw malformed(where, `${type}: ${wrong}`);
  }
  const unfit = unfitJson(payload, bounds);
  if (unfit !== undefined) throw malformed(where, `\`payload\` ${unfit}`);
  const draft: { -readonly [K in keyof Draft]: Draft[K] } = {
    type: type as EventType,
    payload: payload as never,
  };
  if (child_id !== undefined && child_id !== null) {
    if (!isId(child_id)) throw malformed(where, "`child_id` must be an id");
    draft.child_id = child_id;
  }
  if (scope !== undefined && scope !== null) draft.scope = parseScope(scope, where);
  return draft;
}

/**
 * A parsed line of the log as a client reads it: a draft with the numbers of the wire. A server makes larger events than
 * producers may send (it joins deltas, and hands on whole conversations), so the limits of drafts are not its own.
 */
export function parseWireDraft(value: unknown, where = "event"): Draft {
  const draft = parseDraft(value, where, readBounds);
  const { id, ts, run_id, pos, seq } = value as { [member: string]: unknown };
  for (const [name, member] of [
    ["id", id],
    ["run_id", run_id],
  ] as const) {
    if (member !== undefined && !isId(member)) throw malformed(where, `\`${name}\` must be an id`);
  }
  // Encoders quote a time as it is, so nothing but a time may pass.
  if (ts !== undefined && !isTime(ts)) throw malformed(where, "`ts` must be an RFC 3339 time");
  for (const [name, member] of [
    ["pos", pos],
    ["seq", seq],
  ] as const) {
    if (member !== undefined && !isCount(member))
      throw malformed(where, `\`${name}\` must be a whole number`);
  }
  return {
    ...draft,
    ...(id === undefined ? {} : { id: id as string }),
    ...(ts === undefined ? {} : { ts: ts as string }),
    ...(run_id === undefined ? {} : { run_id: run_id as string }),
    ...(pos === undefined ? {} : { pos: pos as number }),
    ...(seq === undefined ? {} : { seq: seq as number }),
  };
}

function parseScope(scope: unknown, where: string): Scope {
  if (!isObject(scope)) throw malformed(where, "`scope` must be an object");
  const entries = Object.entries(scope);
  if (entries.length > 32) throw malformed(where, "`scope` has more than 32 members");
  for (const [name, id] of entries) {
    if (!/^[a-z][a-z0-9_]{0,63}$/.test(name)) throw malformed(where, "`scope` names are like `trace_id`");
    if (!isId(id)) throw malformed(where, `\`scope.${name}\` must be an id`);
  }
  return scope as Scope;
}

type Check = (payload: { [member: string]: unknown }) => string | undefined;

const compiled = new Map<string, readonly Check[]>();

function checksOf(type: string): readonly Check[] | undefined {
  let checks = compiled.get(type);
  if (checks !== undefined) return checks;
  const row = typeRow(type);
  if (row === undefined) return undefined;
  checks = Object.entries(row.members).map(([member, kind]) => memberCheck(member, kind));
  // Vendor and family types have no checks and no end of names; only the closed set is kept.
  if (checks.length > 0) compiled.set(type, checks);
  return checks;
}

function memberCheck(member: string, kindText: string): Check {
  const optional = kindText.endsWith("?");
  const kind = optional ? kindText.slice(0, -1) : kindText;
  const test = kinds[kind] ?? oneOf(kind.split("|"));
  const wrong = `\`${member}\` must be ${says[kind] ?? `one of ${kind.split("|").join(", ")}`}`;
  return (payload) => {
    const value = Object.hasOwn(payload, member) ? payload[member] : undefined;
    if (value === undefined || value === null) return optional ? undefined : wrong;
    return test(value) ? undefined : wrong;
  };
}

const timePattern = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/;

const kinds: { readonly [kind: string]: (value: unknown) => boolean } = {
  string: (value) => typeof value === "string",
  boolean: (value) => typeof value === "boolean",
  number: isNumber,
  count: isCount,
  strings: isStrings,
  id: isId,
  time: isTime,
  state: isRunState,
  failure: (value) => typeof value === "string" || (isObject(value) && typeof value.code === "string"),
  plan: (value) =>
    isObject(value) &&
    isId(value.id) &&
    absentOr(isId, value.run_id) &&
    absentOr(isNumber, value.est_total_cost_usd) &&
    Array.isArray(value.steps) &&
    value.steps.every(isPlanStep),
};

function isPlanStep(step: unknown): boolean {
  return (
    isObject(step) &&
    isId(step.id) &&
    typeof step.title === "string" &&
    absentOr(oneOf(planIntents), step.intent) &&
    absentOr(isStrings, step.est_tools) &&
    absentOr(isNumber, step.est_cost_usd)
  );
}

const says: { readonly [kind: string]: string } = {
  string: "a string",
  boolean: "true or false",
  number: "a number",
  count: "a whole number from 0",
  strings: "an array of strings",
  id: "an id (letters, digits, `_.:-`, at most 128)",
  time: "an RFC 3339 time",
  state: "a run state",
  failure: "a `KAI-…` code, or an object with that `code`",
  plan: "a plan with `id` and `steps`, each with `id` and `title` and, where given, a known `intent`",
};

function oneOf(values: readonly string[]): (value: unknown) => boolean {
  return (value) => typeof value === "string" && values.includes(value);
}

export interface JsonLimits {
  readonly jsonDepthMax: number;
  readonly jsonKeysMax: number;
}

/** Keys are as many as a frame has room for; a level is a call on the stack of whoever walks through it. */
const readBounds: JsonLimits = {
  jsonDepthMax: limits.readDepthMax,
  jsonKeysMax: Number.POSITIVE_INFINITY,
};

/** What is wrong with a parsed JSON value, or undefined: too deep, too many keys, or a number that overflowed. */
export function unfitJson(value: unknown, bounds: JsonLimits = limits): string | undefined {
  let keys = 0;
  function walk(node: unknown, depth: number): string | undefined {
    if (typeof node === "number") return Number.isFinite(node) ? undefined : "holds a number that overflows";
    if (typeof node !== "object" || node === null) return undefined;
    if (depth > bounds.jsonDepthMax) return `is nested deeper than ${bounds.jsonDepthMax}`;
    const values: readonly unknown[] = Array.isArray(node) ? node : Object.values(node);
    if (values !== node) keys += values.length;
    if (keys > bounds.jsonKeysMax) return `has more than ${bounds.jsonKeysMax} keys`;
    for (const item of values) {
      const wrong = walk(item, depth + 1);
      if (wrong !== undefined) return wrong;
    }
    return undefined;
  }
  return walk(value, 1);
}

export function isObject(value: unknown): value is { [member: string]: unknown } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function absentOr(test: (value: unknown) => boolean, value: unknown): boolean {
  return value === undefined || value === null || test(value);
}

export function isStrings(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}

function isNumber(value: unknown): boolean {
  return typeof value === "number";
}

export function isTime(value: unknown): value is string {
  return typeof value === "string" && timePattern.test(value) && !Number.isNaN(Date.parse(value));
}

export function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function malformed(where: string, what: string): RunwireError {
  return new RunwireError("KAI-STREAM-PROTO-0001", `${where}: ${what}`);
}
