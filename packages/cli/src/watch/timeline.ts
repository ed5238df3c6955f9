// What a watcher remembers of a run: for each run of the tree what it is in the middle of, what waits for a person,
// and what the end will add up to. Whatever is finished has become a line and is forgotten.

import type { FinalState, RunState, Usage } from "@runwire/protocol";
import type { Line } from "./line.js";

export interface Timeline {
  readonly run_id: string;
  /** The run and its descendants, in the order they appeared. */
  readonly voices: ReadonlyMap<string, Voice>;
  readonly asks: readonly Ask[];
  readonly usage: Usage;
  readonly title: string | null;
  /** Whether it was told what the run was asked. */
  readonly asked: boolean;
  readonly beganMs: number | null;
  /** How the run ended. */
  readonly end: FinalState | null;
}

/** One run of the tree, as far as it is in the middle of something. */
export interface Voice {
  readonly run_id: string;
  /** Empty for the run itself; `2` for its second child, `2.1` for the first child of that. */
  readonly label: string;
  readonly state: RunState | null;
  /** The plan that it has shown last. */
  readonly plan_id: string | null;
  readonly childCount: number;
  /** The call of its parent that waits for it. */
  readonly call_id: string | null;
  readonly thinking: Thinking | null;
  /** The line of text that is not complete yet. */
  readonly text: string | null;
  /** Where the further rows of a line go on whose first are out already; null before that. */
  readonly indent: number | null;
  /** Whether it has said something since its last settled message. */
  readonly said: boolean;
  readonly tools: ReadonlyMap<string, Tool>;
  /** The thoughts that are being scored. */
  readonly candidates: readonly string[];
}

export interface Thinking {
  readonly text: string;
  readonly sinceMs: number;
}

export interface Tool {
  readonly tool: string;
  readonly input: unknown;
  /** Null until it was started. */
  readonly sinceMs: number | null;
  /** What it has said while it ran. */
  readonly streamed: string;
  /** The child that it waits for. */
  readonly child: string | null;
}

/** What waits for a person. `run_id` is the run that asks, which may be a child. */
export type Ask = { readonly run_id: string; readonly label: string; readonly id: string } & (
  | { readonly kind: "approval"; readonly about: string }
  | { readonly kind: "question"; readonly about: string; readonly choices: readonly string[] }
  /** `plan_id` is the plan that was shown, which need not be the one that waits by now. */
  | { readonly kind: "plan"; readonly plan_id: string | null }
);

/** One ask among those of the whole tree: an id is one of its run's own. */
export function askKey({ run_id, id }: Pick<Ask, "run_id" | "id">): string {
  return `${run_id} ${id}`;
}

/** How the lines are made. */
export interface Manner {
  /** Null in a pipe; otherwise a line is put out as soon as its rows are full. */
  readonly columns: number | null;
  /** Whether what goes on is shown apart, so that only its outcome becomes a line. */
  readonly live: boolean;
  /** Whether asks are answered right here; if not, lines say how. */
  readonly prompts: boolean;
  /** Thinking, tool inputs and outputs whole. */
  readonly full: boolean;
  readonly children: "show" | "hide";
}

/** What an event comes to: the timeline after it, and its lines. */
export interface Rendered {
  readonly timeline: Timeline;
  readonly lines: readonly Line[];
}

export function firstTimeline(run_id: string): Timeline {
  return {
    run_id,
    voices: new Map([[run_id, firstVoice(run_id, "", null)]]),
    asks: [],
    usage: {},
    title: null,
    asked: false,
    beganMs: null,
    end: null,
  };
}

export function firstVoice(run_id: string, label: string, call_id: string | null): Voice {
  return {
    run_id,
    label,
    state: null,
    plan_id: null,
    childCount: 0,
    call_id,
    thinking: null,
    text: null,
    indent: null,
    said: false,
    tools: new Map(),
    candidates: [],
  };
}

/** A call of which nothing was seen before. */
export const noTool: Tool = { tool: "a tool", input: undefined, sinceMs: null, streamed: "", child: null };

export function withTool(voice: Voice, call_id: string, change: Partial<Tool>): ReadonlyMap<string, Tool> {
  return new Map(voice.tools).set(call_id, { ...(voice.tools.get(call_id) ?? noTool), ...change });
}

export function withVoice(timeline: Timeline, voice: Voice): Timeline {
  return { ...timeline, voices: new Map(timeline.voices).set(voice.run_id, voice) };
}
