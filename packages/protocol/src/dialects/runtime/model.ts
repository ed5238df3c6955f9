// What the messages of a stream add up to for somebody who shows it. Each entry knows the number of the message that
// said it last, so that one which comes late fills in what is missing and overturns nothing.

import type { Facts } from "../../events.js";
import { isObject } from "../../parse.js";
import { statusTold, taskStatuses } from "../../tasks.js";
import { idOf } from "./ids.js";
import type { RuntimeMessage } from "./types.js";

export interface RuntimeEntry extends Facts {
  readonly status: string;
  /** The number of the message that said this. */
  readonly sequence: number;
  /** A snapshot knew nothing of it, and yet nobody resolved it. */
  readonly stale?: true;
}

export interface RuntimeTask extends RuntimeEntry {
  /** By attempt, in order; one that failed stays when the next begins. */
  readonly attempts: { readonly [attempt_id: string]: RuntimeEntry };
}

interface Entries<E = RuntimeEntry> {
  readonly [id: string]: E;
}

export interface RuntimeModel {
  readonly sessionId: string | null;
  /** The number of the last message that was applied. */
  readonly lastSequence: number;
  /** How the stream came to where it is. */
  readonly recovery: Facts;
  readonly threads: Entries;
  readonly turns: Entries;
  readonly tasks: Entries<RuntimeTask>;
  /** These three are each run's own: one of a run below the stream's is here as `<childId>/<its id>`. */
  readonly actions: Entries;
  readonly toolCalls: Entries;
  readonly processes: Entries;
  readonly subagents: Entries;
  readonly incidents: readonly Facts[];
}

export const emptyRuntimeModel: RuntimeModel = {
  sessionId: null,
  lastSequence: 0,
  recovery: { mode: "live" },
  threads: {},
  turns: {},
  tasks: {},
  actions: {},
  toolCalls: {},
  processes: {},
  subagents: {},
  incidents: [],
};

export type EntryKind = "threads" | "turns" | "actions" | "toolCalls" | "processes" | "subagents";

/** Where an entry of each kind has its id. */
export const entryIds: { readonly [K in EntryKind | "tasks"]: string } = {
  threads: "threadId",
  turns: "turnId",
  actions: "actionId",
  toolCalls: "toolCallId",
  processes: "processId",
  subagents: "subagentId",
  tasks: "taskId",
};

const eachRunsOwn: ReadonlySet<string> = new Set([entryIds.actions, entryIds.toolCalls, entryIds.processes]);

/** The name that an entry has in the model. Two runs of a tree may give the same id. */
export function placeOf(idName: string, { childId }: Facts, id: string): string {
  return eachRunsOwn.has(idName) && typeof childId === "string" ? `${childId}/${id}` : id;
}

/** What a type says of its entry. Null: that it is there, in whatever status. */
const statuses: { readonly [type: string]: readonly [EntryKind, string | null] } = {
  "thread.started": ["threads", "running"],
  "thread.updated": ["threads", null],
  "turn.submitted": ["turns", "queued"],
  "turn.started": ["turns", "running"],
  "turn.completed": ["turns", "completed"],
  "turn.failed": ["turns", "failed"],
  "tool.started": ["toolCalls", "running"],
  "tool.args": ["toolCalls", null],
  "tool.progress": ["toolCalls", null],
  "tool.result": ["toolCalls", "completed"],
  "tool.failed": ["toolCalls", "failed"],
  "action.required": ["actions", "required"],
  "action.resolved": ["actions", "resolved"],
  "process.started": ["processes", "running"],
  "process.output": ["processes", null],
  "process.input": ["processes", null],
  "process.completed": ["processes", "completed"],
  "process.failed": ["processes", "failed"],
  "process.terminated": ["processes", "terminated"],
  "subagent.spawned": ["subagents", "accepted"],
  "subagent.status": ["subagents", null],
  "subagent.completed": ["subagents", "completed"],
  "subagent.failed": ["subagents", "failed"],
  "subagent.closed": ["subagents", "cancelled"],
};

const incidentTypes = new Set(["runtime.warning", "runtime.error", "sandbox.violation", "model.failed"]);

/** Statuses that nothing but another end follows. */
export const endStatuses: ReadonlySet<string> = new Set(
  "completed failed cancelled resolved terminated timed_out lost archived expired closed denied approved".split(
    " ",
  ),
);

