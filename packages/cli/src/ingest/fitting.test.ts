import { type Draft, type Event, isFinal, mayMove, type RunState, RunwireError } from "@runwire/protocol";
import { describe, expect, it } from "vitest";
import { sampleEvents } from "../testing/sample.js";
import { fitting } from "./fitting.js";

function fitted(drafts: readonly Draft[], isAsked = false): readonly (readonly Draft[] | string)[] {
  let count = 0;
  const fit = fitting(isAsked, () => `run_child${++count}`);
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
const spawn = (child_id: string): Draft => ({ type: "child.spawn", payload: { child_id } });

describe("what goes to the server", () => {
  it("is the run but for the state and the question that the server has written itself", () => {
    const all = fitted(sampleEvents(), true).flat() as readonly Draft[];
    const types = sampleEvents().map(({ type }) => type);
    expect(all.map(({ type }) => type)).toEqual(types.slice(2));
  });

  it("changes states only as a server allows it", () => {
    const states = ["planning", "awaiting_approval", "running", "paused", "redirecting", "done"] as const;
    for (const a of states) {
      for (const b of states) {
        const moves = fitted([to(a), to(b), to("done")]).flatMap((drafts) =>
          typeof drafts === "string"
            ? []
            : drafts.map(({ payload }) => (payload as { state: RunState }).state),
        );
        let now: RunState = "running";
        for (const next of moves) {
          expect(mayMove(now, next), `${a} ${b}: ${now} to ${next}`).toBe(true);
          now = next;
        }
        expect(isFinal(now)).toBe(true);
      }
    }
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

  it.each([
    ["a child nobody spawned", [says("run_a")], "KAI-RUN-CHILD-0001"],
    ["a child spawned twice", [spawn("run_a"), spawn("run_a")], "KAI-RUN-CHILD-0001"],
    ["what comes after the end", [to("done"), says()], "KAI-RUN-ENDED-0001"],
    [
      "a request under an id that was used",
      [1, 2].map((): Draft => ({ type: "approval.requested", payload: { approval_id: "a" } })),
      "KAI-RUN-REQUEST-0004",
    ],
  ])("is not %s", (_, drafts, code) => {
    expect(fitted(drafts).at(-1)).toBe(code);
  });
});
