// What a run can be shown to have done: where its log, its trace and its review are, how to tell that the log is the same,
// and what in it an auditor looks for first. A fold over the log, whose lists are bounded; hashing is the caller's, since
// this package knows no such thing.

import { type Event, endsRun, type Facts, is } from "./events.js";
import { newFold } from "./folding.js";
import { isObject } from "./parse.js";
import { type Decision, evidenceListMax, type Review, reviewer } from "./review.js";
import type { RunState } from "./state.js";
import { type Tasks, tasksEnded, tasksTold } from "./tasks.js";
import { addedUsage, type Usage } from "./usage.js";

export interface EvidenceRefs extends Facts {
  readonly evidence_id: string;
  readonly pack_ref: string;
  readonly trace_ref: string;
  readonly replay_ref: string;
  readonly review_ref: string;
}

/** Where the evidence of a run is; the same for whoever asks, so that it can be named before the run's end. */
export function evidenceRefs(run_id: string): EvidenceRefs {
  const path = `/v1/agent/runs/${run_id}`;
  return {
    evidence_id: `evidence_${run_id.replace(/^run_/, "")}`.slice(0, 128),
    pack_ref: `${path}/evidence`,
    trace_ref: `${path}/trace`,
    replay_ref: `${path}/replay.jsonl?dialect=runwire&detail=full`,
    review_ref: `${path}/review`,
  };
}

/** `missing_correlation`: it is there, but some of it cannot be joined with what it belongs to. */
export type Signal = "exported" | "not_applicable" | "unsupported" | "missing_correlation";

/** The log as the replay gives it, line by line. */
export interface LogDigest extends Facts {
  readonly view: "full" | "default";
  readonly events: number;
  readonly bytes: number;
  readonly sha256: string;
}

export interface EvidencePack extends Facts {
  readonly run_id: string;
  readonly refs: EvidenceRefs;
  readonly state: RunState | null;
  readonly log: LogDigest;
  readonly signals: { readonly [signal: string]: Signal };
}

export interface Evidencer {
  hear(e: Event): void;
  pack(log: LogDigest): EvidencePack;
}

/** What is gathered under each name, and whether one can be joined with what it belongs to. */
const gathered: { readonly [list: string]: { of(e: Event): boolean; joined(e: Event): boolean } } = {
  permissions: {
    of: ({ type }) => /^(?:approval\.resolved|permission\.(?:evaluated|resolved))$/.test(type),
    joined: (e) => hasId(e, "approval_id", "call_id", "tool_call_id", "action_id"),
  },
  artifacts: {
    of: ({ type }) => type === "artifact.changed",
    // Files that are only counted have no names; they belong to their call.
    joined: (e) =>
      hasId(e, "artifact_id") ||
      ((e.payload as Facts).change === "more" && hasId(e, "call_id", "tool_call_id")),
  },
  sandbox_violations: {
    of: ({ type }) => type === "sandbox.violation",
    joined: (e) => hasId(e, "call_id", "tool_call_id", "process_id"),
  },
  hook_failures: {
    of: ({ type }) => type === "hook.failed",
    joined: (e) => hasId(e, "hook_id", "hook", "call_id", "tool_call_id"),
  },
  failures: { of: isFailure, joined: () => true },
};