/** One message more. Types that it does not know change nothing but the number. */
export function readInto(model: RuntimeModel, message: RuntimeMessage): RuntimeModel {
  const { type, sessionId } = message;
  const sequence = message.sequence ?? model.lastSequence;
  const moved = {
    ...model,
    lastSequence: Math.max(model.lastSequence, sequence),
    sessionId: typeof sessionId === "string" ? sessionId : model.sessionId,
    recovery: type.startsWith("snapshot.") ? model.recovery : emptyRuntimeModel.recovery,
  };
  if (incidentTypes.has(type)) {
    const incident = { type, eventId: message.eventId, sequence, payload: message.payload };
    return { ...moved, incidents: lastOf([...moved.incidents, incident]) };
  }
  if (type.startsWith("task.")) return readTask(moved, message, sequence);
  const row = Object.hasOwn(statuses, type) ? statuses[type] : undefined;
  if (row === undefined) return moved;
  const [kind, status] = row;
  const name = entryIds[kind];
  const id = idOf(message, name);
  if (id === undefined) return moved;
  const place = placeOf(name, message, id);
  const facts = factsOf(message);
  // A turn that was cancelled is told as one that failed.
  const isCancelled = type === "turn.failed" && facts.status === "cancelled";
  const told = isCancelled ? "cancelled" : status;
  return { ...moved, [kind]: withEntry(moved[kind], place, { ...facts, [name]: id }, told, sequence) };
}

/** Incidents that a model keeps. */
const incidentsMax = 1000;

function lastOf(incidents: readonly Facts[]): readonly Facts[] {
  return incidents.slice(-incidentsMax);
}

/** With those that a snapshot tells, of which each is there once: the next snapshot tells them again. */
export function withIncidents(known: readonly Facts[], told: readonly Facts[]): readonly Facts[] {
  const nameOf = (one: Facts): string =>
    typeof one.eventId === "string" ? one.eventId : JSON.stringify(one);
  return lastOf([...new Map([...known, ...told].map((one) => [nameOf(one), one])).values()]);
}

function readTask(model: RuntimeModel, message: RuntimeMessage, sequence: number): RuntimeModel {
  const id = idOf(message, "taskId");
  const name = message.type.slice("task.".length);
  if (id === undefined || !Object.hasOwn(taskStatuses, name)) return model;
  const known = entryOf(model.tasks, id);
  const { status, ...facts } = factsOf(message);
  const isAttempt = name.startsWith("attempt.");
  const [entry] = Object.values(
    withEntry(
      { ...(known && { [id]: known }) },
      id,
      { ...(isAttempt ? {} : facts), taskId: id },
      statusTold(name, known?.status, status),
      sequence,
    ),
  );
  const attempt = idOf(message, "attemptId") ?? idOf(message, "runId");
  const before = known?.attempts ?? {};
  const attempts =
    isAttempt && attempt !== undefined
      ? withEntry(before, attempt, { ...facts, attemptId: attempt }, attemptStatuses[name] ?? null, sequence)
      : before;
  return { ...model, tasks: { ...model.tasks, [id]: { ...(entry as RuntimeEntry), attempts } } };
}

const attemptStatuses: { readonly [name: string]: string } = {
  "attempt.started": "running",
  "attempt.completed": "completed",
  "attempt.failed": "failed",
};

function withEntry(
  entries: Entries,
  id: string,
  facts: Facts,
  status: string | null,
  sequence: number,
): Entries {
  const known = entryOf(entries, id);
  const told =
    typeof facts.status === "string" && (status === null || status === "running") ? facts.status : status;
  if (known === undefined) return { ...entries, [id]: { ...facts, status: told ?? "unknown", sequence } };
  const isLate = sequence < known.sequence;
  // What has ended stays so, unless another end is told.
  const isOver = endStatuses.has(known.status) && !(told !== null && endStatuses.has(told));
  const { stale: _, ...before } = known;
  const now = isLate || isOver || told === null ? known.status : told;
  const merged = isLate ? { ...facts, ...before } : { ...before, ...facts };
  const isStale = known.stale === true && (isLate || !endStatuses.has(now));
  const entry = { ...merged, status: now, sequence: Math.max(sequence, known.sequence) };
  return { ...entries, [id]: isStale ? { ...entry, stale: true } : entry };
}

/** What a message says of its subject: its payload, and the ids that join it with others. */
function factsOf({ payload, threadId, turnId, toolCallId, taskId, childId }: RuntimeMessage): Facts {
  const ids = Object.entries({ threadId, turnId, toolCallId, taskId, childId }).filter(
    ([, id]) => id !== undefined,
  );
  return { ...Object.fromEntries(ids), ...(isObject(payload) ? payload : {}) };
}

export function entryOf<E>(entries: Entries<E>, id: string): E | undefined {
  return Object.hasOwn(entries, id) ? entries[id] : undefined;
}
