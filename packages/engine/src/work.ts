// Where a run stands, for the one who writes it. It is a fold of the run's own events in the full view and of nothing
// else: whoever takes a run over, after a crash or a pause, folds the log and knows what to do next.

import { type AnyEvent, type Event, type Facts, isFinal, type Plan, type RunState } from "@runwire/protocol";
import { type CallWork, isRedacted, newCall, withAnswer, withCall, withOpened } from "./call-work.js";
import { advanceCourse, type Course, firstCourse } from "./course.js";
import { givenMessages } from "./given-messages.js";
import type { Call, ChatMessage } from "./model.js";
import { planSteps } from "./plan-steps.js";
import { advanceStrategy, type Strategy, strategyFor } from "./strategies/strategy.js";
import type { Payee } from "./usage.js";

export interface Work {
  readonly pos: number;
  readonly state: RunState | null;
  /** The payload of `turn.submitted`. */
  readonly asked: Facts;
  /** The conversation up to the last whole answer and its results. */
  readonly messages: readonly ChatMessage[];
  /** The answer that is being made; null between two. */
  readonly answer: Answer | null;
  /** The model that was asked last, where its usage is not in the log: what a crash cut off was used up all the same. */
  readonly unpaid: Payee | null;
  readonly asker: Payee;
  /** Calls of the last whole answer, in the model's order. */
  readonly calls: readonly CallWork[];
  /** What people have said to the running run, not yet handed on. */
  readonly steers: readonly { readonly steer_id: string; readonly text: string }[];
  /** What a redirection asks for, until it is taken up. */
  readonly redirection: string | null;
  readonly plan: Plan | null;
  /** Whether the model was asked for a plan, and gave it. */
  readonly planned: boolean;
  readonly steps: number;
  /** The plan's steps that the ends of steps have named. */
  readonly stepsDone: readonly string[];
  /** What the step was whose calls have all ended, until its end is in the log. */
  readonly stepOver: { readonly kind: "tool-roundtrip" | "fan-in"; readonly calls: readonly Call[] } | null;
  /** The last checkpoint that a step names. */
  readonly checkpoint_id: string | null;
  /** Whether the last answer asked for nothing more. */
  readonly finished: boolean;
  /** Why the provider ended the last whole answer, in its words made ours. */
  readonly finishReason: string;
  /** Whether the last answer stands as the run's message. */
  readonly settled: boolean;
  readonly title: string | null;
  readonly suggested: boolean;
  readonly course: Course;
  /** How far the strategy has got; null where there is none, or no longer. */
  readonly strategy: Strategy | null;
}

export interface Answer {
  readonly text: string;
  /** What a step of the strategy was asked for: that is no part of the conversation. */
  readonly purpose?: string;
}

export const firstWork: Work = {
  pos: 0,
  state: null,
  asked: {},
  messages: [],
  answer: null,
  unpaid: null,
  asker: { name: "", provider: "" },
  calls: [],
  steers: [],
  redirection: null,
  plan: null,
  planned: false,
  steps: 0,
  stepsDone: [],
  stepOver: null,
  checkpoint_id: null,
  finished: false,
  finishReason: "",
  settled: false,
  title: null,
  suggested: false,
  course: firstCourse,
  strategy: null,
};

export function isOver({ state }: Work): boolean {
  return state !== null && isFinal(state);
}

