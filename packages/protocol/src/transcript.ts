// What a stream adds up to. Both views of a log fold to the same transcript (but for its numbers), so it
// depends on nothing that shaping may change: text and reasoning are joined per block, and a block ends only
// at control events, before which shaping flushes.

import type { Elsewhere } from "./elsewhere.js";
import type { Facts, Payloads, Plan, StepKind, ToolError } from "./events.js";
import type { RunState } from "./state.js";
import type { Tasks } from "./tasks.js";
import type { Usage } from "./usage.js";

export interface Transcript {
  readonly run_id: string;
  /** The last event folded. */
  readonly pos: number;
  readonly seq: number;
  readonly state: RunState | null;
  readonly reason: string | null;
  /** What was asked: the payload of `turn.submitted`. */
  readonly asked: Facts | null;
  /** What happened, in order; tools, steps and children are looked up by their ids. */
  readonly parts: readonly Part[];
  /** The model's text since the last settled message. */
  readonly message: string;
  readonly settled: readonly Payloads["message.settled"][];
  readonly tools: { readonly [call_id: string]: ToolCall };
  readonly steps: readonly Step[];
  readonly plan: Plan | null;
  readonly approvals: { readonly [approval_id: string]: Request<Payloads["approval.requested"]> };
  readonly clarifications: { readonly [clarify_id: string]: Request<Payloads["clarify.requested"]> };
  /** Descendants by run id, each folded from its own events. */
  readonly children: { readonly [child_id: string]: Child };
  /** Tasks of this run and of those below it. */
  readonly tasks: Tasks;
  readonly steers: readonly Steer[];
  readonly usage: Usage;
  readonly title: string | null;
  readonly suggestions: readonly string[];
  readonly values: Facts | null;
}

export type Part =
  | { readonly kind: "block"; readonly reasoning: string; readonly text: string }
  | { readonly kind: "tool"; readonly call_id: string }
  | { readonly kind: "step"; readonly step_index: number }
  | { readonly kind: "child"; readonly child_id: string }
  | { readonly kind: "plan"; readonly plan_id: string }
  | { readonly kind: "approval"; readonly approval_id: string }
  | { readonly kind: "clarify"; readonly clarify_id: string };

export interface ToolCall {
  readonly call_id: string;
  readonly tool: string;
  readonly status: "writing" | "called" | "running" | "ok" | "failed";
  readonly skill_id?: string;
  readonly input?: unknown;
  /** Argument text as the model writes it. */
  readonly arguments: string;
  /** What the tool streamed while it ran: its `tool.output`. */
  readonly streamed: string;
  /** Text and reasoning that the tool, and not the model, streamed to the reader. */
  readonly text?: string;
  readonly reasoning?: string;
  readonly output?: unknown;
  readonly error?: ToolError | null;
  readonly duration_ms?: number;
  readonly blob_ref?: string;
  /** Where an input or output is that lies beside the log, and how it begins. */
  readonly spilled?: { readonly input?: Elsewhere; readonly output?: Elsewhere };
  readonly started_at?: string;
  readonly ended_at?: string;
}

export interface Step {
  readonly step_index: number;
  readonly step_kind: StepKind;
  readonly checkpoint_id?: string;
  /** Which steps of the plan it was for. */
  readonly plan_steps?: readonly string[];
  /** Where the step ended in this log. */
  readonly pos: number;
  readonly seq: number;
  readonly ts: string;
}

export interface Request<P> {
  readonly asked: P;
  readonly status: "pending" | "resolved";
  readonly answer?: Facts;
}

export interface Child {
  /** The run that spawned it: the root of this transcript, or another child. */
  readonly parent_id: string;
  readonly transcript: Transcript;
}

export interface Steer {
  readonly text: string;
  readonly status: "accepted" | "delivered" | "leftover";
}

export function emptyTranscript(run_id: string): Transcript {
  return {
    run_id,
    pos: 0,
    seq: 0,
    state: null,
    reason: null,
    asked: null,
    parts: [],
    message: "",
    settled: [],
    tools: {},
    steps: [],
    plan: null,
    approvals: {},
    clarifications: {},
    children: {},
    tasks: {},
    steers: [],
    usage: {},
    title: null,
    suggestions: [],
    values: null,
  };
}
