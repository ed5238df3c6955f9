import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  coreTypes,
  type Event,
  endsRun,
  eventTypes,
  factFamilies,
  flowOf,
  isCore,
  typeRow,
} from "./events.js";
import { runStates } from "./state.js";

describe("event types", () => {
  it("have eight in their core [RW-TYPE-1]", () => {
    expect([...coreTypes].sort()).toEqual(
      [
        "reasoning.delta",
        "text.delta",
        "tool.start",
        "tool.end",
        "step.boundary",
        "child.spawn",
        "plan.proposal",
        "run.lifecycle",
      ].sort(),
    );
    expect(isCore("message.settled")).toBe(false);
  });

  it("are open in their families and for vendors, and nowhere else [RW-TYPE-2]", () => {
    for (const family of factFamilies) expect(typeRow(`${family}.some_name.more`)).toBeDefined();
    for (const type of ["x.acme.thing", "x.openai.response.output_item", "x.A-1._"]) {
      expect(typeRow(type), type).toBeDefined();
    }
    const unknown = [
      "",
      "text",
      "x",
      "x.",
      "x.a",
      "x..a",
      "x.a.b\n",
      "task",
      "task.",
      "task.A",
      "task.a.b.c.d",
    ];
    for (const type of [...unknown, "constructor", "__proto__", "toString", "hook.a b", "TEXT.DELTA"]) {
      expect(typeRow(type), JSON.stringify(type)).toBeUndefined();
    }
  });

  it("hold no character that would have to be escaped [RW-TYPE-3]", () => {
    for (const type of Object.keys(eventTypes)) expect(type).toMatch(/^[a-z_.]+$/);
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (noise) => {
        for (const type of [noise, `task.${noise}`, `x.acme.${noise}`]) {
          if (typeRow(type) !== undefined) expect(type).toMatch(/^[A-Za-z0-9_.-]+$/);
        }
      }),
    );
  });

  it("are joined if they are deltas, and go at once if they are not [RW-TYPE-4]", () => {
    const deltas = Object.keys(eventTypes).filter((type) => flowOf(type as never) !== "control");
    expect(deltas.sort()).toEqual(
      [
        "audio.delta",
        "process.output",
        "reasoning.delta",
        "text.delta",
        "tool.args.delta",
        "tool.output",
      ].sort(),
    );
    expect(flowOf("text.delta")).toBe("core-delta");
    expect(flowOf("reasoning.delta")).toBe("core-delta");
    expect(flowOf("tool.output")).toBe("extended-delta");
    expect(flowOf("x.acme.token")).toBe("control");
  });
});

describe("the end of a run", () => {
  it("is a terminal state that the run itself told [RW-STATE-4]", () => {
    for (const state of runStates) {
      const terminal = state === "done" || state === "aborted" || state === "error";
      expect(endsRun(lifecycle(state, null))).toBe(terminal);
      expect(endsRun(lifecycle(state, "run_child"))).toBe(false);
    }
    expect(endsRun({ ...lifecycle("done", null), type: "custom" })).toBe(false);
  });
});

function lifecycle(state: string, child_id: string | null): Event {
  const payload = { state, reason: null };
  return {
    id: "evt_1",
    ts: "2026-01-01T00:00:00Z",
    type: "run.lifecycle",
    run_id: "run_1",
    child_id,
    pos: 1,
    seq: 1,
    payload,
  };
}
