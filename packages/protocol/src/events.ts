// What a run is made of. The eight core types are the public agent-stream contract; the extended types
// say what the other protocols can say and the core cannot. Wire field names are kept in memory.

import { type FinalState, isFinal, isRunState, type RunState } from "./state.js";

/** Payloads whose members belong to their producer: kept as they are, read by dialects. */
export interface Facts {
  readonly [member: string]: unknown;
}

export const planIntents = ["research", "write", "edit", "execute", "verify", "report", "other"] as const;

export type PlanIntent = (typeof planIntents)[number];

export interface PlanStep extends Facts {
  readonly id: string;
  readonly title: string;
  readonly intent?: PlanIntent;
  readonly est_tools?: readonly string[];
  readonly est_cost_usd?: number;
}

export interface Plan extends Facts {
  readonly id: string;
  readonly run_id?: string;
  readonly steps: readonly PlanStep[];
  readonly est_total_cost_usd?: number;
}

export type StepKind = "plan" | "tool-roundtrip" | "text-only" | "fan-out" | "fan-in" | "done";

export interface ToolError extends Facts {
  readonly code: string;
  readonly message?: string;
}

export interface TextDelta extends Facts {
  readonly text: string;
  /** Set when the chunk was streamed by a tool and not by the model. */
  readonly call_id?: string;
}

/** One line per type that has members of its own; the compiler then asks for its row in `eventTypes`. */
export interface Payloads {
  // core: the agent stream protocol
  "reasoning.delta": TextDelta;
  "text.delta": TextDelta;
  "tool.start": Facts & { call_id: string; tool: string; input?: unknown; skill_id?: string };
  "tool.end": Facts & {
    call_id: string;
    ok: boolean;
    output?: unknown;
    error?: ToolError | string | null;
    duration_ms?: number;
    blob_ref?: string;
  };
  "step.boundary": Facts & {
    step_index: number;
    step_kind: StepKind;
    checkpoint_id?: string;
    /** Steps of the plan that this one was for, by their ids. */
    plan_steps?: readonly string[];
  };
  "child.spawn": Facts & { child_id: string; prompt?: string; tools_allowed?: readonly string[] };
  "plan.proposal": Facts & { plan: Plan };
  "run.lifecycle": Facts & { state: RunState; reason?: string | null; dropped_count?: number };

  // messages
  "message.settled": Facts & { text: string; message_id?: string };
  "message.interim": Facts & { text: string };
  title: Facts & { title: string };
  suggestions: Facts & { suggestions: readonly string[] };

  // tool detail
  "tool.call": Facts & { call_id: string; tool: string };
  "tool.args.delta": TextDelta;
  "tool.output": TextDelta;

  // people
  "approval.requested": Facts & { approval_id: string; call_id?: string; expires_at?: string | null };
  "approval.resolved": Facts & { approval_id: string; decision: string; reason?: string | null };
  "clarify.requested": Facts & { clarify_id: string; question: string; expires_at?: string | null };
  "clarify.resolved": Facts & { clarify_id: string; answer?: unknown };
  "steer.accepted": Facts & { text: string };
  "steer.delivered": Facts & { text: string };
  "steer.leftover": Facts & { text: string };
  "control.requested": Facts & { action: string };

  // models
  "model.requested": Facts;
  "model.completed": Facts;
  "model.failed": Facts;
  "reasoning.summary": Facts;
  usage: Facts;

  // graphs
  "node.enter": Facts;
  "node.exit": Facts;
  "state.values": Facts;
  "state.updates": Facts;
  checkpoint: Facts;
  "tot.expand": Facts;
  "tot.evaluate": Facts;
  "tot.backtrack": Facts;
  "got.plan": Facts;
  "got.node_start": Facts;
  "got.node_complete": Facts;
  "got.node_failed": Facts;
  "got.expand": Facts;

