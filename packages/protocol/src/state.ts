// The life of a run. One event per change; a change to the same state says nothing.

export const runStates = [
  "planning",
  "awaiting_approval",
  "running",
  "paused",
  "redirecting",
  "done",
  "aborted",
  "error",
] as const;

export type RunState = (typeof runStates)[number];

/** Those that nothing follows. */
export type FinalState = Extract<RunState, "done" | "aborted" | "error">;

const moves: { readonly [from in RunState]: readonly RunState[] } = {
  planning: ["awaiting_approval", "running", "aborted", "error"],
  awaiting_approval: ["running", "planning", "aborted", "error"],
  running: ["paused", "redirecting", "done", "aborted", "error"],
  paused: ["running", "redirecting", "aborted", "error"],
  redirecting: ["running", "planning", "aborted", "error"],
  done: [],
  aborted: [],
  error: [],
};

/** Why a run is paused that nobody paused for itself, and why it goes on then. */
export const parentPaused = "parent paused";
export const parentResumed = "parent resumed";

export function mayMove(from: RunState, to: RunState): boolean {
  return moves[from].includes(to);
}

export function isFinal(state: RunState): state is FinalState {
  return moves[state].length === 0;
}

export function isRunState(value: unknown): value is RunState {
  return typeof value === "string" && Object.hasOwn(moves, value);
}
