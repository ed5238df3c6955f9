// Whole runs as a producer sends them. A run is a weave of strands: what it says, each tool call from its
// first argument to its end, each question, each child with a run of its own. A strand keeps its order,
// strands mix freely:
//
//   opening   ─ running ─ turn.submitted
//   strands   ─┬ text · reasoning · text ───────────────┬─ ending: settled · title · usage · done
//              ├ args · args · start · output · end ────┤
//              └ child.spawn · (a run, woven) ──────────┘
//
// Ids are counted, not drawn: shrinking would make two calls one. What a run leaves open (a call, a
// question, a child) is left to whoever ends it, as the protocol wants.

import {
  type Draft,
  type Event,
  isCore,
  type NamedType,
  type Payloads,
  type StepKind,
} from "@runwire/protocol";
import fc from "fast-check";
import { arbitraryDraftOf, arbitraryOpenType, arbitraryPayloads } from "./arbitraries.js";
import { arbitraryFacts, arbitraryJson, arbitraryText } from "./arbitrary-json.js";

export interface ArbitraryRun {
  readonly run_id: string;
  /** In order; those of a descendant have its `child_id`. The last one ends the run. */
  readonly drafts: readonly Draft[];
}

export interface ArbitraryRunOptions {
  /** Levels of children below the root; 3 unless told. */
  readonly childLevels?: number;
  /** False leaves out what a server writes itself when it makes a run: the first state and what was asked. */
  readonly opening?: boolean;
}

export function arbitraryRun({ childLevels = 3, opening = true }: ArbitraryRunOptions = {}) {
  return runShape(childLevels).map((shape): ArbitraryRun => {
    const run_id = countedId("run", 0);
    const counter = { calls: 0, runs: 0, requests: 0, checkpoints: 0, tasks: 0 };
    return { run_id, drafts: runDrafts(shape, null, counter, opening, true) };
  });
}

/** The log that a store would make of these drafts: ids, numbers and, where a draft has none, times. */
export function eventsOf(run_id: string, drafts: readonly Draft[]): readonly Event[] {
  let seq = 0;
  return drafts.map(({ type, payload, child_id = null, scope, ts, id }, index) => {
    if (isCore(type)) seq += 1;
    const event = {
      id: id ?? countedId("evt", index + 1),
      ts: ts ?? new Date(Date.UTC(2026, 0, 1) + index).toISOString(),
      type,
      run_id,
      child_id,
      pos: index + 1,
      seq,
      payload,
    };
    return scope === undefined ? event : { ...event, scope };
  });
}

type Chunk = readonly [type: "text.delta" | "reasoning.delta" | "tool.output", text: string];

type Act =
  | { readonly kind: "talk"; readonly chunks: readonly Chunk[] }
  | {
      readonly kind: "call";
      readonly tool: string;
      readonly args: readonly string[];
      readonly announced: boolean;
      readonly input: unknown;
      readonly chunks: readonly Chunk[];
      /** An unsent call is still being written when the run ends. */
      readonly outcome: "ok" | "failed" | "open" | "unsent";
      readonly output: unknown;
    }
  | { readonly kind: "approval" | "clarify"; readonly answer: string | null }
  | { readonly kind: "step"; readonly step_kind: StepKind; readonly checkpoint: boolean }
  | { readonly kind: "facts"; readonly drafts: readonly Draft[] }
  | {
      readonly kind: "task";
      /** Or the last one that somebody has told of. */
      readonly isNew: boolean;
      readonly told: readonly (readonly [name: string, attempt: number])[];
    }
  | { readonly kind: "child"; readonly prompt: string; readonly run: RunShape; readonly ended: boolean };

interface RunShape {
  readonly gate: "off" | "preview" | "required";
  readonly plan: Payloads["plan.proposal"];
  readonly asked: Payloads["turn.submitted"];
  readonly acts: readonly Act[];
  readonly paused: boolean;
  readonly picks: readonly number[];
  readonly settled: string | null;
  readonly title: string | null;
  readonly suggestions: readonly string[] | null;
  readonly usage: Payloads["usage"] | null;
  readonly ending: Payloads["run.lifecycle"];
}

const texts = fc.array(arbitraryText, { maxLength: 4 });
const chunks = (...types: readonly Chunk[0][]): fc.Arbitrary<readonly Chunk[]> =>
  fc.array(fc.tuple(fc.constantFrom(...types), arbitraryText), { maxLength: 6 });
const orNull = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: null });