  // facts of the runtime event stream
  "turn.submitted": Facts;
  "turn.started": Facts;
  "turn.completed": Facts;
  "turn.failed": Facts;
  "process.output": TextDelta;
  "audio.delta": Facts & { chunks: readonly string[] };
  custom: Facts;
}

/** Families whose members are open: `task.created`, `hook.failed`, `routing.decided` … */
export const factFamilies = [
  "session",
  "thread",
  "turn",
  "task",
  "item",
  "process",
  "hook",
  "permission",
  "sandbox",
  "routing",
  "cost",
  "rate_limit",
  "quota",
  "limit",
  "channel",
  "job",
  "output",
  "history",
  "queue",
  "policy",
  "artifact",
  "evidence",
  "context",
  "subagent",
  "snapshot",
  "runtime",
] as const;

export type NamedType = keyof Payloads;
export type FamilyType = `${(typeof factFamilies)[number]}.${string}`;
/** Stored and forwarded untouched. */
export type VendorType = `x.${string}`;
export type EventType = NamedType | FamilyType | VendorType;
export type PayloadOf<T extends EventType> = T extends NamedType ? Payloads[T] : Facts;

/** Ids that other protocols carry beside the envelope, only where they are known. */
export interface Scope {
  readonly [id: string]: string;
}

export interface Event<T extends EventType = EventType> {
  readonly id: string;
  readonly ts: string;
  readonly type: T;
  /** The run whose log this is. */
  readonly run_id: string;
  /** The run that produced it, where that is a descendant of `run_id`. */
  readonly child_id: string | null;
  /** Place in this log: 1-based, gapless, every type. */
  readonly pos: number;
  /** How many core events this log holds up to here. */
  readonly seq: number;
  readonly payload: PayloadOf<T>;
  readonly scope?: Scope;
}

/** What a producer says; the store makes an event of it. The numbers are what a decoded wire had. */
export interface Draft<T extends EventType = EventType> {
  readonly type: T;
  readonly payload: PayloadOf<T>;
  readonly child_id?: string | null;
  readonly scope?: Scope;
  readonly id?: string;
  readonly ts?: string;
  readonly run_id?: string;
  readonly pos?: number;
  readonly seq?: number;
}

export type AnyEvent = { [T in NamedType]: Event<T> }[NamedType];

/** The full log holds every token boundary; the default log what readers normally get. */
export type View = "default" | "full";

/** How the write path treats a type: deltas are joined per group, control events go at once. */
export type Flow = "core-delta" | "extended-delta" | "control";

interface TypeRow {
  readonly core?: true;
  readonly flow: Flow;
  /** Members that must be there, with what they must be. A trailing `?` allows absence and null. */
  readonly members: { readonly [member: string]: string };
}

const text = { text: "string", call_id: "id?" };
const facts: TypeRow = { flow: "control", members: {} };

