// Deltas that the full log holds and the default log does not yet, in groups that are joined to one record each.

import {
  type Draft,
  type EventType,
  type Facts,
  limits,
  type NodeText,
  nodeTexts,
  type Scope,
} from "@runwire/protocol";
import type { Record } from "./record.js";

/** Deltas of one (type, call, process). */
export interface Group {
  readonly type: EventType;
  readonly call_id: string | null;
  readonly process_id: string | null;
  /** Full position of the first pending delta; groups are emitted in this order. */
  readonly first: number;
  /** Full position of the last pending delta: what the joined record will cover. */
  readonly last: number;
  /** The first pending delta's payload; the joined record differs from it in what is joined only. */
  readonly payload: Facts;
  /**
   * How long the joined record is beside its text, counted as it grows: to look at every piece again for each delta costs
   * their square. A head that an older program has stored does not know.
   */
  readonly besideChars?: number;
  readonly scopeText: string | null;
  /** What is pending, joined: text, or a list of audio chunks. */
  readonly text: string;
  readonly chunks: readonly string[] | null;
  /** Which nodes said it, where not all of it was said by the first delta's. */
  readonly nodes?: readonly NodeText[];
}

/** What a group is told apart by, beside its run. */
type GroupName = Pick<Group, "type" | "call_id" | "process_id">;

/** The groups after one more delta in the full log. */
export function pended(
  groups: readonly Group[],
  record: Record,
  pos: number,
  payload: Facts,
): readonly Group[] {
  const { type, scopeText } = record;
  const of = groupOf(type, payload);
  // Only the type says what is joined: a producer may give a text delta a member of its own called `chunks`.
  const isAudio = type === "audio.delta";
  const text = isAudio ? "" : (payload.text as string);
  const chunks = isAudio ? (payload.chunks as readonly string[]) : null;
  if (text === "" && (chunks === null || chunks.length === 0)) return groups;
  const at = groups.findIndex((group) => sameGroup(group, of));
  const known = groups[at];
  if (known === undefined) {
    const besideChars = charsBeside(isAudio ? "chunks" : "text", payload) + chunksChars(chunks ?? []);
    return [...groups, { ...of, first: pos, last: pos, payload, besideChars, scopeText, text, chunks }];
  }
  const nodes = isAudio ? known.nodes : nodesWith(known, payload, scopeText);
  const more = nodesChars(nodes?.slice(known.nodes?.length ?? 0) ?? []) + chunksChars(chunks ?? []);
  return groups.with(at, {
    ...known,
    ...(nodes === undefined ? {} : { nodes }),
    last: pos,
    besideChars: (known.besideChars ?? 0) + more,
    text: known.text + text,
    chunks: known.chunks === null ? null : [...known.chunks, ...(chunks ?? [])],
  });
}

/** The group that a delta must not be joined to, because it is as large as a group may be by itself. */
export function groupBefore(groups: readonly Group[], { type, payload }: Draft): Group | undefined {
  const facts = payload as Facts;
  // A long text is split before, where it is what is joined.
  const split = type === "audio.delta" ? null : "text";
  if (groups.length === 0 || charsBeside(split, facts) < limits.groupBytesMax) return undefined;
  const of = groupOf(type, facts);
  return groups.find((group) => sameGroup(group, of));
}

/** The groups after a record of the default log that covers one. */
export function covered(
  groups: readonly Group[],
  { type, covers }: Record,
  payload: Facts,
): readonly Group[] {
  const of = groupOf(type, payload);
  return groups.filter((group) => !sameGroup(group, of) || group.last > (covers ?? 0));
}

function nodesWith(known: Group, payload: Facts, scopeText: string | null): Group["nodes"] {
  const isOne = known.nodes === undefined && known.payload.nodes === undefined && payload.nodes === undefined;
  const isPlain = known.payload.envelope === undefined && payload.envelope === undefined;
  if (isOne && isPlain && payload.node === known.payload.node && scopeText === known.scopeText)
    return undefined;
  const before = known.nodes ?? nodeTexts({ ...known.payload, text: known.text }, scopeOf(known.scopeText));
  const more = nodeTexts(payload, scopeOf(scopeText));
  const last = before.at(-1);
  const [next, ...others] = more;
  return last !== undefined && next !== undefined && last.node === next.node && last.node_id === next.node_id
    ? [...before.slice(0, -1), { ...last, chars: last.chars + next.chars }, ...others]
    : [...before, ...more];
}

function scopeOf(scopeText: string | null): Scope {
  return scopeText === null ? {} : (JSON.parse(scopeText) as Scope);
}

function groupOf(type: EventType, { call_id, process_id }: Facts): GroupName {
  return {
    type,
    call_id: typeof call_id === "string" ? call_id : null,
    // Elsewhere it is a member like any other.
    process_id: type === "process.output" && typeof process_id === "string" ? process_id : null,
  };
}

function sameGroup(a: GroupName, b: GroupName): boolean {
  return a.type === b.type && a.call_id === b.call_id && a.process_id === b.process_id;
}

export function isModelText(type: EventType, { call_id }: Facts): boolean {
  return type === "text.delta" && typeof call_id !== "string";
}

/** The payload of the record that covers a group. */
export function joinedPayload({ payload, text, chunks, nodes }: Group): Facts {
  if (chunks !== null) return { ...payload, chunks };
  // One node is named by the first delta, unless that has a list of them, which is now too short.
  const isNamed = nodes === undefined || (nodes.length === 1 && nodeTexts(payload) !== payload.nodes);
  return isNamed ? { ...payload, text } : { ...payload, text, nodes };
}

/** What one stretch of text, or one chunk, costs beside its characters: there may be many of them with none. */
const pieceChars = 64;

/** About how long the joined record's payload is: what is pending must always fit into an event, however it is escaped. */
export function joinedChars({ text, besideChars = 0 }: Group): number {
  return besideChars + text.length;
}

function chunksChars(chunks: readonly string[]): number {
  return chunks.reduce((chars, chunk) => chars + pieceChars + chunk.length, 0);
}

function nodesChars(nodes: readonly NodeText[]): number {
  return nodes.reduce(
    (chars, { node = "", node_id = "" }) => chars + pieceChars + node.length + node_id.length,
    0,
  );
}

/** How long a delta's payload is beside a member of it. */
export function charsBeside(joined: "text" | "chunks" | null, payload: Facts): number {
  let chars = 0;
  for (const [name, value] of Object.entries(payload)) {
    if (name === joined || value === undefined) continue;
    chars += name.length + (typeof value === "string" ? value : JSON.stringify(value)).length;
  }
  return chars;
}