export function advance(work: Work, event: Event): Work {
  // Children are looked after by themselves.
  if (event.child_id !== null) return { ...work, pos: event.pos };
  const e = event as AnyEvent;
  const strategy = work.strategy === null ? null : advanceStrategy(work.strategy, e);
  const moved = { ...work, pos: event.pos, strategy };
  const called = (call_id: unknown, more: Partial<CallWork>): Work => ({
    ...moved,
    calls: withCall(work.calls, call_id, more),
  });
  switch (e.type) {
    case "run.lifecycle": {
      const { state } = e.payload;
      const taken = state === "running" && work.redirection !== null;
      return { ...(taken ? redirected(moved, work.redirection) : moved), state };
    }
    case "turn.submitted":
      return {
        ...moved,
        asked: e.payload,
        messages: givenMessages(e.payload.messages),
        strategy: strategyFor(e.payload),
      };
    case "control.requested": {
      const { action, instruction, steps } = e.payload;
      if (action === "redirect") return { ...moved, redirection: String(instruction) };
      if (action === "approve_plan" && Array.isArray(steps) && work.plan !== null)
        return { ...moved, plan: { ...work.plan, steps: planSteps(steps) } };
      return moved;
    }
    case "model.requested": {
      const { purpose } = e.payload;
      const asker = { name: String(e.payload.model), provider: String(e.payload.provider) };
      const answer = {
        text: work.answer?.text ?? "",
        ...(typeof purpose === "string" ? { purpose } : {}),
      };
      return { ...moved, answer, unpaid: asker, asker, stepOver: null };
    }
    case "usage":
      return { ...moved, unpaid: null };
    case "reasoning.delta":
      // A try after a failed one has no request of its own in the log.
      return e.payload.call_id == null ? { ...moved, unpaid: work.asker } : moved;
    case "tool.args.delta":
      return { ...moved, unpaid: work.asker };
    case "text.delta":
      if (e.payload.call_id != null || work.answer === null) return moved;
      return {
        ...moved,
        answer: { text: work.answer.text + e.payload.text },
        unpaid: work.asker,
      };
    case "tool.call": {
      const { call_id, tool, input, plan_step } = e.payload;
      const step = typeof plan_step === "string" ? { plan_step } : {};
      const call = newCall({ call_id, tool, input, ...step }, isRedacted(e.payload));
      return { ...moved, calls: [...work.calls, call] };
    }
    case "model.failed":
      return { ...moved, unpaid: null };
    case "model.completed":
      return answered({ ...moved, finishReason: String(e.payload.finish_reason) }, e.payload);
    case "tool.start": {
      const { call_id, input } = e.payload;
      return called(call_id, { status: "running", input, redacted: isRedacted(e.payload) });
    }
    case "tool.end": {
      const { call_id, ok, output, error } = e.payload;
      return resultsIn(called(call_id, { status: "ended", ok, output: ok ? (output ?? null) : error }));
    }
    case "child.spawn":
      return called(e.payload.call_id, { child_id: e.payload.child_id });
    case "approval.requested":
      return called(e.payload.call_id, { approval: { id: e.payload.approval_id, resolved: null } });
    case "approval.resolved":
      return { ...moved, calls: withAnswer(work.calls, "approval", e.payload.approval_id, e.payload) };
    case "clarify.requested":
      return called(e.payload.call_id, { question: { id: e.payload.clarify_id, resolved: null } });
    case "clarify.resolved":
      return { ...moved, calls: withAnswer(work.calls, "question", e.payload.clarify_id, e.payload) };
    case "steer.accepted": {
      const { steer_id, text } = e.payload;
      return { ...moved, steers: [...work.steers, { steer_id: String(steer_id), text }] };
    }
    case "steer.delivered":
      return delivered(moved, e.payload.steer_id, e.payload.text);
    case "plan.proposal":
      return { ...moved, plan: e.payload.plan, planned: true };
    case "step.boundary": {
      const checkpoint_id = e.payload.checkpoint_id ?? work.checkpoint_id;
      const stepsDone = [...work.stepsDone, ...(e.payload.plan_steps ?? [])];
      return { ...moved, steps: work.steps + 1, stepsDone, stepOver: null, checkpoint_id };
    }
    case "message.settled":
      return { ...moved, settled: true };
    case "title":
      return { ...moved, title: e.payload.title };
    case "suggestions":
      return { ...moved, suggested: true };
    default:
      return {
        ...moved,
        course: advanceCourse(work.course, event),
        calls: withOpened(work.calls, event),
      };
  }
}

/** An answer is whole: it becomes part of the conversation, and its calls are what is to be done. */
function answered(work: Work, { carry }: Facts): Work {
  if (work.answer?.purpose !== undefined) return { ...work, answer: null };
  const content = work.answer?.text ?? "";
  const calls = work.calls.map(({ call_id, tool, input, plan_step }) => ({
    ...{ call_id, tool, input },
    ...(plan_step === undefined ? {} : { plan_step }),
  }));
  const isEmpty = content === "" && calls.length === 0;
  const messages: readonly ChatMessage[] = isEmpty
    ? work.messages
    : [
        ...work.messages,
        { role: "assistant", content, calls, ...(carry === undefined ? {} : { carry, by: work.asker }) },
      ];
  // A plan is no answer.
  const finished = calls.length === 0 && work.state !== "planning";
  return { ...work, answer: null, messages, finished };
}

/** What was said stays said; the new direction comes after it. */
function redirected(work: Work, instruction: string): Work {
  const said = work.answer?.text ?? "";
  const before: readonly ChatMessage[] =
    said === "" ? work.messages : [...work.messages, { role: "assistant", content: said, calls: [] }];
  const messages: readonly ChatMessage[] = [
    ...before,
    { role: "user", content: instruction, direction: "redirect" },
  ];
  return {
    ...work,
    answer: null,
    calls: [],
    stepOver: null,
    messages,
    redirection: null,
    // They were for another task.
    plan: null,
    strategy: null,
    finished: false,
    settled: false,
  };
}

/** Once every call has ended, the results are handed on together, and the calls as they ran. */
function resultsIn(work: Work): Work {
  if (work.calls.length === 0 || work.calls.some(({ status }) => status !== "ended")) return work;
  const results = work.calls.map(
    ({ call_id, tool, ok, output }): ChatMessage => ({ role: "tool", call_id, tool, ok, output }),
  );
  const kind = work.calls.some(({ tool }) => tool === "spawn") ? "fan-in" : "tool-roundtrip";
  return {
    ...work,
    calls: [],
    stepOver: { kind, calls: work.calls },
    messages: [...withInputs(work.messages, work.calls), ...results],
  };
}

/** People and hooks may have changed an input: a result is of the call that ran, not of the one that was asked for. */
function withInputs(messages: readonly ChatMessage[], ran: readonly CallWork[]): readonly ChatMessage[] {
  const last = messages.at(-1);
  if (last?.role !== "assistant") return messages;
  const inputs = new Map(ran.map(({ call_id, input }) => [call_id, input]));
  const calls = last.calls.map((call) => ({ ...call, input: inputs.get(call.call_id) ?? call.input }));
  return [...messages.slice(0, -1), { ...last, calls }];
}

function delivered(work: Work, steer_id: unknown, text: string): Work {
  const steers = work.steers.filter((steer) => steer.steer_id !== steer_id);
  const told: ChatMessage = { role: "user", content: text, direction: "steer" };
  return { ...work, steers, finished: false, messages: [...work.messages, told] };
}