export const eventTypes: { readonly [T in NamedType]: TypeRow } = {
  "reasoning.delta": { core: true, flow: "core-delta", members: text },
  "text.delta": { core: true, flow: "core-delta", members: text },
  "tool.start": {
    core: true,
    flow: "control",
    members: { call_id: "id", tool: "string", skill_id: "string?" },
  },
  "tool.end": {
    core: true,
    flow: "control",
    members: { call_id: "id", ok: "boolean", error: "failure?", duration_ms: "number?", blob_ref: "string?" },
  },
  "step.boundary": {
    core: true,
    flow: "control",
    members: {
      step_index: "count",
      step_kind: "plan|tool-roundtrip|text-only|fan-out|fan-in|done",
      checkpoint_id: "id?",
      plan_steps: "strings?",
    },
  },
  "child.spawn": {
    core: true,
    flow: "control",
    members: { child_id: "id", prompt: "string?", tools_allowed: "strings?" },
  },
  "plan.proposal": { core: true, flow: "control", members: { plan: "plan" } },
  "run.lifecycle": {
    core: true,
    flow: "control",
    members: { state: "state", reason: "string?", dropped_count: "count?" },
  },

  "message.settled": { flow: "control", members: { text: "string", message_id: "id?" } },
  "message.interim": { flow: "control", members: { text: "string" } },
  title: { flow: "control", members: { title: "string" } },
  suggestions: { flow: "control", members: { suggestions: "strings" } },

  "tool.call": { flow: "control", members: { call_id: "id", tool: "string" } },
  "tool.args.delta": { flow: "extended-delta", members: text },
  "tool.output": { flow: "extended-delta", members: text },

  "approval.requested": {
    flow: "control",
    members: { approval_id: "id", call_id: "id?", expires_at: "time?" },
  },
  "approval.resolved": {
    flow: "control",
    members: { approval_id: "id", decision: "string", reason: "string?" },
  },
  "clarify.requested": {
    flow: "control",
    members: { clarify_id: "id", question: "string", expires_at: "time?" },
  },
  "clarify.resolved": { flow: "control", members: { clarify_id: "id" } },
  "steer.accepted": { flow: "control", members: { text: "string" } },
  "steer.delivered": { flow: "control", members: { text: "string" } },
  "steer.leftover": { flow: "control", members: { text: "string" } },
  "control.requested": { flow: "control", members: { action: "string" } },

  "model.requested": facts,
  "model.completed": facts,
  "model.failed": facts,
  "reasoning.summary": facts,
  usage: facts,

  "node.enter": facts,
  "node.exit": facts,
  "state.values": facts,
  "state.updates": facts,
  checkpoint: facts,
  "tot.expand": facts,
  "tot.evaluate": facts,
  "tot.backtrack": facts,
  "got.plan": facts,
  "got.node_start": facts,
  "got.node_complete": facts,
  "got.node_failed": facts,
  "got.expand": facts,

  "turn.submitted": facts,
  "turn.started": facts,
  "turn.completed": facts,
  "turn.failed": facts,
  "process.output": {
    flow: "extended-delta",
    members: { text: "string", process_id: "id?", call_id: "id?" },
  },
  "audio.delta": { flow: "extended-delta", members: { chunks: "strings" } },
  custom: facts,
};

const familyPattern = new RegExp(`^(?:${factFamilies.join("|")})(?:\\.[a-z][a-z0-9_]{0,63}){1,3}$`);
const vendorPattern = /^x\.[A-Za-z0-9_-]{1,64}(?:\.[A-Za-z0-9_-]{1,64}){1,4}$/;

/** The row of a type, or undefined where nobody may send it. */
export function typeRow(type: string): TypeRow | undefined {
  if (Object.hasOwn(eventTypes, type)) return eventTypes[type as NamedType];
  return familyPattern.test(type) || vendorPattern.test(type) ? facts : undefined;
}

export const coreTypes: ReadonlySet<EventType> = new Set(
  (Object.keys(eventTypes) as NamedType[]).filter((type) => eventTypes[type].core),
);

export function isCore(type: EventType): boolean {
  return coreTypes.has(type);
}

export function flowOf(type: EventType): Flow {
  return typeRow(type)?.flow ?? "control";
}

/** Narrows an event or a draft by its type: `if (is(e, "tool.end")) e.payload.ok`. */
export function is<T extends NamedType>(e: Event, type: T): e is Event<T>;
export function is<T extends NamedType>(e: Draft, type: T): e is Draft<T>;
export function is(e: { type: EventType }, type: NamedType): boolean {
  return e.type === type;
}

/** The end of a run. */
type End = Event<"run.lifecycle"> & { readonly payload: { readonly state: FinalState } };

/** An event ends a run only if that run itself produced it. */
export function endsRun(e: Event): e is End {
  if (e.child_id !== null || !is(e, "run.lifecycle")) return false;
  const { state } = e.payload;
  // What a foreign log holds may be no state at all.
  return isRunState(state) && isFinal(state);
}
