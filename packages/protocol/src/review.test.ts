import { expect, test } from "vitest";
import type { Draft, Event, Facts } from "./events.js";
import { reviewer } from "./review.js";

function event(type: Draft["type"], payload: Facts, child_id: string | null = null): Event {
  const ts = "2026-01-01T00:00:00.000Z";
  return { id: "evt_1", ts, type, run_id: "run_1", child_id, pos: 1, seq: 1, payload } as Event;
}

const planned = (id: string): Event => event("plan.proposal", { plan: { id, steps: [] } });
const state = (of: string, child_id?: string): Event => event("run.lifecycle", { state: of }, child_id);

test("a plan waits as long as its run does, and another takes its place", () => {
  const { hear, review } = reviewer("run_1");
  const waiting = (): readonly unknown[] => review().waiting.map(({ kind, id }) => [kind, id]);
  hear(planned("plan_1"));
  expect(waiting()).toEqual([]);
  hear(state("awaiting_approval"));
  hear(planned("plan_2"));
  // Under the same id as something else that waits.
  hear(event("approval.requested", { approval_id: "plan_2", call_id: "c", tool: "shell" }));
  expect(waiting()).toEqual([
    ["plan", "plan_2"],
    ["approval", "plan_2"],
  ]);
  hear(event("control.requested", { action: "approve_plan", plan_id: "plan_2", approved: true }));
  expect(waiting()).toEqual([["approval", "plan_2"]]);
  expect(review().decisions).toMatchObject([{ kind: "plan", id: "plan_2", asked_at: expect.any(String) }]);
  hear(state("running"));
  for (const next of ["running", "aborted"]) {
    hear(state("awaiting_approval", "run_2"));
    expect(waiting()).toEqual([
      ["approval", "plan_2"],
      ["plan", null],
    ]);
    hear(state(next, "run_2"));
    expect(waiting()).toEqual([["approval", "plan_2"]]);
  }
});

// The words are those of the wire: logs have them. [RW-CONTROL-7]
test("what an ancestor's pause does to a run nobody has decided about it", () => {
  const { hear, review } = reviewer("run_1");
  for (const reason of ["parent paused", "parent resumed", "lunch"])
    hear(event("control.requested", { action: "pause", reason }));
  expect(review().decisions.map(({ who }) => who)).toEqual(["run", "run", "person"]);
});
