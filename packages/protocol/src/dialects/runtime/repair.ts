// A snapshot corrects what was read before it, and never silently erases an action that nobody resolved or a call that
// failed: what it does not mention stays, and is marked stale.

import type { Facts } from "../../events.js";
import { isObject } from "../../parse.js";
import {
  type EntryKind,
  endStatuses,
  entryIds,
  entryOf,
  placeOf,
  type RuntimeEntry,
  type RuntimeModel,
  type RuntimeTask,
  withIncidents,
} from "./model.js";
import type { RuntimeMessage } from "./types.js";

/** The snapshot that a message carries, if it does. */
export function snapshotIn({ type, payload }: RuntimeMessage): Facts | undefined {
  if (type !== "snapshot.updated" && type !== "snapshot.repaired") return undefined;
  const snapshot = isObject(payload) ? payload.snapshot : undefined;
  return isObject(snapshot) && Array.isArray(snapshot.threads) ? snapshot : undefined;
}

/** `snapshot` replaces what is up to its number; what is newer stays. */
export function repaired(model: RuntimeModel, snapshot: Facts, message: RuntimeMessage): RuntimeModel {
  const last = snapshot.lastSequence ?? message.sequence ?? model.lastSequence;
  const sequence = typeof last === "number" ? last : model.lastSequence;
  const threads = listOf(snapshot.threads);
  const told = (kind: EntryKind): readonly Facts[] =>
    kind === "threads" ? threads : threads.flatMap((thread) => listOf(thread[kind]));
  const merged = (kind: EntryKind, keeps: (entry: RuntimeEntry) => boolean): { [id: string]: RuntimeEntry } =>
    merge(model[kind], entriesOf(told(kind), entryIds[kind], sequence), sequence, keeps);
  const tasks = [...listOf(snapshot.tasks), ...threads.flatMap((thread) => listOf(thread.tasks))];
  return {
    ...model,
    sessionId: typeof snapshot.sessionId === "string" ? snapshot.sessionId : model.sessionId,
    lastSequence: Math.max(model.lastSequence, sequence),
    threads: merged("threads", () => false),
    turns: merged("turns", () => false),
    actions: merged("actions", ({ status }) => !endStatuses.has(status)),
    toolCalls: merged("toolCalls", ({ status }) => status === "failed"),
    processes: merged("processes", () => false),
    subagents: merged("subagents", () => false),
    tasks: mergeTasks(model, entriesOf(tasks, entryIds.tasks, sequence), sequence),
    incidents: withIncidents(
      model.incidents,
      threads.flatMap((thread) => listOf(thread.incidents)),
    ),
  };
}

function merge(
  known: { readonly [id: string]: RuntimeEntry },
  told: { readonly [id: string]: RuntimeEntry },
  sequence: number,
  keeps: (entry: RuntimeEntry) => boolean,
): { [id: string]: RuntimeEntry } {
  // A map, because an id may be any text, `__proto__` too.
  const merged = new Map(Object.entries(told));
  for (const [id, entry] of Object.entries(known)) {
    const said = entryOf(told, id);
    if (entry.sequence > sequence) merged.set(id, entry);
    else if (keeps(entry) && said === undefined) merged.set(id, { ...entry, stale: true });
    // Mentioned, but not as ended: then nothing was resolved.
    else if (keeps(entry) && said !== undefined && !endStatuses.has(said.status))
      merged.set(id, { ...said, status: entry.status, sequence: entry.sequence });
  }
  return Object.fromEntries(merged);
}

/** Attempts that a snapshot leaves out were made all the same. */
function mergeTasks(
  { tasks }: RuntimeModel,
  told: { readonly [id: string]: RuntimeEntry },
  sequence: number,
): { readonly [id: string]: RuntimeTask } {
  const merged = Object.entries(merge(tasks, told, sequence, () => false)).map(([id, entry]) => {
    const listed = Array.isArray(entry.attempts) ? listOf(entry.attempts) : [];
    const withIds = listed.map((attempt) => ({ ...attempt, attemptId: attempt.attemptId ?? attempt.runId }));
    const attempts = { ...entryOf(tasks, id)?.attempts, ...entriesOf(withIds, "attemptId", sequence) };
    return [id, { ...entry, attempts }] as const;
  });
  return Object.fromEntries(merged);
}

function entriesOf(list: readonly Facts[], idName: string, sequence: number): { [id: string]: RuntimeEntry } {
  return Object.fromEntries(
    list.flatMap((facts) => {
      const id = facts[idName];
      if (typeof id !== "string") return [];
      const status = typeof facts.status === "string" ? facts.status : "unknown";
      return [[placeOf(idName, facts, id), { ...facts, status, sequence }]];
    }),
  );
}

function listOf(value: unknown): readonly Facts[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}