const fact = fc
  .oneof(
    fc.constantFrom<NamedType>(
      "usage",
      "state.values",
      "model.requested",
      "model.completed",
      "steer.accepted",
    ),
    fc.constantFrom<NamedType>("message.interim", "process.output", "audio.delta", "checkpoint", "custom"),
    arbitraryOpenType,
  )
  .chain((type) => arbitraryDraftOf(type))
  .map(({ type, payload }): Draft => ({ type, payload }));

const taskNames =
  `created started attempt.started attempt.started attempt.completed attempt.failed retrying waiting
  paused resumed progress cancel_requested completed failed`.split(/\s+/);

function arbitraryAct(childLevels: number): fc.Arbitrary<Act> {
  const flat: fc.Arbitrary<Act>[] = [
    fc.record({ kind: fc.constant("talk"), chunks: chunks("text.delta", "reasoning.delta") }),
    fc.record({
      kind: fc.constant("call"),
      tool: arbitraryText,
      args: texts,
      announced: fc.boolean(),
      input: arbitraryJson,
      chunks: chunks("tool.output", "text.delta", "reasoning.delta"),
      outcome: fc.constantFrom("ok", "failed", "open", "unsent"),
      output: arbitraryJson,
    }),
    fc.record({ kind: fc.constantFrom("approval", "clarify"), answer: orNull(arbitraryText) }),
    fc.record({
      kind: fc.constant("step"),
      step_kind: fc.constantFrom("plan", "tool-roundtrip", "text-only", "fan-out", "fan-in"),
      checkpoint: fc.boolean(),
    }),
    fc.record({
      kind: fc.constant("task"),
      isNew: fc.boolean(),
      told: fc.array(fc.tuple(fc.constantFrom(...taskNames), fc.constantFrom(0, 1, 2)), { maxLength: 5 }),
    }),
    fc.record({ kind: fc.constant("facts"), drafts: fc.array(fact, { maxLength: 3 }) }),
  ];
  const talkMost = { weight: 3, arbitrary: flat[0] as fc.Arbitrary<Act> };
  const others = { weight: 5, arbitrary: fc.oneof(...flat.slice(1)) };
  if (childLevels === 0) return fc.oneof(talkMost, others);
  const child: fc.Arbitrary<Act> = fc.record({
    kind: fc.constant("child"),
    prompt: arbitraryText,
    run: runShape(childLevels - 1),
    ended: fc.boolean(),
  });
  return fc.oneof(talkMost, others, { weight: 1, arbitrary: child });
}

function runShape(childLevels: number): fc.Arbitrary<RunShape> {
  return fc.record({
    gate: fc.constantFrom("off", "off", "preview", "required"),
    plan: arbitraryPayloads["plan.proposal"],
    asked: arbitraryFacts,
    acts: fc.array(arbitraryAct(childLevels), { maxLength: 6 }),
    paused: fc.boolean(),
    picks: fc.array(fc.nat(0xffff), { minLength: 1, maxLength: 12 }),
    settled: orNull(arbitraryText),
    title: orNull(arbitraryText),
    suggestions: orNull(texts),
    usage: orNull(
      fc.dictionary(fc.constantFrom("input_tokens", "output_tokens"), fc.nat(), { noNullPrototype: true }),
    ),
    ending: fc.record({
      state: fc.constantFrom("done", "aborted", "error"),
      reason: orNull(arbitraryText),
    }),
  });
}

interface Counter {
  calls: number;
  runs: number;
  requests: number;
  checkpoints: number;
  tasks: number;
}

function runDrafts(
  shape: RunShape,
  child_id: string | null,
  counter: Counter,
  opening: boolean,
  ended: boolean,
): readonly Draft[] {
  const say = <T extends NamedType>(type: T, payload: Payloads[T]) => spoken(child_id, type, payload);
  const first: Draft[] = [];
  if (opening) {
    first.push(
      say("run.lifecycle", { state: shape.gate === "required" ? "planning" : "running", reason: null }),
    );
    first.push(say("turn.submitted", shape.asked));
    if (shape.gate !== "off") first.push(say("plan.proposal", shape.plan));
    if (shape.gate === "required") {
      first.push(
        say("run.lifecycle", { state: "awaiting_approval" }),
        say("run.lifecycle", { state: "running" }),
      );
    }
  }

  const strands = shape.acts.map((act) => strandOf(act, child_id, counter, opening));
  if (shape.paused) {
    strands.push([say("run.lifecycle", { state: "paused" }), say("run.lifecycle", { state: "running" })]);
  }
  const body = withStepsCounted(weave(strands, shape.picks), child_id);

  const last: Draft[] = [];
  if (shape.settled !== null) last.push(say("message.settled", { text: shape.settled }));
  if (shape.title !== null) last.push(say("title", { title: shape.title }));
  if (shape.suggestions !== null) last.push(say("suggestions", { suggestions: shape.suggestions }));
  if (shape.usage !== null) last.push(say("usage", shape.usage));
  last.push(say("run.lifecycle", shape.ending));
  return ended ? [...first, ...body, ...last] : [...first, ...body];
}

