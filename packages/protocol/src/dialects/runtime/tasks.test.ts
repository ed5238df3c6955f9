import { describe, expect, it } from "vitest";
import type { Event, EventType, Facts } from "../../events.js";
import { runtime } from "./index.js";
import type { RuntimeMessage } from "./types.js";

describe("the tasks of a tree", () => {
  it("are each run's own: however many children have one, the root's ends with it [RW-RUNTIME-13]", () => {
    const { say } = stream();
    say("run.lifecycle", { state: "running" });
    say("turn.submitted", {});
    say("task.started", {}, { task: "task_root" });
    say("task.attempt.started", {}, { task: "task_root" });
    for (let i = 0; i < 200; i++) say("task.started", {}, { task: `task_${i}`, child_id: `run_${i}` });
    expect(say("usage", {})[0]?.taskId).toBe("task_root");
    expect(say("usage", {}, { child_id: "run_0" })[0]?.taskId).toBe("task_0");
    const ends = say("run.lifecycle", { state: "done" }).map(({ type, taskId }) => [type, taskId]);
    expect(ends.slice(0, 3)).toEqual([
      ["task.attempt.completed", "task_root"],
      ["task.completed", "task_root"],
      ["turn.completed", "task_root"],
    ]);
  });

  it("are followed while their run lives, the last of a run that opens too many [RW-RUNTIME-13]", () => {
    const { say, tasks } = stream();
    say("run.lifecycle", { state: "running" });
    say("turn.submitted", {});
    for (let i = 0; i < 200; i++) {
      say("task.created", {}, { task: `task_${i}`, child_id: `run_${i}` });
      say("run.lifecycle", { state: "done" }, { child_id: `run_${i}` });
    }
    expect(tasks()).toHaveLength(32);
    for (let i = 0; i < 200; i++) say("task.started", {}, { task: `own_${i}` });
    expect(tasks()).toHaveLength(32 + 64);
    expect(tasks().slice(-64)).toEqual(Array.from({ length: 64 }, (_, i) => `own_${i + 136}`));
  });

  it("stay of the run that named them first, also when it is over and had not begun one [RW-RUNTIME-13]", () => {
    const { say } = stream();
    say("run.lifecycle", { state: "running" });
    say("turn.submitted", {});
    for (const child_id of ["run_a", "run_b"]) {
      say("task.created", {}, { task: "task_1", child_id });
      const [end] = say("run.lifecycle", { state: "done" }, { child_id });
      expect(end?.taskId).toBe(child_id === "run_a" ? "task_1" : undefined);
    }
  });

  it("have attempts that end once, also where one is begun again under its id [RW-RUNTIME-13]", () => {
    const { say } = stream();
    say("run.lifecycle", { state: "running" });
    say("turn.submitted", {});
    const task = "task_root";
    say("task.started", {}, { task });
    say("task.attempt.started", {}, { task, attempt: "a" });
    say("task.attempt.completed", {}, { task, attempt: "a" });
    say("task.attempt.started", {}, { task, attempt: "a" });
    const ends = say("run.lifecycle", { state: "aborted" }).map(({ type }) => type);
    expect(ends).toContain("task.cancelled");
    expect(ends).not.toContain("task.attempt.failed");
  });
});

function stream() {
  let state = runtime.first;
  let pos = 0;
  return {
    tasks: () => Object.keys(state.tasks),
    say(
      type: EventType,
      payload: Facts,
      of: { readonly task?: string; readonly attempt?: string; readonly child_id?: string } = {},
    ): readonly RuntimeMessage[] {
      pos += 1;
      const numbers = { id: `evt_${pos}`, ts: "2026-01-01T00:00:00.000Z", pos, seq: pos };
      const attempt = of.attempt === undefined ? {} : { attempt_id: of.attempt };
      const scope = of.task === undefined ? {} : { scope: { task_id: of.task, ...attempt } };
      const e = { run_id: "run_root", child_id: of.child_id ?? null, type, payload, ...numbers, ...scope };
      const [next, messages] = runtime.step(state, e as Event);
      state = next;
      return messages.map(({ data }) => JSON.parse(data) as RuntimeMessage);
    },
  };
}
