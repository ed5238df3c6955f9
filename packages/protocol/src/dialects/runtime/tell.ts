// An event as a bare message, and back. Both directions read the same rows, and each checks itself by the other:
//
//   tell   says an event plainly; where that would be heard as another event, the event itself goes with it in `native`
//   hear   takes a message for an event of the log's own only where that event would be told as this very message;
//          every other message is a fact, kept under its own type, or as `x.runtime.<type>` where the log has none
//
// So a message that is decoded and encoded again is the same message, and an event that is encoded and decoded again is
// the same event, whatever members they have.

import {
  type EventType,
  eventTypes,
  type Facts,
  factFamilies,
  type NamedType,
  type Scope,
  typeRow,
} from "../../events.js";
import { isObject, parseWireDraft } from "../../parse.js";
import { sameJson } from "../../same-json.js";
import { type Bare, bareOf, membersOf } from "./bare.js";
import { camelId } from "./ids.js";
import { type Row, rows } from "./rows.js";

/** What an event says, without its place in a log. */
export interface Spoken {
  readonly type: EventType;
  readonly payload: Facts;
  readonly child_id: string | null;
  readonly scope: Scope;
}

const own = "x.runwire.";
const foreign = "x.runtime.";
/** A foreign type that no type of the log can be made of; it is kept in `rest`. */
const foreignAny = "x.runtime.message";

const rowsOf = byName(({ type }) => type);
const rowsAs = byName(({ as }) => as);

function byName(nameOf: (row: Row) => string): ReadonlyMap<string, readonly Row[]> {
  const names = new Set(rows.map(nameOf));
  return new Map([...names].map((name) => [name, rows.filter((row) => nameOf(row) === name)]));
}

/** `again`: the call that it is about has been told already. */
export function tell(spoken: Spoken, again: boolean): Bare {
  const plain = tellPlainly(spoken, again);
  if (isDelta(spoken)) return plain;
  const { type, payload } = spoken;
  const heard = hear(bareOf(plain.type, membersOf(plain)));
  const isHeard =
    heard.type === type &&
    sameJson(heard.payload, payload) &&
    sameJson(heard.scope, scopeTold(spoken, again));
  return isHeard ? plain : { ...plain, members: { native: { type, payload } } };
}

/** The ids of a scope that are told: where the payload has an id of a name, the scope's is not. */
function scopeTold(spoken: Spoken, again: boolean): Scope {
  const row = rowFor(spoken, again);
  return row === undefined ? spoken.scope : without(spoken.scope, Object.values(row.ids ?? {}));
}

/** The bulk of every stream, and without members that could be taken for anything else. */
function isDelta({ type, payload, scope }: Spoken): boolean {
  const isText =
    type === "text.delta" ||
    type === "reasoning.delta" ||
    type === "tool.output" ||
    type === "tool.args.delta";
  if (!isText || Object.keys(scope).length > 0) return false;
  const names = Object.keys(payload).length;
  return names === 1 || (names === 2 && typeof payload.call_id === "string");
}

function tellPlainly(spoken: Spoken, again: boolean): Bare {
  const row = rowFor(spoken, again);
  return row === undefined ? tellFact(spoken) : tellRow(row, spoken);
}

function rowFor({ type, payload, child_id, scope }: Spoken, again: boolean): Row | undefined {
  const fitting = (rowsOf.get(type) ?? []).filter(
    ({ by, fixed = {}, needs = [], scoped = [] }) =>
      (by === undefined || (by === "own") === (child_id === null)) &&
      Object.entries(fixed).every(([name, value]) => memberOf(payload, name) === value) &&
      needs.every((name) => typeof memberOf(payload, name) === "string") &&
      scoped.every((id) => Object.hasOwn(scope, id)),
  );
  return (again ? fitting.find((row) => row.again) : undefined) ?? fitting.find((row) => !row.again);
}

function tellRow(row: Row, { payload, child_id, scope }: Spoken): Bare {
  const { ids = {}, names = {}, fixed = {}, defaults = {}, marks = {}, adds, within } = row;
  const { members, kept } = lifted(payload);
  const told: { [id: string]: string } = {};
  const entries: (readonly [string, unknown])[] = [];
  for (const [name, value] of Object.entries(kept)) {
    if (Object.hasOwn(fixed, name)) continue;
    const id = Object.hasOwn(ids, name) ? ids[name] : undefined;
    if (id !== undefined && typeof value === "string") told[id] = value;
    else if (value !== null || !Object.hasOwn(defaults, name))
      entries.push([(Object.hasOwn(names, name) ? names[name] : undefined) ?? name, value]);
  }
  const unsaid = Object.entries(defaults).filter(([name]) => !Object.hasOwn(kept, name));
  const flat = Object.fromEntries([...entries, ...unsaid, ...Object.entries({ ...adds?.(kept), ...marks })]);
  return {
    type: row.as,
    child_id,
    scope: { ...without(scope, Object.values(ids)), ...told },
    members,
    payload: within === undefined ? flat : { [within]: flat },
  };
}

function tellFact({ type, payload, child_id, scope }: Spoken): Bare {
  const { members, kept } = lifted(payload);
  const { type: name, payload: whole, ...others } = members as { type?: unknown; payload?: unknown };
  const isOther = type === foreignAny && typeof name === "string";
  const isWhole = Object.hasOwn(members, "payload");
  return {
    type: isOther ? name : nameOf(type),
    child_id,
    scope,
    members: others,
    payload: isWhole ? whole : kept,
  };
}

function nameOf(type: EventType): string {
  if (type.startsWith(foreign) && type.includes(".", foreign.length)) return type.slice(foreign.length);
  return Object.hasOwn(eventTypes, type) && !isFactType(type) ? own + type : type;
}