function strandOf(act: Act, child_id: string | null, counter: Counter, opening: boolean): readonly Draft[] {
  const say = <T extends NamedType>(type: T, payload: Payloads[T]) => spoken(child_id, type, payload);
  switch (act.kind) {
    case "talk":
      return act.chunks.map(([type, text]) => say(type, { text }));
    case "call": {
      const call_id = countedId("call", ++counter.calls);
      const { tool, input, output, outcome } = act;
      const written = act.args.map((text) => say("tool.args.delta", { text, call_id }));
      if (outcome === "unsent") return written;
      const started = [
        ...written,
        ...(act.announced ? [say("tool.call", { call_id, tool })] : []),
        say("tool.start", { call_id, tool, input }),
        ...act.chunks.map(([type, text]) => say(type, { text, call_id })),
      ];
      if (outcome === "open") return started;
      const end =
        outcome === "ok"
          ? { call_id, ok: true, output, error: null, duration_ms: 7 }
          : { call_id, ok: false, error: "KAI-TOOL-RUN-0001" };
      return [...started, say("tool.end", end)];
    }
    case "approval": {
      const approval_id = countedId("appr", ++counter.requests);
      const asked = say("approval.requested", { approval_id });
      return act.answer === null
        ? [asked]
        : [asked, say("approval.resolved", { approval_id, decision: act.answer })];
    }
    case "clarify": {
      const clarify_id = countedId("clar", ++counter.requests);
      const asked = say("clarify.requested", { clarify_id, question: "Which one?" });
      return act.answer === null
        ? [asked]
        : [asked, say("clarify.resolved", { clarify_id, answer: act.answer })];
    }
    case "step": {
      const step = { step_index: 0, step_kind: act.step_kind };
      const checkpoint_id = countedId("ckpt", ++counter.checkpoints);
      return [say("step.boundary", act.checkpoint ? { ...step, checkpoint_id } : step)];
    }
    case "task": {
      const task_id = countedId("task", act.isNew ? ++counter.tasks : Math.max(1, counter.tasks));
      return act.told.map(([name, attempt]): Draft => {
        // The attempt of no other name is the run itself.
        const scope = attempt === 0 ? { task_id } : { task_id, run_id: countedId("attempt", attempt) };
        const draft = { type: `task.${name}` as Draft["type"], payload: {}, scope };
        return child_id === null ? draft : { ...draft, child_id };
      });
    }
    case "facts":
      return act.drafts.map((draft) => (child_id === null ? draft : { ...draft, child_id }));
    case "child": {
      const id = countedId("run", ++counter.runs);
      return [
        say("child.spawn", { child_id: id, prompt: act.prompt, tools_allowed: ["web.search"] }),
        ...runDrafts(act.run, id, counter, opening, act.ended),
      ];
    }
  }
}

function spoken<T extends NamedType>(child_id: string | null, type: T, payload: Payloads[T]): Draft {
  return (child_id === null ? { type, payload } : { type, payload, child_id }) as Draft;
}

/** Mixes the strands: each pick names one of those that are left and how many drafts it gives in a row. */
function weave(strands: readonly (readonly Draft[])[], picks: readonly number[]): readonly Draft[] {
  const woven: Draft[] = [];
  let left = strands.filter((strand) => strand.length > 0);
  for (let turn = 0; left.length > 0; turn++) {
    const pick = picks[turn % picks.length] ?? 0;
    const chosen = left[pick % left.length] ?? [];
    const taken = 1 + ((pick >> 8) % 5);
    woven.push(...chosen.slice(0, taken));
    left = left
      .map((strand) => (strand === chosen ? strand.slice(taken) : strand))
      .filter((strand) => strand.length > 0);
  }
  return woven;
}

function withStepsCounted(drafts: readonly Draft[], child_id: string | null): readonly Draft[] {
  let step_index = 0;
  return drafts.map((draft) => {
    if (draft.type !== "step.boundary" || (draft.child_id ?? null) !== child_id) return draft;
    return { ...draft, payload: { ...draft.payload, step_index: step_index++ } } as Draft;
  });
}

function countedId(prefix: string, count: number): string {
  return `${prefix}_${String(count).padStart(26, "0")}`;
}