export function evidencer(run_id: string): Evidencer {
  const people = reviewer(run_id);
  const lists = Object.keys(gathered).map((name) => [name, [] as Facts[]] as const);
  const totals: { [list: string]: number } = {};
  const unjoined = new Set<string>();
  const mine = newFold();
  let tasks: Tasks = {};
  let state: RunState | null = null;
  let reason: string | null = null;
  /** Why people have stopped it and let it go on, in their words. */
  const reasons = new Set<unknown>();
  const usage: Usages = new Map();
  let requests = 0;

  function hear(e: Event): void {
    people.hear(e);
    if (!isTaskTooMany(tasks, e)) tasks = tasksTold(mine, tasks, e);
    tasks = tasksEnded(mine, tasks, e);
    if (e.type === "model.requested") requests += 1;
    if (is(e, "control.requested") && reasons.size < evidenceListMax) reasons.add(e.payload.reason);
    if (e.child_id === null && is(e, "run.lifecycle"))
      [state, reason] = [e.payload.state, e.payload.reason ?? null];
    if (is(e, "usage")) addUsage(usage, e.payload);
    for (const [name, list] of lists) {
      const { of, joined } = gathered[name]!;
      if (!of(e)) continue;
      totals[name] = (totals[name] ?? 0) + 1;
      if (!joined(e)) unjoined.add(name);
      if (list.length < evidenceListMax) list.push(entryOf(e));
    }
  }

  function signalOf(name: string): Signal {
    if (unjoined.has(name)) return "missing_correlation";
    return (totals[name] ?? 0) > 0 ? "exported" : "not_applicable";
  }

  return {
    hear,
    pack(log) {
      const review: Review = people.review();
      const cost = costIn(usage);
      const signals: { [signal: string]: Signal } = {
        trace: "exported",
        // Without the full view what was said is there, but not as it was said.
        replay: log.view === "full" ? "exported" : "unsupported",
        review: review.decisions_total > 0 ? "exported" : "not_applicable",
        attempts: Object.keys(tasks).length > 0 ? "exported" : "unsupported",
        ...Object.fromEntries(lists.map(([name]) => [name, signalOf(name)])),
        usage: usage.size > 0 ? "exported" : requests > 0 ? "unsupported" : "not_applicable",
        cost: cost.known
          ? "exported"
          : cost.usd === null && requests === 0
            ? "not_applicable"
            : "unsupported",
      };
      return {
        run_id,
        refs: evidenceRefs(run_id),
        state,
        reason: reasons.has(reason) ? null : reason,
        log,
        tasks: Object.values(tasks).map(({ attempts, ...task }) => ({
          ...task,
          attempts: attempts.map(({ reason: why, ...attempt }) =>
            why === undefined || reasons.has(why) ? attempt : { ...attempt, reason: why },
          ),
        })),
        human_decisions: review.decisions.map(bareDecision),
        ...Object.fromEntries(lists),
        totals: { ...totals, human_decisions: review.decisions_total },
        usage: Object.fromEntries(usage),
        cost,
        signals,
      };
    },
  };
}

/** Of those that are listed already, all is heard. */
function isTaskTooMany(tasks: Tasks, { scope }: Event): boolean {
  const task_id = scope?.task_id;
  if (task_id === undefined || Object.hasOwn(tasks, task_id)) return false;
  return Object.keys(tasks).length >= evidenceListMax;
}

function isFailure(e: Event): boolean {
  if (is(e, "tool.end")) return !e.payload.ok;
  if (endsRun(e)) return e.payload.state === "error";
  return /^(?:model\.failed|runtime\.error|task\.attempt\.failed|got\.node_failed)$/.test(e.type);
}

/** What happened, with its ids and without what was said. */
function entryOf({ id, ts, type, child_id, run_id, scope, payload }: Event): Facts {
  const { error, ...facts } = without(answers.test(type) ? [...saidIn, "reason"] : saidIn, payload);
  const code = codeIn(error);
  return {
    ...facts,
    ...(code === undefined ? {} : { error: { code } }),
    ...scope,
    // Last, so that nothing a producer writes stands for what the log knows.
    ...{ at: ts, event_id: id, type, run_id: child_id ?? run_id },
  };
}

/** The review has what people said. */
function bareDecision(decision: Decision): Facts {
  const isTheirs = decision.who !== "run" && decision.who !== "nobody";
  return without(isTheirs ? [...saidIn, "reason"] : saidIn, decision);
}

const answers = /^(?:approval|permission)\.resolved$/;

/** What failed says by which code; the rest is what a tool or a model has said. */
function codeIn(error: unknown): string | undefined {
  const code = isObject(error) ? error.code : error;
  return typeof code === "string" && /^[\w.-]{1,64}$/.test(code) ? code : undefined;
}

function without(members: readonly string[], facts: Facts): Facts {
  return Object.fromEntries(Object.entries(facts).filter(([member]) => !members.includes(member)));
}

/** Members that hold what was said, or how it begins. */
const saidIn = [
  ...["output", "input", "text", "preview", "spilled", "rest"],
  ...["question", "answer", "instruction", "message"],
];

function hasId({ scope, payload }: Event, ...names: readonly string[]): boolean {
  return names.some((name) => typeof (scope?.[name] ?? (payload as Facts)[name]) === "string");
}

/** By model, as `provider/name`. */
type Usages = Map<string, Usage>;

function addUsage(usage: Usages, payload: Facts): void {
  const { provider, model } = payload;
  const named = [provider, model].filter((name) => typeof name === "string").join("/") || "unknown";
  const key = usage.has(named) || usage.size < modelsMax ? named : "others";
  usage.set(key, addedUsage(null, usage.get(key) ?? {}, payload));
}

/** Models whose usage is told apart. */
const modelsMax = 100;

function costIn(usage: Usages): { readonly usd: number | null; readonly known: boolean } {
  const all = [...usage.values()];
  const priced = all.filter(({ cost_usd }) => cost_usd !== undefined);
  const usd = priced.length === 0 ? null : priced.reduce((sum, { cost_usd = 0 }) => sum + cost_usd, 0);
  const known =
    all.length > 0 && all.every((one) => one.cost_usd !== undefined && (one.unpriced_requests ?? 0) === 0);
  return { usd, known };
}
