import { describe, expect, it } from "vitest";
import { isFinal, isRunState, mayMove, runStates } from "./state.js";

// Written out a second time on purpose: this list is the contract, `state.ts` is the program.
const allowed = `
  planning          → awaiting_approval running aborted error
  awaiting_approval → running planning aborted error
  running           → paused redirecting done aborted error
  paused            → running redirecting aborted error
  redirecting       → running planning aborted error
`;

describe("the life of a run", () => {
  it("allows exactly these changes of state [RW-STATE-1]", () => {
    const moves = allowed
      .trim()
      .split("\n")
      .map((line) => line.trim().split(/\s*→\s*/))
      .flatMap(([from, to = ""]) => to.split(" ").map((state) => `${from} → ${state}`));
    const program = runStates.flatMap((from) =>
      runStates.filter((to) => mayMove(from, to)).map((to) => `${from} → ${to}`),
    );
    expect(program.sort()).toEqual(moves.sort());
  });

  it("ends in done, aborted or error, which nothing leaves [RW-STATE-2]", () => {
    expect(runStates.filter(isFinal)).toEqual(["done", "aborted", "error"]);
    for (const from of runStates.filter(isFinal))
      expect(runStates.some((to) => mayMove(from, to))).toBe(false);
  });

  it("never moves a run to the state it is in [RW-STATE-3]", () => {
    for (const state of runStates) expect(mayMove(state, state)).toBe(false);
  });

  it("knows its states and no others", () => {
    for (const state of runStates) expect(isRunState(state)).toBe(true);
    for (const other of ["", "Running", "constructor", "__proto__", 1, null])
      expect(isRunState(other)).toBe(false);
  });
});
