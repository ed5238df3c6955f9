import { expect, test } from "vitest";
import type { Draft, Event, Facts } from "./events.js";
import { evidencer } from "./evidence.js";
import { evidenceListMax } from "./review.js";

const run_id = "run_1";

function event(type: Draft["type"], task_id: string): Event {
  const payload = {} as never;
  const ts = "2026-01-01T00:00:00.000Z";
  return { id: "evt_1", ts, type, run_id, child_id: null, pos: 1, seq: 1, payload, scope: { task_id } };
}

test("a task that is listed is told to its end, also where the list is full", () => {
  const evidence = evidencer(run_id);
  for (let n = 0; n <= evidenceListMax; n++) evidence.hear(event("task.started", `task_${n}`));
  evidence.hear(event("task.completed", "task_0"));
  const { tasks } = evidence.pack({ view: "full", events: 0, bytes: 0, sha256: "" });
  expect(tasks).toHaveLength(evidenceListMax);
  expect((tasks as readonly unknown[]).slice(0, 2)).toMatchObject([
    { task_id: "task_0", status: "completed" },
    { task_id: "task_1", status: "running" },
  ]);
});

test("why a run or a policy itself decided is in it", () => {
  const evidence = evidencer(run_id);
  const facts: readonly [Draft["type"], Facts][] = [
    ["permission.evaluated", { call_id: "c", reason: "tool-list" }],
    ["control.requested", { action: "pause", reason: "parent paused" }],
    ["run.lifecycle", { state: "error", reason: "producer lost" }],
  ];
  for (const [type, payload] of facts) evidence.hear({ ...event(type, "task_1"), payload } as Event);
  expect(evidence.pack({ view: "full", events: 0, bytes: 0, sha256: "" })).toMatchObject({
    reason: "producer lost",
    permissions: [{ reason: "tool-list" }],
    human_decisions: [{ who: "run", reason: "parent paused" }],
  });
});

// [RW-COURSE-4]
test("what was said is not in it, nor how that begins where it lies beside the log", () => {
  const evidence = evidencer(run_id);
  const said = { input: "secret", output: "secret", text: "secret", preview: "secret" };
  const where = { blob_ref: "blob_1", bytes: 70_000, media_type: "text/plain", preview: "secret" };
  const error = { code: "x", message: "secret" };
  const payload = { call_id: "c", ok: false, error, ...said, spilled: { output: where } };
  evidence.hear({ ...event("tool.end", "task_1"), payload } as Event);
  const facts: readonly [Draft["type"], Facts][] = [
    ["model.failed", { code: "overloaded", message: "secret" }],
    ["runtime.error", { code: "y", message: "secret" }],
    ["hook.failed", { hook_id: "h", message: "secret" }],
    ["sandbox.violation", { call_id: "c", violation: "network", message: "secret" }],
    ["steer.accepted", { steer_id: "s", text: "secret" }],
    ["clarify.requested", { clarify_id: "q", question: "secret" }],
    ["clarify.resolved", { clarify_id: "q", answer: "secret" }],
    ["control.requested", { action: "redirect", instruction: "secret" }],
    ["approval.resolved", { approval_id: "a", decision: "deny", reason: "secret" }],
    ["control.requested", { action: "abort", reason: "secret" }],
    ["run.lifecycle", { state: "aborted", reason: "secret" }],
  ];
  for (const [type, payload] of facts) evidence.hear({ ...event(type, "task_1"), payload } as Event);
  const pack = evidence.pack({ view: "full", events: 0, bytes: 0, sha256: "" });
  expect(pack.failures).toMatchObject([
    { call_id: "c", error: { code: "x" } },
    { code: "overloaded" },
    { code: "y" },
  ]);
  expect(pack.human_decisions).toHaveLength(5);
  expect(pack.permissions).toMatchObject([{ approval_id: "a", decision: "deny" }]);
  expect(JSON.stringify(pack)).not.toContain("secret");
});

test("what a producer writes under the names of the log's own is not taken for that", () => {
  const evidence = evidencer(run_id);
  const forged = { at: "never", event_id: "evt_9", type: "tool.end", run_id: "run_9", task_id: "task_9" };
  const payload = { violation: "network", ...forged };
  evidence.hear({ ...event("sandbox.violation", "task_1"), payload } as Event);
  const pack = evidence.pack({ view: "full", events: 0, bytes: 0, sha256: "" });
  const own = { at: "2026-01-01T00:00:00.000Z", event_id: "evt_1", type: "sandbox.violation", run_id };
  expect(pack.sandbox_violations).toEqual([{ violation: "network", task_id: "task_1", ...own }]);
});
