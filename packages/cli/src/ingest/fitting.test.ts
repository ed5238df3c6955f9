import { type Draft, type Event, isFinal, mayMove, type RunState, RunwireError } from "@runwire/protocol";
import { describe, expect, it } from "vitest";
import { sampleEvents } from "../testing/sample.js";
import { type Begun, fitting } from "./fitting.js";

const justBegun: Begun = { isAsked: false, state: "running", isGated: false, pos: 0 };

function fitted(
  drafts: readonly Draft[],
  begun: Partial<Begun> = {},
): readonly (readonly Draft[] | string)[] {
  let count = 0;
  const fit = fitting({ ...justBegun, ...begun }, () => `run_child${++count}`);
  return drafts.map((draft) => {
    try {
      return fit.draftsOf({ child_id: null, ...draft } as Event);
    } catch (error) {
      if (error instanceof RunwireError) return error.code;
      throw error;
    }
  });
}

const to = (state: RunState, child_id: string | null = null): Draft => ({
  type: "run.lifecycle",
  payload: { state },
  child_id,
});
const says = (child_id: string | null = null): Draft => ({
  type: "text.delta",
  payload: { text: "x" },
  child_id,
});
const stateIn = ({ payload }: Draft): RunState => (payload as { state: RunState }).state;
const spawn = (child_id: string): Draft => ({ type: "child.spawn", payload: { child_id } });

describe("what goes to the server", () => {
  it("is the run but for the state and the question that the server has written itself", () => {
    const all = fitted(sampleEvents(), { isAsked: true }).flat() as readonly Draft[];
    const types = sampleEvents().map(({ type }) => type);
    expect(all.map(({ type }) => type)).toEqual(types.slice(2));
  });

  it("changes states only as a server allows it", () => {
    const states = ["planning", "awaiting_approval", "running", "paused", "redirecting", "done"] as const;
    for (const state of ["planning", "running"] as const) {
      for (const a of states) {
        for (const b of states) {
          const moves = fitted([to(a), to(b), to("done")], { state }).flatMap((drafts) =>
            typeof drafts === "string" ? [] : drafts.map(stateIn),
          );
          let now: RunState = state;
          for (const next of moves) {
            expect(mayMove(now, next), `${state} ${a} ${b}: ${now} to ${next}`).toBe(true);
            now = next;
          }
          expect(isFinal(now)).toBe(true);
        }
      }
    }
  });

  it("gets a run that plans to go on, unless its plan does", () => {
    const plan: Draft = {
      type: "plan.proposal",
      payload: { plan: { id: "p", steps: [] } },
    } as unknown as Draft;
    const begun = { state: "planning" } as const;
    expect(fitted([to("planning"), says(), to("running")], begun).flat()).toHaveLength(2);
    expect(fitted([plan, to("running"), to("done")], begun).flat()).toHaveLength(2);
    const fit = fitting({ ...justBegun, ...begun }, () => "run_child");
    expect(fit.end({ state: "done", reason: null }).map(stateIn)).toEqual(["running", "done"]);
    expect(fit.ended).toBe(true);
  });

  it("leaves a run whose plan a person must approve where it is, until there is a plan or an end", () => {
    const begun = { state: "planning", isGated: true } as const;
    const plan = { type: "plan.proposal", payload: { plan: { id: "p", steps: [] } } } as unknown as Draft;
    const waits = [to("awaiting_approval"), to("running"), to("paused")];
    expect(fitted(waits, begun).flat()).toEqual([]);
    expect(fitted([...waits, to("done")], begun).flat()).toEqual([
      {
        type: "run.lifecycle",
        payload: { state: "error", reason: "it ended without a plan that was approved" },
      },
    ]);
    expect(fitted([...waits, to("aborted")], begun).flat()).toEqual([
      { type: "run.lifecycle", payload: { state: "aborted" } },
    ]);
    const planned = fitted([...waits, plan, to("running"), to("done")], begun).flat() as readonly Draft[];
    expect(planned.map(({ type }) => type)).toEqual(["plan.proposal", "run.lifecycle"]);
    const fit = fitting({ ...justBegun, ...begun }, () => "run_child");
    expect(fit.end({ state: "done", reason: null }).map(stateIn)).toEqual(["error"]);
    expect(fit.ended).toBe(true);
  });

  it("is a request of each run that asks under an id, because an id is a run's own", () => {
    const asks = (child_id: string): Draft => ({
      type: "approval.requested",
      payload: { approval_id: "a" },
      child_id,
    });
    const told = fitted([spawn("run_a"), spawn("run_b"), asks("run_a"), asks("run_b"), asks("run_b")]);
    expect(told.slice(2)).toMatchObject([
      [{ child_id: "run_child1" }],
      [{ child_id: "run_child2" }],
      "KAI-RUN-REQUEST-0004",
    ]);
  });

  it("names children anew, because a server has each id once", () => {
    const [spawned, said, ended, late] = fitted([
      spawn("run_a"),
      says("run_a"),
      to("done", "run_a"),
      says("run_a"),
    ]);
    expect(spawned).toMatchObject([{ payload: { child_id: "run_child1" } }]);
    expect(said).toMatchObject([{ child_id: "run_child1" }]);
    expect(ended).toMatchObject([{ child_id: "run_child1" }]);
    expect(late).toBe("KAI-RUN-ENDED-0001");
  });

  it("is nothing of a child that somebody else has ended, nor of what is below it", () => {
    let count = 0;
    const fit = fitting(justBegun, () => `run_child${++count}`);
    const take = (draft: Draft): readonly Draft[] => fit.draftsOf({ child_id: null, ...draft } as Event);
    take(spawn("run_a"));
    take({ ...spawn("run_b"), child_id: "run_a" });
    fit.lose("run_child1");
    for (const draft of [says("run_a"), to("done", "run_a"), says("run_b")])
      expect(() => take(draft)).toThrow(/the run has ended: run_a is aborted/);
    expect(take(says())).toHaveLength(1);
  });

  it.each([
    ["a child nobody spawned", [says("run_a")], "KAI-RUN-CHILD-0001"],
    ["a child spawned twice", [spawn("run_a"), spawn("run_a")], "KAI-RUN-CHILD-0001"],
    ["what comes after the end", [to("done"), says()], "KAI-RUN-ENDED-0001"],
    [
      "what comes after the end of the run above",
      [spawn("run_a"), { ...spawn("run_b"), child_id: "run_a" }, to("done", "run_a"), says("run_b")],
      "KAI-RUN-ENDED-0001",
    ],
    [
      "a request under an id that was used",
      [1, 2].map((): Draft => ({ type: "approval.requested", payload: { approval_id: "a" } })),
      "KAI-RUN-REQUEST-0004",
    ],
  ])("is not %s", (_, drafts, code) => {
    expect(fitted(drafts).at(-1)).toBe(code);
  });
});