/** A decoder keeps in `rest` what it has no place for; on the wire these are members of the message again. */
function lifted(payload: Facts): { readonly members: Facts; readonly kept: Facts } {
  const rest = memberOf(payload, "rest");
  return isObject(rest)
    ? { members: rest, kept: without(payload, ["rest"]) }
    : { members: {}, kept: payload };
}

export function hear(bare: Bare): Spoken {
  return hearNative(bare) ?? hearRow(bare) ?? hearOwn(bare) ?? hearFact(bare);
}

function hearNative(bare: Bare): Spoken | undefined {
  const native = memberOf(bare.members, "native");
  if (!isObject(native) || !isObject(native.payload) || typeof native.type !== "string") return undefined;
  const { child_id, scope } = bare;
  const told = { type: native.type as EventType, payload: native.payload, child_id, scope };
  // One way only: a message may hold another in its `native`, and so on.
  const again = rowFor(told, false)?.as !== bare.type && rowFor(told, true)?.as === bare.type;
  const spoken = { ...told, scope: scopeTold(told, again) };
  return isDraft(spoken) && sameBare(tell(spoken, again), bare) ? spoken : undefined;
}

function hearRow(bare: Bare): Spoken | undefined {
  if (!isObject(bare.payload)) return undefined;
  for (const row of rowsAs.get(bare.type) ?? []) {
    const spoken = heardBy(row, bare, bare.payload);
    if (spoken !== undefined && isDraft(spoken) && sameBare(tellPlainly(spoken, row.again ?? false), bare))
      return spoken;
  }
  return undefined;
}

function heardBy(row: Row, { child_id, scope, members }: Bare, told: Facts): Spoken | undefined {
  const { ids = {}, names = {}, fixed = {}, defaults = {}, marks = {}, takes = {}, adds, within } = row;
  const isTaken = (name: string, value: unknown): boolean =>
    !Object.hasOwn(takes, name) || takes[name]?.(value) === true;
  const flat = within === undefined ? told : memberOf(told, within);
  if (!isObject(flat) || !Object.entries(marks).every(([name, value]) => memberOf(flat, name) === value))
    return undefined;
  const added = { ...adds?.(flat), ...marks };
  const nameOnOurSide = new Map(Object.entries(names).map(([name, wire]) => [wire, name]));
  const payload = Object.entries(flat)
    .filter(
      ([name, value]) =>
        !Object.hasOwn(added, name) && !(Object.hasOwn(defaults, name) && sameJson(value, defaults[name])),
    )
    .map(
      ([name, value]) =>
        [(isTaken(name, value) ? nameOnOurSide.get(name) : undefined) ?? name, value] as const,
    );
  const unsaid = Object.keys(defaults).filter((name) => !Object.hasOwn(flat, name));
  const moved = Object.entries(ids).filter(
    ([, id]) => Object.hasOwn(scope, id) && isTaken(camelId[id], scope[id]),
  );
  return {
    type: row.type,
    child_id,
    scope: without(scope, Object.values(ids)),
    payload: withRest(
      Object.fromEntries([
        ...moved.map(([name, id]) => [name, scope[id]]),
        ...Object.entries(fixed),
        ...payload,
        ...unsaid.map((name) => [name, null]),
      ]),
      members,
    ),
  };
}

/** A type of the log's own that has no name in the standard. */
function hearOwn(bare: Bare): Spoken | undefined {
  if (!bare.type.startsWith(own) || !isObject(bare.payload)) return undefined;
  const type = bare.type.slice(own.length);
  if (!Object.hasOwn(eventTypes, type)) return undefined;
  const { child_id, scope, payload, members } = bare;
  const spoken = { type: type as NamedType, child_id, scope, payload: withRest(payload, members) };
  return isDraft(spoken) && sameBare(tellPlainly(spoken, false), bare) ? spoken : undefined;
}

function hearFact({ type, child_id, scope, payload, members }: Bare): Spoken {
  const isPlain = type.startsWith("x.") ? nameOf(type as EventType) === type : isFactType(type);
  const kept = isPlain ? type : foreign + type;
  const isKept = typeRow(kept) !== undefined;
  const rest = isKept ? members : { ...members, type };
  return {
    type: (isKept ? kept : foreignAny) as EventType,
    child_id,
    scope,
    payload:
      isObject(payload) && !Object.hasOwn(payload, "rest")
        ? withRest(payload, rest)
        : { rest: { ...rest, payload } },
  };
}

/** Types that the standard and the log both have, with no member that must be there. */
export function isFactType(type: string): boolean {
  const row = typeRow(type);
  if (row === undefined || Object.keys(row.members).length > 0) return false;
  return sameNames.has(type) || factFamilies.includes(type.split(".", 1)[0] as never);
}

const sameNames: ReadonlySet<string> = new Set<NamedType>([
  "model.requested",
  "model.completed",
  "model.failed",
  "reasoning.summary",
]);

function withRest(payload: Facts, rest: Facts): Facts {
  return Object.keys(rest).length === 0 ? payload : { ...payload, rest };
}

function isDraft({ type, payload }: Spoken): boolean {
  try {
    parseWireDraft({ type, payload });
    return true;
  } catch {
    // Then it is no event of this type; what else it is, others look.
    return false;
  }
}

function sameBare(a: Bare, b: Bare): boolean {
  return (
    a.type === b.type &&
    a.child_id === b.child_id &&
    sameJson([a.scope, a.members, a.payload], [b.scope, b.members, b.payload])
  );
}

function memberOf(facts: Facts, name: string): unknown {
  return Object.hasOwn(facts, name) ? facts[name] : undefined;
}

function without<T extends Facts>(facts: T, names: readonly string[]): T {
  return Object.fromEntries(Object.entries(facts).filter(([name]) => !names.includes(name))) as T;
}
